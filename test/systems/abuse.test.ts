/** Clients that mean harm, or might: what they send is refused, memory stays bounded, and others are served meanwhile. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { allKeys, parseExposition } from '@darkroom/testing';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ended, poll, submit } from '../e2e/client.ts';
import { patience, startSystem, stopSystem, type System } from '../e2e/system.ts';

const quick = { prompt: 'a red apple on a white background', num_inference_steps: 2, preview: 'off' };
/** More than any of this may cost an API while it lasts, beside what 5,000 streams take (50 KB each). */
const spare = 150e6;
const streamsMax = 5000;

let system: System;
beforeAll(async () => {
  system = await startSystem({ environment: { ...patience, EVENT_STREAM_IDLE_S: '1' } });
});
afterAll(() => stopSystem(system));

/** A connection of a test, with something said on it. */
async function dial(said = ''): Promise<Socket> {
  const { hostname, port } = new URL(system.url);
  const socket = connect(Number(port), hostname);
  // It is closed on us sooner or later.
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  if (said !== '') socket.write(said);
  return socket;
}

/** Resolves when it is closed, in whatever way. */
function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())));
}

/** All that is answered until the connection is closed. */
async function answerOf(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  await closing(socket);
  return Buffer.concat(chunks).toString('latin1');
}

/** One request in so many bytes, and the status of its answer; the connection is to be closed behind it. */
async function statusOf(request: string): Promise<number> {
  const answer = await answerOf(await dial(request));
  return Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? Number.NaN);
}

function get(path: string, headers: readonly string[] = []): string {
  return [`GET ${path} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers, '', ''].join('\r\n');
}

/** Resident memory of the API. */
async function memory(): Promise<number> {
  const page = await (await fetch(`${system.part('api').metricsUrl}/metrics`)).text();
  return parseExposition(page).value('process_resident_memory_bytes', { app: 'api' }) ?? Number.NaN;
}

/** Somebody else gets a picture. */
async function othersAreServed(): Promise<void> {
  expect(await ended(system.url, await submit(system.url, quick))).toBe('succeeded');
}

/** Where a request is followed that has not ended for as long as the test lasts. */
async function openEvents(): Promise<string> {
  const id = await submit(system.url, { ...quick, num_inference_steps: 200 });
  onTestFinished(async () => void (await fetch(`${system.url}/v1/predict/${id}`, { method: 'DELETE' })));
  return `/v1/predict/${id}/events`;
}

describe('connections', () => {
  it('that never finish their headers, or their bodies, keep nobody out', async () => {
    const before = await memory();
    const headers = 'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nX-Slow: ';
    const body = `${headers}1\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`;
    const slow = await Promise.all(Array.from({ length: 2000 }, (_value, index) => dial(index % 2 ? body : headers)));
    await othersAreServed();
    for (const socket of slow) socket.write('a');
    await othersAreServed();
    expect((await memory()) - before).toBeLessThan(spare);
  });

  it('that send two requests as one, or headers without end, are closed', async () => {
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

  it('without end are refused when they are too long, whatever their headers say', async () => {
    const before = await memory();
    const head =
      'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    const sockets = await Promise.all(Array.from({ length: 100 }, () => dial(head)));
    const answers = sockets.map(async (socket) => {
      const answer = answerOf(socket);
      const isOpen = (): boolean => !socket.destroyed && !socket.readableEnded;
      // Until it is hung up on; 64 MB of each at most.
      for (let sent = 0; sent < 1024 && isOpen(); sent++)
        if (!socket.write(chunk))
          await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closing(socket)]);
      socket.end();
      return answer;
    });
    for (const answer of await Promise.all(answers))
      expect(answer === '' || answer.startsWith('HTTP/1.1 413')).toBe(true);
    expect((await memory()) - before).toBeLessThan(spare);
    await othersAreServed();
  });

  it.each([
    ['arrays', '['.repeat(500_000) + ']'.repeat(500_000)],
    ['objects', `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`],
    ['a field of arrays', `{"prompt":${'['.repeat(500_000)}${']'.repeat(500_000)}}`],
    ['brackets without end', '['.repeat(1_000_000)],
    [
      'a field that is ignored',
      `{"messages":[{"role":"user","content":"a"}],"metadata":${'['.repeat(400_000)}${']'.repeat(400_000)}}`,
    ],
    ['names', `{${Array.from({ length: 60_000 }, (_value, index) => `"n${index}":0`).join(',')}}`],
    ['__proto__', '{"__proto__":{"prompt":"a red apple"},"constructor":{"prototype":{"prompt":"a"}}}'],
  ])('of %s are 400', async (_name, body) => {
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
  it('a hundred thousand ids that never were cost nothing but their answers', async () => {
    const before = { keys: await allKeys(system.store), memory: await memory() };
    const count = 100_000;
    const connections = 50;
    const statuses = await Promise.all(
      Array.from({ length: connections }, async (_value, connection) => {
        const socket = await dial();
        const seen = new Map<string, number>();
        const each = count / connections;
        let asked = 0;
        const ask = (): void => {
          const id = `emoji-sd-${(connection * each + asked).toString(32).padStart(26, '0')}`;
          asked += 1;
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
              else if (asked < each) ask();
            }
          });
        });
        for (let open = 0; open < 10; open++) ask();
        await done;
        return seen;
      }),
    );
    const answered = statuses.map((seen) => [...seen]);
    expect(answered).toEqual(statuses.map(() => [['404', count / connections]]));
    expect(await allKeys(system.store)).toEqual(before.keys);
    expect((await memory()) - before.memory).toBeLessThan(spare);
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
  ])('%s is not there', async (path) => {
    const answer = await answerOf(await dial(get(path)));
    expect(Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1])).toSatisfy(
      (status: number) => status >= 400 && status < 500,
    );
    expect(answer).not.toMatch(/root:|"name": "darkroom"|^Set-Cookie/im);
  });

  it('a header that is said back says no other header', async () => {
    const said = [
      'X-Request-Id: a%0d%0aSet-Cookie: b=c',
      'Idempotency-Key: a%0d%0aSet-Cookie: b=c',
      'Last-Event-ID: 1%0d%0aa: b',
    ];
    const answer = await answerOf(await dial(get('/v1/predict/none/events?after=%0d%0aSet-Cookie:%20b', said)));
    expect(answer).not.toMatch(/^set-cookie/im);
  });
});

describe('streams', () => {
  it('that nobody reads are closed, and hold no memory', async () => {
    const before = await memory();
    const request = get(await openEvents());
    const streams = await Promise.all(Array.from({ length: 300 }, async () => (await dial(request)).pause()));
    await othersAreServed();
    expect((await memory()) - before).toBeLessThan(spare);
    for (const stream of streams) stream.destroy();
  });

  it('ten thousand at once: as many as may be are served, the others told so', async () => {
    const before = await memory();
    // Nothing is to be said to them all.
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
    expect(count('200')).toBeLessThanOrEqual(streamsMax);
    // 503: not so fast.
    expect(count('200', '429', '503')).toBe(10_000);
    expect(count('200')).toBeGreaterThan(500);
    expect(count('429')).toBeGreaterThan(500);
    expect((await poll(system.url, await submit(system.url, quick))).status).toBe('queued');
    expect((await memory()) - before).toBeLessThan(spare + streamsMax * 50e3);
  }, 300_000);
});
