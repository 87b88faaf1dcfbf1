import type { StoredEvent } from '@darkroom/core';
import { cancelRequest, type EventHub, readEvents, readRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { checkMs, heartbeatMs } from '../follow/tail-events.ts';
import { endOverdue } from '../testing/end-overdue.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { type Frame, readFrames, type SseReader } from '../testing/sse-reader.ts';
import { openTestApi, type TestApi } from '../testing/test-api.ts';

const done: Frame = { data: '[DONE]' };
const preview = new Uint8Array([0, 10, 255]);

async function open(test: TestApi, id: string, lastEventId?: string): Promise<SseReader> {
  const headers: Record<string, string> = lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId };
  const response = await test.api.request(`/v1/predict/${id}/events`, { headers });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  return readFrames(response);
}

function dataOf(frame: Frame | undefined): Record<string, unknown> {
  return JSON.parse(frame?.data ?? 'null') as Record<string, unknown>;
}

const namesOf = (frames: readonly Frame[]): (string | undefined)[] => frames.map(({ event, data }) => event ?? data);

/** Returns the time at which Redis wrote an event. */
async function timeOf({ store }: TestApi, id: string, sequence: number): Promise<string> {
  const [event] = await readEvents(store, id, { after: sequence - 1, limit: 1 });
  return new Date(event!.timestampMs).toISOString();
}

/** Deletes the keys of a request, as its expiry does. */
async function forget({ store }: TestApi, id: string): Promise<void> {
  const keys = store.keysOf('tiny');
  await store.redis.del(keys.request(id), keys.events(id));
}

/** Runs a request with two images, the second in three chunks. */
async function runToEnd(test: TestApi): Promise<string> {
  await startWorker(test.store);
  const id = await test.submit({ n: 2 });
  const run = await runNext(test.store);
  await run.progress(1, preview);
  await run.progress(2);
  await run.output(0, Buffer.from('small'));
  await run.output(1, Buffer.from('a larger image'), 6);
  await run.finish();
  return id;
}

/** Drops published messages, like a broken connection. */
function lossy(isLost: (event: StoredEvent) => boolean) {
  return (hub: EventHub): EventHub => ({
    ...hub,
    get size() {
      return hub.size;
    },
    subscribe: (id, listener) => hub.subscribe(id, (event) => isLost(event) || listener(event)),
  });
}

