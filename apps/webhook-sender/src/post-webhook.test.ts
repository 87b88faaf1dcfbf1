/** Where a webhook may go, and what comes back, over real sockets. Only names are resolved by the tests. */
import { createGuardedLookup, type Resolve } from '@darkroom/service';
import { expect, it } from 'vitest';
import { type PostResult, postWebhook } from './post-webhook.ts';
import { startReceiver } from './testing/receiver.ts';

const patient = new AbortController().signal;

function postTo(
  url: string,
  {
    allowPrivate = false,
    signal = patient,
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

/** A resolver that gives these answers, one after the other; the last one stays. */
function resolverOf(...answers: string[][]): Resolve & { asked: string[] } {
  const asked: string[] = [];
  const resolve: Resolve = (hostname, _options, callback) => {
    asked.push(hostname);
    const addresses = (answers.length > 1 ? answers.shift() : answers[0]) ?? [];
    callback(
      null,
      addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };
  return Object.assign(resolve, { asked });
}

const nowhere: Resolve = (_hostname, _options, callback) =>
  callback(Object.assign(new Error('queryA'), { code: 'ENOTFOUND' }), []);

it('a loopback address is refused without a connection, unless it is allowed', async () => {
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
  'a name that leads to %s is refused',
  async (address) => {
    const { port, received } = await startReceiver();
    expect(await postTo(`http://hooks.example.com:${port}`, { resolve: resolverOf([address]) })).toEqual({
      status: 'refused',
    });
    expect(received).toEqual([]);
  },
);

it('a name is looked up once, and of its addresses the connection is given the public ones only', async () => {
  const resolve = resolverOf(['127.0.0.1', '1.1.1.1', '::1', '2606:4700::1111'], ['127.0.0.1']);
  const yielded = await new Promise((done) => {
    createGuardedLookup(resolve)('mixed.example.com', { all: true }, (_error, addresses) => done(addresses));
  });
  expect(yielded).toEqual([
    { address: '1.1.1.1', family: 4 },
    { address: '2606:4700::1111', family: 6 },
  ]);
  expect(resolve.asked).toEqual(['mixed.example.com']);
});

it.each([301, 302, 303, 307, 308])('a %i is an answer: it is not followed', async (code) => {
  const inside = await startReceiver();
  const { url } = await startReceiver((response) => void response.writeHead(code, { location: inside.url }).end());
  expect(await postTo(url, { allowPrivate: true })).toEqual({ status: 'answered', code });
  expect(inside.received).toEqual([]);
});

it('a receiver that does not answer is given up', async () => {
  const cut = new AbortController();
  const { url } = await startReceiver(() => cut.abort());
  expect(await postTo(url, { allowPrivate: true, signal: cut.signal })).toEqual({
    status: 'failed',
    reason: 'no answer in time',
  });
});

it('an answer counts by its status, whether its body has no end or breaks off', async () => {
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

it('a receiver that wants to speak another protocol has answered', async () => {
  const { url } = await startReceiver(
    (response) =>
      void response.socket?.write('HTTP/1.1 101 Other\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'),
  );
  expect(await postTo(url, { allowPrivate: true })).toEqual({ status: 'answered', code: 101 });
});

it('what goes wrong is told in words that show nothing of ours', async () => {
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
