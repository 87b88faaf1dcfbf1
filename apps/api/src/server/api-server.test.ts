/** Behavior that needs real connections. */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { connect } from 'node:net';
import { createLogger } from '@darkroom/service';
import { expect, it, onTestFinished } from 'vitest';
import { ApiServer } from './api-server.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { listen } from '../testing/listen.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi } from '../testing/test-api.ts';

it('ends the subscription of a client that disconnects', async () => {
  const test = await openTestApi();
  const { url } = await listen(test);
  const id = await test.submit();
  const abort = new AbortController();
  const response = await fetch(`${url}/v1/predict/${id}/events`, { signal: abort.signal });
  expect((await readFrames(response).next())?.event).toBe('queued');
  expect(test.hub.size).toBe(1);
  abort.abort();
  await expect.poll(() => [test.hub.size, test.timers()]).toEqual([0, 0]);
});

it('on stop sends event streams to other replicas and accepts no new connections', async () => {
  const test = await openTestApi();
  const { server, url } = await listen(test);
  const response = await fetch(`${url}/v1/predict/${await test.submit()}/events`);
  const reader = readFrames(response);
  await reader.next();
  const rest = reader.rest();
  await server.stop();
  expect(await rest).toEqual([{ retry: '1000' }]);
  await expect(fetch(`${url}/health`)).rejects.toThrow('fetch failed');
  expect(test.lines.join()).toContain(`"url":"${url}"`);
});

it('fails to start if the port is in use', async () => {
  const test = await openTestApi();
  const { url } = await listen(test);
  const log = createLogger({ app: 'api', level: 'silent' });
  const port = Number(new URL(url).port);
  const second = new ApiServer({ api: test.api, host: '127.0.0.1', port, draining: new AbortController(), log });
  await expect(second.start()).rejects.toThrow('EADDRINUSE');
});

it('serves images with Content-Length, and HEAD without a body', async () => {
  const test = await openTestApi();
  const { url } = await listen(test);
  await startWorker(test.store);
  const id = await test.submit();
  const run = await runNext(test.store);
  await run.output(0, Buffer.alloc(300_000, 7), 99_999);
  await run.finish();
  const path = `${url}/v1/predict/${id}/images/0`;
  const response = await fetch(path);
  expect(response.headers.get('content-length')).toBe('300000');
  expect(Buffer.from(await response.arrayBuffer())).toEqual(Buffer.alloc(300_000, 7));
  const head = await fetch(path, { method: 'HEAD' });
  expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, '300000', '']);
});

it('stops reading an endless body', async () => {
  const test = await openTestApi();
  const { url } = await listen(test);
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' };
    const upload = request(`${url}/v1/predict`, { method: 'POST', headers }, (response) => {
      resolve(response.statusCode);
      upload.destroy();
    });
    const send = (): void => {
      if (!upload.destroyed) upload.write(Buffer.alloc(16_384, 0x20), send);
    };
    upload.on('error', reject);
    send();
  });
  expect(status).toBe(413);
});

it.runIf(process.platform === 'linux')(
  'has thousands of connections wait that come faster than it takes them',
  async ({ skip }) => {
    const most = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
    skip(most <= 511, 'The system has no more wait than a server of Node does by itself.');
    const { url } = await listen(await openTestApi());
    const port = Number(new URL(url).port);
    const count = Math.min(3000, most);
    const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1').on('error', () => {}));
    onTestFinished(() => sockets.forEach((socket) => socket.destroy()));
    await new Promise((resolve) => process.nextTick(resolve));
    // Column 2 is the remote address, column 3 the state (01: established).
    const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
    const countOpen = (): number => {
      const rows = readFileSync('/proc/net/tcp', 'utf8').split('\n');
      return rows
        .map((row) => row.trim().split(/ +/))
        .filter(([, , to, state]) => to?.endsWith(local) && state === '01').length;
    };
    // The server is blocked by this loop and cannot accept any. A busy kernel completes them a moment later.
    const pause = new Int32Array(new SharedArrayBuffer(4));
    let open = countOpen();
    for (let reads = 0; reads < 200 && open < count; reads++) {
      Atomics.wait(pause, 0, 0, 10);
      open = countOpen();
    }
    expect(open).toBe(count);
  },
);

it('keeps idle connections longer than proxies do', async () => {
  const { url } = await listen(await openTestApi());
  const response = await fetch(`${url}/health`);
  expect(Number(/timeout=(\d+)/.exec(response.headers.get('keep-alive') ?? '')?.[1])).toBeGreaterThan(60);
});

/** Sends raw bytes and returns everything that the server sends until it closes. */
async function exchange(url: string, text: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(text);
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  return answer;
}

it('answers requests without a Host header, as some health checks send', async () => {
  const { url } = await listen(await openTestApi());
  const answer = await exchange(url, 'GET /health HTTP/1.0\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
  expect(answer).toContain('"status":"degraded"');
});

it('treats a body that ends early as a client error', async () => {
  const test = await openTestApi();
  const { url } = await listen(test);
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const head =
    'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n';
  socket.write(`${head}{"prompt": "my secret`, () => socket.destroySoon());
  await expect.poll(() => test.lines.find((line) => line.includes('"request"'))).toContain('"status":400');
  expect(test.lines.join()).not.toMatch(/"level":"(?:error|warn)"|secret/);
});

it.each([
  ['with its length', (size: number) => 'x'.repeat(size)],
  ['in chunks', (size: number) => new Blob(['x'.repeat(size)]).stream()],
])('accepts a body %s, up to the size limit', async (_how, bodyOf) => {
  const test = await openTestApi({ config: { maxBodyBytes: 1000 } });
  const { url } = await listen(test);
  const post = async (size: number): Promise<unknown> => {
    const headers = { 'Content-Type': 'application/json' };
    const init = { method: 'POST', headers, body: bodyOf(size), duplex: 'half' } as RequestInit;
    const response = await fetch(`${url}/v1/predict`, init);
    return [response.status, ((await response.json()) as { error: { code: string } }).error.code];
  };
  expect(await post(1000)).toEqual([400, 'invalid_body']);
  expect(await post(1001)).toEqual([413, 'body_too_large']);
});

it('answers 400 to a large body that ends early', async () => {
  const test = await openTestApi();
  const { url } = await listen(test);
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  const head = ['POST /v1/predict HTTP/1.1', 'Host: localhost', 'Content-Type: application/json', 'Content-Length: 50'];
  socket.write([...head, 'Expect: 100-continue', '', '{"prompt":'].join('\r\n'));
  // The server has read the body up to here.
  await once(socket, 'data');
  socket.destroy();
  await expect.poll(() => test.lines.join()).toContain('"status":400');
});
