/** A worker's writes to Redis: number of calls, retries, and how text deltas are merged and rewritten. */
import { setImmediate } from 'node:timers/promises';
import type { StoredEvent } from '@darkroom/core';
import type { ExecutorEvent } from '@darkroom/executor';
import {
  connectStore,
  dispatchRequests,
  readEvents,
  readRequest,
  readTexts,
  type StoreConnection,
} from '@darkroom/store';
import { startPrivateRedis } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { WorkerOptions } from '../../apps/worker/src/worker/worker-options.ts';
import {
  type Encoded,
  kindsOf,
  type FakeExecutor,
  free,
  lease,
  pixels,
  stateOf,
  submit,
  startBench,
} from './worker-bench.ts';

/** Starts a worker that runs `count` requests. */
async function openRunning(count: number, options: Partial<WorkerOptions> = {}) {
  const { store, worker, executor } = await startBench({ capacity: 8, ...options });
  const ids: string[] = [];
  while (ids.length < count) ids.push(await submit(store));
  await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: false, requestIds: ids }]);
  await expect.poll(() => executor.submitted).toHaveLength(count);
  const redis = store.redis as unknown as Record<'events/write-batch', (...values: unknown[]) => Promise<unknown>>;
  const calls = vi.spyOn(redis, 'events/write-batch');
  return {
    store,
    worker,
    executor,
    ids,
    tokens: executor.submitted.map(({ id }) => id),
    /** The number of writes in each call so far. */
    sizes: () => calls.mock.calls.map((values) => (values.length - 4) / 8),
  };
}

function progress(requestId: string, more: object = {}): ExecutorEvent {
  return { type: 'progress', requestId, index: 0, done: 1, total: 4, ...more };
}

/** Emits a text letter by letter from an offset, as a pipeline does. */
function stepsOf(requestId: string, text: string, from = 0): ExecutorEvent[][] {
  return Array.from(text, (letter, step) => [
    { type: 'progress', requestId, index: 0, done: from + step + 1 },
    { type: 'delta', requestId, index: 0, offset: from + step, text: letter, done: from + step + 1 },
  ]);
}

async function eventsOf(store: StoreConnection, id: string): Promise<StoredEvent[]> {
  return readEvents(store, id, { after: 2, limit: 1000 });
}

it('writes one step of many rows in one call', async () => {
  const { executor, tokens, sizes } = await openRunning(8);
  executor.emit(tokens.map((token) => progress(token)));
  await expect.poll(sizes).toEqual([8]);
  executor.emit(tokens.map((token) => progress(token, { preview: pixels })));
  await expect.poll(sizes).toEqual([8, 8]);
});

it('writes every progress event while a client follows, else the newest of each second', async () => {
  const { store, worker, executor, ids, tokens } = await openRunning(2);
  const emit = (done: number): void => executor.emit(tokens.map((token) => progress(token, { done, total: 9 })));
  for (const done of [1, 2, 3]) emit(done);
  const doneOf = async (id: string): Promise<unknown[]> =>
    (await eventsOf(store, id)).map((event) => 'done' in event && event.done);
  await expect.poll(() => Promise.all(ids.map(doneOf))).toEqual([[3], [3]]);
  for (let reader = 0; reader < 2; reader++) await readEvents(store, ids[0]!, { after: 0, followMs: 600_000 });
  const inbox = store.keysOf('tiny').inbox('w1');
  const messages = await store.redis.xrange(inbox, '-', '+');
  expect(messages.filter(([, [, message]]) => message?.startsWith('{"type":"follow"'))).toHaveLength(1);
  // Each heartbeat trims the messages that the worker has read.
  const isRead = async (): Promise<boolean> => {
    await worker.heartbeatOnce();
    return (await store.redis.xlen(inbox)) === 0;
  };
  await expect.poll(isRead).toBe(true);
  for (const done of [4, 5, 6]) emit(done);
  await expect
    .poll(() => Promise.all(ids.map(doneOf)))
    .toEqual([
      [3, 4, 5, 6],
      [3, 6],
    ]);
});

