/** Concurrent event streams, and clients that stop reading. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Metrics } from '@darkroom/service';
import { allKeys, parseExposition, silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { type ApiKeys, hashKey } from '../auth/api-keys.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { listen } from '../testing/listen.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';
import type { ApiKey } from '../http/api-env.ts';

const idleMs = 60_000;

function keysOf(...names: string[]): ApiKeys {
  const unlimited: Omit<ApiKey, 'name'> = {
    weight: 1,
    requestsPerMinute: undefined,
    openRequests: undefined,
    isAdmin: false,
  };
  return new Map(names.map((name) => [hashKey(name), { ...unlimited, name }]));
}

function as(name: string, body?: object): RequestInit {
  const headers = { Authorization: `Bearer ${name}`, 'Content-Type': 'application/json' };
  return { headers, ...(body && { method: 'POST', body: JSON.stringify(body) }) };
}

/** Submits a request whose previews (16 MB) exceed all buffers of the connection. */
async function submitLarge(test: TestApi): Promise<string> {
  const id = await test.submit();
  await startWorker(test.store);
  const run = await runNext(test.store);
  for (let step = 1; step <= 16; step++) await run.progress(step, Buffer.alloc(1_000_000, step));
  return id;
}

/** Requests an event stream and never reads the response. */
async function openAndStall(url: string, id: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.pause();
  await once(socket, 'connect');
  socket.write(`GET /v1/predict/${id}/events HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return socket;
}

it('limits concurrent event streams per key', async () => {
  const metrics = new Metrics({ app: 'api', log: silentLogger() });
  const test = await openTestApi({ apiKeys: keysOf('alice', 'bob'), maxStreams: 2, metrics });
  const submitted = await test.api.request('/v1/predict', as('alice', { prompt: 'a fox' }));
  const { request_id: id } = (await submitted.json()) as { request_id: string };
  const open = (path: string, body?: object, name = 'alice'): Promise<Response> =>
    Promise.resolve(test.api.request(path, as(name, body)));
  const streams = [await open(`/v1/predict/${id}/events`), await open(`/replicate/v1/predictions/${id}/stream`)];
  expect(streams.map(({ status }) => status)).toEqual([200, 200]);
  const before = await allKeys(test.store);
  const kinds: [string, object?][] = [
    [`/v1/predict/${id}/events`],
    [`/replicate/v1/predictions/${id}/stream`],
    [`/fal/queue/darkroom/tiny/requests/${id}/status/stream`],
    ['/fal/run/darkroom/tiny/stream', { prompt: 'a fox' }],
    ['/v1/images/generations', { prompt: 'a fox', stream: true }],
  ];
  for (const [path, body] of kinds) {
    const refused = await open(path, body);
    expect([path, refused.status, refused.headers.get('retry-after')]).toEqual([path, 429, '1']);
    expect(await refused.text()).toContain('This key has 2 open event streams on this server');
  }
  expect(await allKeys(test.store)).toEqual(before);
  const bobs = await open('/v1/images/generations', { prompt: 'a fox', stream: true }, 'bob');
  expect(bobs.status).toBe(200);
  await streams[0]!.body?.cancel();
  // A stream that fails to open does not count toward the limit.
  expect((await open('/v1/predict/tiny-00000000000000000000000000/events')).status).toBe(404);
  const again = await open(`/v1/predict/${id}/events`);
  expect(again.status).toBe(200);
  const page = parseExposition(await metrics.expose());
  expect(page.value('darkroom_event_streams_refused_total', { app: 'api' })).toBe(5);
  for (const { body } of [again, streams[1]!, bobs]) await body?.cancel();
});

it('cuts a stream whose client stops reading, and frees its slot', async () => {
  const metrics = new Metrics({ app: 'api', log: silentLogger() });
  const test = await openTestApi({ maxStreams: 1, metrics });
  const { url } = await listen(test);
  const id = await submitLarge(test);
  const socket = await openAndStall(url, id);
  await expect.poll(() => test.hub.size).toBe(1);
  await expect
    .poll(() => {
      test.tick(idleMs);
      return [test.hub.size, test.timers()];
    })
    .toEqual([0, 0]);
  // The client reads the data that the kernel had buffered, then the connection closes.
  socket.on('error', () => {}).resume();
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
  expect(test.lines.join('')).toContain('event stream cut: client stopped reading');
  const page = parseExposition(await metrics.expose());
  const route = '/v1/predict/:id/events';
  expect(page.value('darkroom_event_streams_cut_total', { app: 'api', route })).toBe(1);
  expect(page.value('darkroom_event_streams', { app: 'api', route })).toBe(0);
  expect((await fetch(`${url}/v1/predict/${id}/events`, { method: 'HEAD' })).status).toBe(200);
});

it('does not cut an idle stream whose client has read everything', async () => {
  const test = await openTestApi();
  const { url } = await listen(test);
  const id = await submitLarge(test);
  const reader = readFrames(await fetch(`${url}/v1/predict/${id}/events`));
  for (let frame = 0; frame < 18; frame++) await reader.next();
  const next = reader.next();
  await expect.poll(() => test.timers()).toBe(2);
  test.tick(idleMs);
  await test.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  await reader.cancel();
  await next;
  expect(test.lines.join('')).not.toContain('event stream cut');
});

it('writes a large frame in chunks of at most 64 KiB', async () => {
  const test = await openTestApi();
  const id = await submitLarge(test);
  const response = await test.api.request(`/v1/predict/${id}/events?after=2-0`);
  const reader = response.body!.getReader();
  let text = '';
  while (!text.endsWith('\n\n')) {
    const { value } = await reader.read();
    expect(value!.length).toBeLessThanOrEqual(65_536);
    text += Buffer.from(value ?? []).toString();
  }
  expect(text).toMatch(/^id: 3-0\nevent: progress\ndata: \{.*\}\n\n$/);
  expect(text.length).toBeGreaterThan(1_300_000);
  await reader.cancel();
});

it('when the server stops, aborts a Replicate stream after the data written so far, and logs no error', async () => {
  const error = vi.spyOn(console, 'error');
  onTestFinished(() => error.mockRestore());
  const test = await openTestApi();
  const { url } = await listen(test);
  const id = await test.submit();
  await startWorker(test.store);
  const run = await runNext(test.store);
  await run.progress(1);
  const reader = readFrames(await fetch(`${url}/replicate/v1/predictions/${id}/stream`));
  expect(await reader.next()).toMatchObject({ event: 'logs' });
  test.draining.abort();
  await expect(reader.rest()).rejects.toThrow('terminated');
  await expect.poll(() => [test.hub.size, test.timers()]).toEqual([0, 0]);
  expect(error).not.toHaveBeenCalled();
  expect(test.lines.join('')).not.toContain('"level":"error"');
});
