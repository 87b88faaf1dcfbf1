/** Address checks and answers of receivers, over real sockets. Only host names are resolved by the tests. */
import { createGuardedLookup, type Resolve } from '@darkroom/service';
import { expect, it } from 'vitest';
import { type PostResult, postWebhook } from './post-webhook.ts';
import { startReceiver } from './testing/receiver.ts';

const neverAborted = new AbortController().signal;

function postTo(
  url: string,
  {
    allowPrivate = false,
    signal = neverAborted,
    ...options
  }: { allowPrivate?: boolean; signal?: AbortSignal; resolve?: Resolve } = {},
): Promise<PostResult> {
  return postWebhook({
    url,
    headers: { 'content-type': 'text/plain' },
    body: 'hello',
    signal,
    allowPrivate,
    ...options,
  });
}

/** A resolver that returns these answers in order and then repeats the last one. */
function resolverOf(...answers: string[][]): Resolve & { queried: string[] } {
  const queried: string[] = [];
  const resolve: Resolve = (hostname) => {
    queried.push(hostname);
    const addresses = (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
    return Promise.resolve(addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })));
  };
  return Object.assign(resolve, { queried });
}

const nowhere: Resolve = () => Promise.reject(Object.assign(new Error('queryA'), { code: 'ENOTFOUND' }));

it('refuses a loopback address without connecting, unless private addresses are allowed', async () => {
  const { url, port, received } = await startReceiver();
  for (const address of [
    url,
    `http://[::ffff:127.0.0.1]:${port}`,
    `http://2130706433:${port}`,
    `http://localhost:${port}`,
  ])
    expect(await postTo(address)).toEqual({ status: 'refused' });
  expect(received).toEqual([]);
  expect(await postTo(`${url}/hook?x=1`, { allowPrivate: true })).toEqual({ status: 'answered', code: 204 });
  expect(received).toMatchObject([{ path: '/hook?x=1', body: 'hello', headers: { 'content-type': 'text/plain' } }]);
});

it.each(['127.0.0.1', '::1', '::ffff:127.0.0.1', '10.0.0.1', '169.254.169.254'])(
  'refuses a host name that resolves to %s',
  async (address) => {
    const { port, received } = await startReceiver();
    expect(await postTo(`http://hooks.example.com:${port}`, { resolve: resolverOf([address]) })).toEqual({
      status: 'refused',
    });
    expect(received).toEqual([]);
  },
);

it('resolves a host name once, and passes only its public addresses to the connection', async () => {
  const resolve = resolverOf(['127.0.0.1', '1.1.1.1', '::1', '2606:4700::1111'], ['127.0.0.1']);
  const yielded = await new Promise((done) => {
    createGuardedLookup({ allowPrivate: false, resolve })('mixed.example.com', { all: true }, (_error, addresses) =>
      done(addresses),
    );
  });
  expect(yielded).toEqual([
    { address: '1.1.1.1', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ]);
  expect(resolve.queried).toEqual(['mixed.example.com']);
});

it.each([301, 302, 303, 307, 308])('reports a %i without following it', async (code) => {
  const inside = await startReceiver();
  const { url } = await startReceiver((response) => void response.writeHead(code, { location: inside.url }).end());
  expect(await postTo(url, { allowPrivate: true })).toEqual({ status: 'answered', code });
  expect(inside.received).toEqual([]);
});

it('fails with a timeout when the receiver does not answer', async () => {
  const cut = new AbortController();
  const { url } = await startReceiver(() => cut.abort());
  expect(await postTo(url, { allowPrivate: true, signal: cut.signal })).toEqual({
    status: 'failed',
    reason: 'no answer in time',
  });
});

it('reports the status of an answer whose body is endless or breaks off', async () => {
  const endless = await startReceiver((response) => {
    response.writeHead(200);
    const chunk = Buffer.alloc(65_536);
    const write = (): void => void (response.destroyed || response.write(chunk, write));
    write();
  });
  expect(await postTo(endless.url, { allowPrivate: true })).toEqual({ status: 'answered', code: 200 });
  const broken = await startReceiver((response) => {
    response.writeHead(200, { 'content-length': 100 }).write('x', () => response.destroy());
  });
  expect(await postTo(broken.url, { allowPrivate: true })).toEqual({ status: 'answered', code: 200 });
});

it('reports a 101 Switching Protocols as an answer', async () => {
  const { url } = await startReceiver(
    (response) =>
      void response.socket?.write('HTTP/1.1 101 Other\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'),
  );
  expect(await postTo(url, { allowPrivate: true })).toEqual({ status: 'answered', code: 101 });
});

it('describes connection failures without internal details', async () => {
  const { port } = await startReceiver();
  const broken = await startReceiver((response) => void response.destroy());
  const nonsense = await startReceiver((response) => void response.socket?.end('nonsense\r\n\r\n'));
  const reasons = await Promise.all(
    [
      postTo('http://127.0.0.1:1', { allowPrivate: true }),
      postTo(broken.url, { allowPrivate: true }),
      postTo(nonsense.url, { allowPrivate: true }),
      postTo(`https://127.0.0.1:${port}`, { allowPrivate: true }),
      postTo('http://nowhere.example.com', { resolve: nowhere }),
    ].map(async (result) => (await result) as { reason: string }),
  );
  expect(reasons.map(({ reason }) => reason)).toEqual([
    'connection refused',
    'connection closed without an answer',
    'the answer is not HTTP',
    'TLS failed',
    'host name not found',
  ]);
});