describe('the events of a request', () => {
  it('show a preview whose bytes have expired as progress', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    const run = await runNext(test.store);
    await run.entry({ type: 'preview', done: 1, total: 4, contentType: 'image/jpeg' });
    await run.finish();
    const [, , frame] = await (await open(test, id)).rest();
    expect(frame?.event).toBe('progress');
    expect(dataOf(frame)).toEqual({
      request_id: id,
      timestamp: await timeOf(test, id, 3),
      index: 0,
      step: 1,
      total_steps: 4,
      progress: 0.25,
    });
  });

  it('are complete after the end, on any replica', async () => {
    const test = await openTestApi();
    const id = await runToEnd(test);
    const frames = await (await open(test.replica(), id)).rest();
    expect(namesOf(frames)).toEqual([
      'queued',
      'started',
      'progress',
      'progress',
      'image',
      'image',
      'image',
      'image',
      'succeeded',
      '[DONE]',
    ]);
    expect(frames.slice(0, -1).map((frame) => frame.id)).toEqual(
      frames.slice(1).map((_frame, index) => `${index + 1}-0`),
    );
    expect(frames.at(-1)).toEqual(done);
    const [queued, started, first, second] = frames.slice(0, 4).map((frame) => dataOf(frame));
    expect(queued).toMatchObject({ request_id: id, queue_position: 0, attempt: 1 });
    expect(started).toMatchObject({ request_id: id, attempt: 1 });
    const progress = { request_id: id, index: 0, total_steps: 4 };
    expect(first).toEqual({ ...progress, timestamp: await timeOf(test, id, 3), step: 1, progress: 0.25 });
    expect(second).toEqual({ ...progress, timestamp: await timeOf(test, id, 4), step: 2, progress: 0.5 });
  });

  it('include previews until the end, and only progress for later clients', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    const live = await open(test, id);
    const run = await runNext(test.store);
    await run.progress(1, preview);
    await run.progress(2);
    const resumed = await open(test.replica(), id, '2-0');
    expect(namesOf([(await live.next())!, (await live.next())!])).toEqual(['queued', 'started']);
    for (const reader of [live, resumed]) {
      const [withPreview, without] = [dataOf(await reader.next()), dataOf(await reader.next())];
      expect(withPreview).toMatchObject({ step: 1, preview: 'data:image/webp;base64,AAr/' });
      expect(without).not.toHaveProperty('preview');
    }
    await run.output(0, Buffer.from('image'));
    await run.finish();
    for (const reader of [live, resumed])
      expect(namesOf(await reader.rest())).toEqual(['image', 'succeeded', '[DONE]']);
    const later = await (await open(test, id, '2-0')).rest();
    expect(namesOf(later)).toEqual(['progress', 'progress', 'image', 'succeeded', '[DONE]']);
    expect(dataOf(later[0])).toMatchObject({ step: 1, progress: 0.25 });
    expect(dataOf(later[0])).not.toHaveProperty('preview');
    expect(await test.store.redis.exists(test.store.keysOf('tiny').previews(id))).toBe(0);
  });

  it('report a queued request before its log exists, on any replica', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    expect(await test.store.redis.exists(test.store.keysOf('tiny').events(id))).toBe(0);
    const found = await readRequest(test.store, id);
    const createdAtMs = found.status === 'found' ? found.request.createdAtMs : 0;
    const reader = await open(test.replica(), id);
    const queued = await reader.next();
    expect([queued?.id, queued?.event]).toEqual(['1-0', 'queued']);
    const data = { request_id: id, timestamp: new Date(createdAtMs).toISOString(), queue_position: 0, attempt: 1 };
    expect(dataOf(queued)).toEqual(data);
    await reader.cancel();
    const resumed = await open(test, id, '1-0');
    await startWorker(test.store);
    await (await runNext(test.store)).finish();
    expect(namesOf(await resumed.rest())).toEqual(['started', 'succeeded', '[DONE]']);
    const [again] = await (await open(test, id)).rest();
    expect(again).toEqual(queued);
  });

  it('contain the images in chunks whose base64 can be concatenated', async () => {
    const test = await openTestApi();
    const id = await runToEnd(test);
    const frames = await (await open(test, id, '4-0')).rest();
    const [whole, ...chunks] = frames.slice(0, 4).map((frame) => dataOf(frame));
    expect(whole).toEqual({
      request_id: id,
      timestamp: await timeOf(test, id, 5),
      index: 0,
      url: `/v1/predict/${id}/images/0`,
      seed: 42,
      width: 128,
      height: 128,
      content_type: 'image/png',
      bytes: 5,
      chunk_id: `${id}-0-0`,
      chunk_index: 0,
      total_chunks: 1,
      is_chunked: false,
      is_final: true,
      b64: Buffer.from('small').toString('base64'),
    });
    expect(chunks.map((chunk) => [chunk['chunk_index'], chunk['is_chunked'], chunk['is_final']])).toEqual([
      [0, true, false],
      [1, true, false],
      [2, true, true],
    ]);
    const joined = chunks.map((chunk) => String(chunk['b64'])).join('');
    expect(Buffer.from(joined, 'base64').toString()).toBe('a larger image');
    expect(dataOf(frames[4])['images']).toMatchObject([
      { index: 0, bytes: 5 },
      { index: 1, bytes: 14 },
    ]);
  });

  it('give the same sequence when resumed after any event id', async () => {
    const test = await openTestApi();
    const id = await runToEnd(test);
    const all = await (await open(test, id)).rest();
    for (let seen = 0; seen < all.length; seen++) {
      for (const position of [`${seen}-0`, String(seen)])
        expect(await (await open(test.replica(), id, position)).rest()).toEqual(all.slice(seen));
      const byQuery = await test.api.request(`/v1/predict/${id}/events?after=${seen}`);
      expect(await readFrames(byQuery).rest()).toEqual(all.slice(seen));
    }
    // An id that a failover of Redis has lost.
    const afterMore = await open(test, id, '9999999999999-0');
    expect(await afterMore.rest()).toEqual(all.slice(-2));
    const both = { headers: { 'Last-Event-ID': '8-0' } };
    const reconnected = await test.api.request(`/v1/predict/${id}/events?after=2`, both);
    expect(await readFrames(reconnected).rest()).toEqual(all.slice(8));
  });

  it('reach any number of clients on any replica live', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    const replica = test.replica();
    const readers = [await open(test, id), await open(test, id), await open(replica, id)];
    const next = async (): Promise<(string | undefined)[]> =>
      namesOf((await Promise.all(readers.map((reader) => reader.next()))).map((frame) => frame ?? {}));
    expect(await next()).toEqual(['queued', 'queued', 'queued']);
    expect([test.hub.size, replica.hub.size]).toEqual([1, 1]);
    const run = await runNext(test.store);
    expect(await next()).toEqual(['started', 'started', 'started']);
    await run.progress(1);
    expect(await next()).toEqual(['progress', 'progress', 'progress']);
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'Nothing came of it.' } });
    expect(await next()).toEqual(['failed', 'failed', 'failed']);
    expect(await next()).toEqual(['[DONE]', '[DONE]', '[DONE]']);
    expect(await Promise.all(readers.map((reader) => reader.next()))).toEqual([undefined, undefined, undefined]);
    expect([test.hub.size, test.timers(), replica.timers()]).toEqual([0, 0, 0]);
  });

  it('make the worker write progress events while a client reads', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    const reader = await open(test, id);
    await reader.next();
    const request = test.store.keysOf('tiny').request(id);
    await test.store.redis.hdel(request, 'followedUntilMs');
    const next = reader.next();
    test.tick(checkMs);
    await expect.poll(() => test.store.redis.hexists(request, 'followedUntilMs')).toBe(1);
    await cancelRequest(test.store, id);
    expect((await next)?.event).toBe('canceled');
    await reader.cancel();
  });

  it.each([
    ['before', 1],
    ['at', 2],
  ])('report an end %s the position that a failover of Redis has lost', async (_when, steps) => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    const run = await runNext(test.store);
    const reader = await open(test, id);
    await run.progress(1);
    const keys = test.store.keysOf('tiny');
    const ofReplica = await Promise.all(
      [keys.events(id), keys.request(id)].map(async (key) => ({ key, value: await test.store.redis.dumpBuffer(key) })),
    );
    for (let step = 2; step <= 3; step++) await run.progress(step);
    for (let frame = 0; frame < 5; frame++) await reader.next();
    for (const { key, value } of ofReplica) await test.store.redis.restore(key, 0, value, 'REPLACE');
    for (let step = 2; step <= steps; step++) await run.progress(step);
    await run.finish();
    const rest = reader.rest();
    test.tick(checkMs);
    expect(namesOf(await rest)).toEqual(['succeeded', '[DONE]']);
  });

  it('report how the request ended', async () => {
    const test = await openTestApi();
    const canceled = await test.submit();
    await cancelRequest(test.store, canceled);
    expect(namesOf(await (await open(test, canceled)).rest())).toEqual(['queued', 'canceled', '[DONE]']);
    const expired = await test.submit();
    await endOverdue(test.store, expired);
    expect(namesOf(await (await open(test, expired)).rest())).toEqual(['queued', 'expired', '[DONE]']);
  });

  it('return a JSON 400 for an invalid position', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    for (const position of ['abc', '-1', '7-1', '1e3', '99999999999999', ' '.repeat(3) + 'x'])
      expect((await test.api.request(`/v1/predict/${id}/events?after=${position}`)).status).toBe(400);
    const response = await test.api.request(`/v1/predict/${id}/events`, { headers: { 'Last-Event-ID': 'abc' } });
    expect(await response.json()).toMatchObject({
      message: 'Last-Event-ID is "abc", expected the id of an event, such as 7-0',
      error: { param: 'Last-Event-ID', code: 'invalid_value' },
    });
    expect((await test.api.request('/v1/predict/tiny-00000000000000000000000000/events')).status).toBe(404);
  });
});