it('writes all previews of a step in one call once the last is encoded, without delaying other rows', async () => {
  const encodings: PromiseWithResolvers<Encoded>[] = [];
  const encodePreview = (): Promise<Encoded> => {
    encodings.push(withResolvers());
    return encodings.at(-1)!.promise;
  };
  const { store, executor, ids, tokens, sizes } = await openRunning(8, { kinds: kindsOf(undefined, encodePreview) });
  executor.emit(tokens.map((token, row) => progress(token, row === 7 ? {} : { preview: pixels })));
  await expect.poll(() => eventsOf(store, ids[7]!)).toMatchObject([{ type: 'progress' }]);
  expect(encodings).toHaveLength(7);
  encodings[3]!.reject(new Error('no encoder'));
  for (const { resolve } of encodings.toReversed()) {
    expect(sizes()).toEqual([1]);
    resolve({ data: pixels.data, contentType: 'x/y' });
    await store.redis.ping();
  }
  await expect.poll(sizes).toEqual([1, 6]);
  expect(await eventsOf(store, ids[0]!)).toMatchObject([{ type: 'preview' }]);
  expect(await eventsOf(store, ids[3]!)).toEqual([]);
});

it('writes the ends and outputs of many requests in one call', async () => {
  const { store, executor, ids, tokens, sizes } = await openRunning(8);
  executor.emit(
    tokens.flatMap((requestId): ExecutorEvent[] => [
      { type: 'output', requestId, index: 0, output: pixels },
      { type: 'request-done', requestId },
    ]),
  );
  await expect.poll(() => Promise.all(ids.map((id) => stateOf(store, id)))).toEqual(ids.map(() => 'succeeded'));
  expect(sizes()).toEqual([16]);
});

it("retries a write until the request's deadline by the clock of Redis, not the worker's clock", async () => {
  const redis = await startPrivateRedis();
  const store = connectStore({ url: redis.url });
  onTestFinished(async () => {
    await store.close();
    await redis.stop();
  });
  const elevenMinutesAhead = vi.spyOn(Date, 'now').mockReturnValue(Date.now() + 660_000);
  onTestFinished(() => elevenMinutesAhead.mockRestore());
  const { executor, ids, tokens, sizes } = await openRunning(1, { store });
  await store.redis.config('SET', 'min-replicas-to-write', '1');
  executor.complete(tokens[0]!);
  await expect.poll(() => sizes().length).toBeGreaterThan(1);
  await store.redis.config('SET', 'min-replicas-to-write', '0');
  await expect.poll(() => stateOf(store, ids[0]!)).toBe('succeeded');
});

it('merges text deltas that arrive soon after each other, and reports progress with them', async () => {
  const { store, executor, ids, tokens } = await openRunning(1);
  const text = 'abcdefgh'.repeat(100);
  const longest = async (): Promise<number> =>
    Math.max(0, ...(await eventsOf(store, ids[0]!)).map((event) => (event.type === 'delta' ? event.text.length : 0)));
  for (const step of stepsOf(tokens[0]!, text)) {
    executor.emit(step);
    // An unmerged letter has been written by now.
    await setImmediate();
    await store.redis.ping();
    if ((await longest()) > 1) break;
  }
  expect(await longest()).toBeGreaterThan(1);
  // Progress waits too and does not flush the text early.
  const events = await eventsOf(store, ids[0]!);
  const last = events.findLastIndex((event) => event.type === 'delta' && event.text.length > 1);
  expect(events[last + 1]?.type).toBe('progress');
});

/** Loses the engine of a request that has emitted this text, and leases the request again. */
async function rerun(emitted: string) {
  const bench = await openRunning(1);
  const { store, executor, tokens } = bench;
  const id = bench.ids[0]!;
  for (const step of stepsOf(tokens[0]!, emitted)) executor.emit(step);
  await expect.poll(() => readTexts(store, id, 1)).toEqual([emitted]);
  executor.lose(tokens[0]!);
  await expect.poll(() => free(store)).toEqual([1, 8]);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(2);
  return { ...bench, id, token: executor.submitted[1]!.id };
}

function finish(executor: FakeExecutor, requestId: string, text: string): void {
  executor.emit([
    { type: 'output', requestId, index: 0, output: { data: Buffer.from(text), facts: {} } },
    { type: 'request-done', requestId },
  ]);
}

