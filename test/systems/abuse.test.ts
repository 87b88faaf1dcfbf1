/** Abusive clients: the API refuses their input, keeps its memory bounded, and serves other clients meanwhile. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { allKeys, parseExposition } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ended, poll, submit } from '../e2e/client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';

const quick = { prompt: 'a red apple on a white background', num_inference_steps: 2, preview: 'off' };
/** Maximum growth of the API's resident memory during a test, bytes. Open event streams may add 50 KB each. */
const maxGrowthBytes = 150e6;
const maxStreams = 5000;

let system: System;
beforeAll(async () => {
  system = await startSystem({ environment: longWorkerTtl });
});
afterAll(() => stopSystem(system));

/** Opens a TCP connection to the API and writes `data`. The connection is destroyed when the test ends. */
async function dial(data = ''): Promise<Socket> {
  const { hostname, port } = new URL(system.url);
  const socket = connect(Number(port), hostname);
  // The API closes most of these connections.
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  if (data !== '') socket.write(data);
  return socket;
}

/** Resolves when the socket is closed, with or without an error. */
function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));
}

/** Returns all data that the API sends until the connection is closed. */
async function answerOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await closing(socket);
  return Buffer.concat(chunks).toString('latin1');
}

/** Sends a raw request that makes the API close the connection; returns the status, NaN without an answer. */
async function statusOf(request: string): Promise<number> {
  const answer = await answerOf(await dial(request));
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? Number.NaN);
}

function get(path: string, headers: readonly string[] = []): string {
  return [`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers, '', ''].join('\r\n');
}

/** Returns the resident memory of the API, bytes. */
async function memory(): Promise<number> {
  const page = await (await fetch(`${system.part('api').metricsUrl}/metrics`)).text();
  return parseExposition(page).value('process_resident_memory_bytes', { app: 'api' }) ?? Number.NaN;
}

/** Checks that another client's request succeeds. */
async function othersAreServed(): Promise<void> {
  expect(await ended(system.url, await submit(system.url, quick))).toBe('succeeded');
}

/** Submits a long request, canceled when the test ends; returns the path of its event stream. */
async function openEvents(): Promise<string> {
  const id = await submit(system.url, { ...quick, num_inference_steps: 200 });
  onTestFinished(async () => void (await fetch(`${system.url}/v1/predict/${id}`, { method: 'DELETE' })));
  return `/v1/predict/${id}/events`;
}

describe('connections', () => {
  it('serves other clients while 2,000 connections never finish their headers or bodies (slowloris)', async () => {
    const before = await memory();
    const headers = 'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: ';
    const body = `${headers}1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
    const slow = await Promise.all(Array.from({ length: 2000 }, (_value, index) => dial(index % 2 ? body : headers)));
    await othersAreServed();
    for (const socket of slow) socket.write('a');
    await othersAreServed();
    expect((await memory()) - before).toBeLessThan(maxGrowthBytes);
  });

  it('rejects request smuggling with 400 and oversized or too many headers with 431', async () => {
    const smuggled =
      'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';
    expect(await statusOf(smuggled)).toBe(400);
    expect(await statusOf('GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\rb: c\r\n\r\n')).toBe(400);
    expect(await statusOf(get('/health', [`X-Long: ${'a'.repeat(70_000)}`]))).toBe(431);
    expect(
      await statusOf(
        get(
          '/health',
          Array.from({ length: 3000 }, (_value, index) => `X-${index}: ${'b'.repeat(20)}`),
        ),
      ),
    ).toBe(431);
    await othersAreServed();
  });
});

describe('bodies', () => {
  const chunk = `${(65_536).toString(16)}\r\n${' '.repeat(65_536)}\r\n`;

  it('refuses endless chunked bodies: with 413 beyond the limit, or 503 if many of them fill the memory', async () => {
    const before = await memory();
    const head =
      'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const sockets = await Promise.all(Array.from({ length: 100 }, () => dial(head)));
    const answers = sockets.map(async (socket) => {
      const answer = answerOf(socket);
      const isOpen = (): boolean => !socket.destroyed && !socket.readableEnded;
      // Sends until the API closes the connection, at most 64 MB on each.
      for (let sent = 0; sent < 1024 && isOpen(); sent++)
        if (!socket.write(chunk))
          await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closing(socket)]);
      socket.end();
      return answer;
    });
    const received = (await Promise.all(answers)).filter((answer) => answer !== '');
    const refusal = /^HTTP\/1\.1 (?:413 |503 [^]*\r\nretry-after: \d+\r\n)/i;
    for (const answer of received) expect(answer).toMatch(refusal);
    expect(received.some((answer) => answer.startsWith('HTTP/1.1 413'))).toBe(true);
    expect((await memory()) - before).toBeLessThan(maxGrowthBytes);
    await othersAreServed();
  });

  it.each([
    ['deeply nested arrays', '['.repeat(500_000) + ']'.repeat(500_000)],
    ['deeply nested objects', `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`],
    ['deeply nested arrays in a field', `{"prompt":${'['.repeat(500_000)}${']'.repeat(500_000)}}`],
    ['unclosed brackets', '['.repeat(1_000_000)],
    [
      'deeply nested arrays in an ignored field',
      `{"messages":[{"role":"user","content":"a"}],"metadata":${'['.repeat(400_000)}${']'.repeat(400_000)}}`,
    ],
    ['60,000 property names', `{${Array.from({ length: 60_000 }, (_value, index) => `"n${index}":0`).join(',')}}`],
    ['__proto__ properties', '{"__proto__":{"prompt":"a red apple"},"constructor":{"prototype":{"prompt":"a"}}}'],
  ])('rejects a body of %s on every route', async (_name, body) => {
    const headers = { 'content-type': 'application/json' };
    const routes = ['/v1/predict', '/v1/images/generations', '/v1/chat/completions', '/v1/responses', '/generate'];
    for (const route of routes) {
      const answer = await fetch(system.url + route, { method: 'POST', headers, body });
      expect([route, answer.status]).toEqual([
        route,
        expect.toSatisfy((status: number) => status === 400 || status === 404),
      ]);
      expect((await answer.text()).length).toBeLessThan(4000);
    }
  });
});