describe('when Redis loses messages', () => {
  it('reads the missing events from the log', async () => {
    const test = await openTestApi({ wrapHub: lossy(({ type }) => type === 'started' || type === 'progress') });
    await startWorker(test.store);
    const id = await test.submit();
    const reader = await open(test, id);
    expect((await reader.next())?.event).toBe('queued');
    const run = await runNext(test.store);
    await run.progress(1);
    await run.progress(2);
    await run.output(0, Buffer.from('x'));
    expect(namesOf((await Promise.all([1, 2, 3, 4].map(() => reader.next()))).map((frame) => frame ?? {}))).toEqual([
      'started',
      'progress',
      'progress',
      'image',
    ]);
    await reader.cancel();
  });

  it('finds the end by polling', async () => {
    const test = await openTestApi({ wrapHub: lossy(() => true) });
    await startWorker(test.store);
    const id = await test.submit();
    const reader = await open(test, id);
    expect((await reader.next())?.event).toBe('queued');
    await (await runNext(test.store)).finish();
    const rest = reader.rest();
    test.tick(checkMs);
    expect(namesOf(await rest)).toEqual(['started', 'succeeded', '[DONE]']);
  });

  it('is cut when the results expire, and a reconnect returns 410', async () => {
    const test = await openTestApi({ wrapHub: lossy(() => true) });
    const id = await test.submit();
    const reader = await open(test, id);
    await reader.next();
    await forget(test, id);
    const rest = reader.rest();
    test.tick(checkMs);
    expect(await rest).toEqual([]);
    expect((await test.api.request(`/v1/predict/${id}/events`)).status).toBe(410);
  });

  it('is cut at an image whose bytes expired before the log', async () => {
    const test = await openTestApi();
    const id = await runToEnd(test);
    const reader = await open(test, id, '4-0');
    await test.store.redis.del(test.store.keysOf('tiny').output(id, 1));
    expect(namesOf(await reader.rest())).toEqual(['image']);
  });

  it('is not empty if the log expires just before it is read', async () => {
    const test = await openTestApi();
    const id = await runToEnd(test);
    const reader = await open(test, id);
    await forget(test, id);
    expect(await reader.rest()).toEqual([]);
  });
});