it('merges the text log of an earlier delivery into one snapshot', async () => {
  const emitted = 'abcdefghij'.repeat(10);
  const { store, executor, id, token } = await rerun(emitted);
  const more = 'klmnopqrst'.repeat(7);
  for (const step of stepsOf(token, more, emitted.length)) executor.emit(step);
  finish(executor, token, emitted + more);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await readTexts(store, id, 1)).toEqual([emitted + more]);
  const texts = (await eventsOf(store, id)).filter((event) => event.type === 'delta' || event.type === 'snapshot');
  expect(texts).toMatchObject([{ type: 'snapshot', offset: 0, text: emitted + more.slice(0, 62) }, { type: 'delta' }]);
});

it('rewrites only the part of the text in which a rerun differs from the earlier delivery', async () => {
  const { store, executor, id, token } = await rerun('a red fox on the moon');
  for (const step of stepsOf(token, 'a red cat')) executor.emit(step);
  executor.emit([{ type: 'snapshot', requestId: token, index: 0, offset: 9, text: ' sat on it' }]);
  await expect.poll(() => readTexts(store, id, 1)).toEqual(['a red cat sat on it']);
  executor.lose(token);
  await expect.poll(() => free(store)).toEqual([1, 8]);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(3);
  const last = executor.submitted[2]!.id;
  for (const step of stepsOf(last, 'a red cat sat')) executor.emit(step);
  finish(executor, last, 'a red cat sat');
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await readTexts(store, id, 1)).toEqual(['a red cat sat']);
  // A client that reads later sees none of the replaced text.
  const events = (await eventsOf(store, id)).filter((event) => ['delta', 'snapshot', 'reset'].includes(event.type));
  expect(events).toMatchObject([{ type: 'snapshot', isWhole: true, offset: 0, text: 'a red cat sat', changedFrom: 6 }]);
});

it('replaces the full text when a rerun emits none', async () => {
  const { store, executor, id, token } = await rerun('a red fox');
  finish(executor, token, '');
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await readTexts(store, id, 1)).toEqual(['']);
  const events = (await eventsOf(store, id)).filter((event) => ['delta', 'snapshot', 'reset'].includes(event.type));
  expect(events).toMatchObject([{ type: 'snapshot', isWhole: true, offset: 0, text: '', changedFrom: 0 }]);
});

it('a rerun does not lower the stored progress', async () => {
  const { store, executor, id, token } = await rerun('a red fox');
  executor.emit([progress(token)]);
  await expect.poll(async () => (await eventsOf(store, id)).at(-1)).toMatchObject({ type: 'progress', done: 1 });
  expect(await readRequest(store, id)).toMatchObject({ request: { done: 9 } });
});

interface PromiseWithResolvers<Value> {
  promise: Promise<Value>;
  resolve: (value: Value) => void;
  reject: (error: Error) => void;
}

/** `Promise.withResolvers` is missing in Node 20. */
function withResolvers<Value>(): PromiseWithResolvers<Value> {
  let settle: Omit<PromiseWithResolvers<Value>, 'promise'> | undefined;
  const promise = new Promise<Value>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle! };
}

it('stored progress never decreases when a delta reports an older step', async () => {
  const { store, executor, ids, tokens } = await openRunning(1);
  const [requestId, id] = [tokens[0]!, ids[0]!];
  executor.emit([{ type: 'progress', requestId, index: 0, done: 3 }]);
  executor.emit([{ type: 'delta', requestId, index: 0, offset: 0, text: 'ab', done: 2 }]);
  await expect.poll(() => eventsOf(store, id)).toContainEqual(expect.objectContaining({ type: 'delta', text: 'ab' }));
  expect(await readRequest(store, id)).toMatchObject({ request: { done: 3 } });
});

it('keeps all slots of an exclusive lease until its request ends', async () => {
  const { store, executor } = await startBench();
  const id = await submit(store);
  await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: true, requestIds: [id] }]);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  const requestId = executor.submitted[0]!.id;
  const leases = () => store.redis.hvals(store.keysOf('tiny').leases('w1'));
  const before = await leases();
  executor.emit([{ type: 'row-releasing', requestId, index: 0 }]);
  executor.emit([progress(requestId)]);
  await expect.poll(() => eventsOf(store, id)).toMatchObject([{ type: 'progress' }]);
  expect([await leases(), await free(store)]).toEqual([before, [0, 0]]);
  executor.complete(requestId);
  await expect.poll(() => free(store)).toEqual([1, 4]);
});