describe('ids and paths', () => {
  it('answers 404 to 100,000 unknown request ids without creating keys or growing in memory', async () => {
    const before = { keys: await allKeys(system.store), memory: await memory() };
    const count = 100_000;
    const connections = 50;
    const statuses = await Promise.all(
      Array.from({ length: connections }, async (_value, connection) => {
        const socket = await dial();
        const seen = new Map<string, number>();
        const each = count / connections;
        let sent = 0;
        const sendNext = (): void => {
          const id = `emoji-sd-${(connection * each + sent).toString(32).padStart(26, '0')}`;
          sent += 1;
          socket.write(`GET /v1/predict/${id} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
        };
        let rest = '';
        let answers = 0;
        const done = new Promise<void>((resolve) => {
          socket.on('data', (data: Buffer) => {
            const text = rest + data.toString('latin1');
            const found = [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)];
            rest = text.slice(found.length === 0 ? -12 : Math.max(found.at(-1)!.index + 12, text.length - 12));
            for (const [, status = ''] of found) {
              seen.set(status, (seen.get(status) ?? 0) + 1);
              if (++answers === each) resolve();
              else if (sent < each) sendNext();
            }
          });
        });
        for (let open = 0; open < 10; open++) sendNext();
        await done;
        return seen;
      }),
    );
    const answered = statuses.map((seen) => [...seen]);
    expect(answered).toEqual(statuses.map(() => [['404', count / connections]]));
    expect(await allKeys(system.store)).toEqual(before.keys);
    expect((await memory()) - before.memory).toBeLessThan(maxGrowthBytes);
    await othersAreServed();
  }, 300_000);

  it.each([
    '/../../../../etc/passwd',
    '/..%2f..%2f..%2fetc%2fpasswd',
    '/%2e%2e/%2e%2e/package.json',
    '/page/..%5c..%5cpackage.json',
    '/v1/predict/..%2f..%2fadmin',
    '/v1/predict/%00',
    '/v1/predict/%zz',
    '/v1/predict/__proto__',
    '/v1/predict/constructor/images/0',
    '/v1/predict/%0d%0aSet-Cookie:%20a=b',
    '//evil.example/v1/models',
    'http://evil.example/v1/predict/none',
    `/v1/predict/${'a'.repeat(10_000)}`,
  ])('answers 4xx to %s without exposing files or headers (path traversal)', async (path) => {
    const answer = await answerOf(await dial(get(path)));
    expect(Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])).toSatisfy(
      (status: number) => status >= 400 && status < 500,
    );
    expect(answer).not.toMatch(/root:|"name": "darkroom"|^Set-Cookie/im);
  });

  it('prevents header injection through values that the API echoes', async () => {
    const headers = [
      'X-Request-Id: a%0d%0aSet-Cookie: b=c',
      'Idempotency-Key: a%0d%0aSet-Cookie: b=c',
      'Last-Event-ID: 1%0d%0aa: b',
    ];
    const answer = await answerOf(await dial(get('/v1/predict/none/events?after=%0d%0aSet-Cookie:%20b', headers)));
    expect(answer).not.toMatch(/^set-cookie/im);
  });
});

describe('streams', () => {
  it('keeps memory bounded while 300 clients do not read their event streams', async () => {
    const before = await memory();
    const request = get(await openEvents());
    const streams = await Promise.all(Array.from({ length: 300 }, async () => (await dial(request)).pause()));
    await othersAreServed();
    expect((await memory()) - before).toBeLessThan(maxGrowthBytes);
    for (const stream of streams) stream.destroy();
  });

  it('serves event streams up to the limit when 10,000 connect at once, and refuses the others', async () => {
    const before = await memory();
    // Without a worker there are no events to send to all streams.
    await system.part('worker').stop();
    const request = get(await openEvents());
    const firsts = await Promise.all(
      Array.from({ length: 10_000 }, async () => {
        const socket = await dial(request);
        const [data] = (await once(socket, 'data')) as [Buffer];
        return data.toString('latin1', 9, 12);
      }),
    );
    const count = (...statuses: string[]): number => firsts.filter((status) => statuses.includes(status)).length;
    expect(count('200')).toBeLessThanOrEqual(maxStreams);
    // 503: too many requests were in progress at once.
    expect(count('200', '429', '503')).toBe(10_000);
    expect(count('200')).toBeGreaterThan(500);
    expect(count('429')).toBeGreaterThan(500);
    expect((await poll(system.url, await submit(system.url, quick))).status).toBe('queued');
    expect((await memory()) - before).toBeLessThan(maxGrowthBytes + maxStreams * 50e3);
  }, 300_000);
});