describe('the connection', () => {
  it('is kept alive by comments', async () => {
    const test = await openTestApi();
    const reader = await open(test, await test.submit());
    await reader.next();
    for (let time = 0; time < 2; time++) {
      const next = reader.next();
      test.tick(heartbeatMs);
      expect(await next).toEqual({ comment: 'heartbeat' });
    }
    await reader.cancel();
  });

  it('frees all resources when the client disconnects', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    const readers = [await open(test, id), await open(test, id)];
    await Promise.all(readers.map((reader) => reader.next()));
    const waiting = readers[0]!.next();
    await readers[0]!.cancel();
    await waiting;
    expect([test.hub.size, test.timers()]).toEqual([1, 3]);
    await readers[1]!.cancel();
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
    await test.api.request(`/v1/predict/${id}/events`, { method: 'HEAD' });
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
  });

  it('buffers almost nothing for a client that does not read', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const id = await test.submit();
    const reader = await open(test, id);
    await reader.next();
    const run = await runNext(test.store);
    for (let step = 1; step <= 100; step++) await run.progress(step, preview);
    await run.finish();
    const frames = await reader.rest();
    expect(frames.map((frame) => frame.id).slice(0, -1)).toEqual(
      Array.from({ length: 102 }, (_value, index) => `${index + 2}-0`),
    );
  });

  it('sends clients to another replica when the process stops', async () => {
    const test = await openTestApi();
    const id = await test.submit();
    const reader = await open(test, id);
    await reader.next();
    const rest = reader.rest();
    test.draining.abort();
    expect(await rest).toEqual([{ retry: '1000' }]);
    expect(await (await open(test, id)).rest()).toEqual([{ retry: '1000' }]);
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
  });
});
