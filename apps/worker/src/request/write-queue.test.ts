/** Writes of a worker to a real Redis: in order, in few calls, once. */
import { once } from 'node:events';
import { createRequestId, type OutputText, type StoredEvent } from '@darkroom/core';
import {
  admitRequest,
  connectStore,
  type Delivery,
  readEvents,
  readRequest,
  readStats,
  registerWorker,
  type RequestWrite,
  type StoreConnection,
  type WorkerIdentity,
} from '@darkroom/store';
import {
  dispatchNext,
  openRedisProxy,
  openTestStore,
  seedRunning,
  startPrivateRedis,
  testEnvelope,
} from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { WriteQueue } from './write-queue.ts';

const identity: WorkerIdentity = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };
const getIdentity = (): WorkerIdentity => identity;
const never = Infinity;
const anHourMs = 3_600_000;

/** Starts a request on the worker. */
async function run(store: StoreConnection, outputs = 1): Promise<Delivery> {
  await registerWorker(store, identity, { state: 'ready', capacity: 8, info: {} });
  await admitRequest(store, testEnvelope({ outputs }), { queueMaxLength: 100, unserved: 'accept' });
  const [delivery] = await dispatchNext(store);
  return delivery!;
}

function progress(delivery: Delivery, done: number): RequestWrite {
  return { type: 'progress', delivery, progress: { index: 0, done, total: 100 }, of: { done, total: 100 } };
}

function delta(delivery: Delivery, offset: number, text: string, more: Partial<OutputText> = {}): RequestWrite {
  return { type: 'delta', delivery, index: 0, offset, text, ...more };
}

/** Events since the request started. */
async function events(store: StoreConnection, { id }: Delivery): Promise<StoredEvent[]> {
  return readEvents(store, id, { after: 2, limit: 1000 });
}

async function texts(store: StoreConnection, delivery: Delivery): Promise<string[]> {
  return (await events(store, delivery)).map((event) => ('text' in event ? event.text : event.type));
}

/** Records the calls to Redis and their number of writes; `hold` delays the next call until `release`. */
function watchCalls(store: StoreConnection) {
  const redis = store.redis as unknown as Record<'events/write-batch', (...values: unknown[]) => Promise<unknown>>;
  const send = redis['events/write-batch'].bind(redis);
  const calls = vi.spyOn(redis, 'events/write-batch');
  return {
    get sizes() {
      return calls.mock.calls.map((values) => (values.length - 4) / 8);
    },
    /** Types of the writes in the last call. */
    last: () => calls.mock.calls.at(-1)!.filter((_value, at) => at >= 4 && (at - 4) % 8 === 0),
    hold() {
      const held = new AbortController();
      const over = once(held.signal, 'abort');
      calls.mockImplementationOnce((...values) => over.then(() => send(...values)));
      return { release: () => held.abort() };
    },
  };
}

it('batches writes queued during a call into the next call, in order', async () => {
  const store = openTestStore();
  const [one, other] = [await run(store), await run(store)];
  const calls = watchCalls(store);
  const queue = new WriteQueue({ store, getIdentity });
  const { release } = calls.hold();
  const first = queue.push(progress(one, 1), never);
  await expect.poll(() => calls.sizes).toEqual([1]);
  const rest = [2, 3, 4].flatMap((done) => [
    queue.push(progress(one, done), never),
    queue.push(progress(other, done), never),
  ]);
  release();
  expect(await Promise.all([first, ...rest])).toEqual(Array(7).fill('written'));
  expect(calls.sizes).toEqual([1, 6]);
  for (const [delivery, expected] of [
    [one, [1, 2, 3, 4]],
    [other, [2, 3, 4]],
  ] as const)
    expect((await events(store, delivery)).map((event) => 'done' in event && event.done)).toEqual(expected);
});

it('limits the number of writes and bytes per call', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  const calls = watchCalls(store);
  const queue = new WriteQueue({ store, getIdentity });
  await Promise.all(Array.from({ length: 300 }, (_value, done) => queue.push(progress(delivery, done), never)));
  expect(calls.sizes).toEqual([128, 128, 44]);
  const data = Buffer.alloc(400_000);
  const saves = [1, 2, 3].map((done): RequestWrite => ({ type: 'checkpoint', delivery, index: 0, done, data }));
  await Promise.all(saves.map((save) => queue.push(save, never)));
  expect(calls.sizes.slice(3)).toEqual([2, 1]);
  // Of a text, the metadata of its tokens is the largest part.
  const logprobs = 'x'.repeat(400_000);
  const snapshots = [0, 1, 2].map((at) => ({ ...delta(delivery, at, 'x', { facts: { logprobs } }), type: 'snapshot' }));
  await Promise.all(snapshots.map((snapshot) => queue.push(snapshot as RequestWrite, never)));
  expect(calls.sizes.slice(5)).toEqual([2, 1]);
});

it('delays text until its interval has passed or another write is sent', async () => {
  const store = openTestStore();
  const [one, other] = [await run(store), await run(store)];
  const calls = watchCalls(store);
  const queue = new WriteQueue({ store, getIdentity, textIntervalMs: anHourMs });
  expect(await queue.push(delta(one, 0, 'a '), never)).toBe('written');
  // Each after the previous call has returned, so only the interval delays it.
  await store.redis.ping();
  const waiting = [queue.push(delta(one, 2, 're'), never)];
  await store.redis.ping();
  waiting.push(queue.push(delta(one, 4, 'd '), never));
  await store.redis.ping();
  waiting.push(queue.push(delta(one, 6, 'fox'), never));
  await store.redis.ping();
  expect(calls.sizes).toEqual([1]);
  await queue.push(progress(other, 1), never);
  expect(await Promise.all(waiting)).toEqual(['written', 'written', 'written']);
  expect(calls.sizes).toEqual([1, 2]);
  expect(await texts(store, one)).toEqual(['a ', 'red fox']);
});

it("delays a text's progress with the text, writes only the latest, and resolves all", async () => {
  const store = openTestStore();
  const delivery = await run(store, 2);
  const calls = watchCalls(store);
  const queue = new WriteQueue({ store, getIdentity, textIntervalMs: anHourMs });
  const ofText = (index: number, done: number): RequestWrite => ({
    type: 'progress',
    delivery,
    isOfText: true,
    progress: { index, done },
    of: { done },
  });
  const step = (done: number): Promise<unknown>[] =>
    [0, 1].flatMap((index) => [
      queue.push(ofText(index, done), never),
      queue.push(delta(delivery, done - 1, String(done), { index }), never),
    ]);
  await Promise.all(step(1));
  const waiting: Promise<unknown>[] = [];
  for (const done of [2, 3, 4]) {
    waiting.push(...step(done));
    await store.redis.ping();
  }
  // A full snapshot only shortens the log, so it waits too.
  waiting.push(queue.push({ ...delta(delivery, 0, '1234'), type: 'snapshot', isWhole: true } as RequestWrite, never));
  await store.redis.ping();
  expect(calls.sizes).toEqual([4]);
  waiting.push(queue.push({ type: 'checkpoint', delivery, index: 0, done: 4, data: Buffer.from('x') }, never));
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['written']));
  expect(calls.sizes).toEqual([4, 6]);
  const published = (await events(store, delivery)).map((event) =>
    event.type === 'progress' ? [event.index, event.done] : 'text' in event && [event.index, event.text],
  );
  // The full snapshot replaces all earlier events of the first text.
  expect(published).toEqual([
    [1, 1],
    [1, '1'],
    [1, '234'],
    [1, 4],
    [0, '1234'],
  ]);
});

it("delays a text's checkpoint with the text, and writes only the latest, never before its text", async () => {
  const store = openTestStore();
  const delivery = await run(store);
  const calls = watchCalls(store);
  const queue = new WriteQueue({ store, getIdentity, textIntervalMs: anHourMs });
  await queue.push(delta(delivery, 0, 'a'), never);
  const waiting: Promise<unknown>[] = [];
  for (const [done, letter] of [
    [2, 'b'],
    [3, 'c'],
  ] as const) {
    const data = Buffer.from(String(done));
    waiting.push(queue.push(delta(delivery, done - 1, letter), never));
    waiting.push(queue.push({ type: 'checkpoint', delivery, index: 0, done, data, isOfText: true }, never));
    await store.redis.ping();
  }
  expect(calls.sizes).toEqual([1]);
  waiting.push(queue.push({ type: 'release', delivery, slots: 1 }, never));
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(['written']));
  expect(calls.sizes).toEqual([1, 3]);
  expect(calls.last()).toEqual(['event', 'checkpoint', 'release']);
  expect(await store.redis.get(store.keysOf('tiny').checkpoint(delivery.id, 0))).toBe('3');
  expect(await texts(store, delivery)).toEqual(['a', 'bc']);
});

it('writes text when its interval has passed', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  const queue = new WriteQueue({ store, getIdentity, textIntervalMs: 5 });
  for (const [offset, text] of ['a', 'b', 'c'].entries())
    expect(await queue.push(delta(delivery, offset, text), never)).toBe('written');
  expect(await texts(store, delivery)).toEqual(['a', 'b', 'c']);
});

it('joins chunks of one text only, and never across another write of the request', async () => {
  const store = openTestStore();
  const [one, other] = [await run(store, 2), await run(store)];
  const queue = new WriteQueue({ store, getIdentity });
  const writes = [
    delta(one, 0, 'a', { facts: { tokens: 1, ids: '7,' } }),
    progress(other, 1),
    delta(one, 1, 'b', { facts: { tokens: 2, ids: '8,9,' } }),
    progress(one, 1),
    delta(one, 2, 'c'),
    delta(one, 0, 'x', { index: 1 }),
    delta(one, 3, 'd'),
  ];
  await Promise.all(writes.map((write) => queue.push(write, never)));
  expect(await texts(store, one)).toEqual(['ab', 'progress', 'cd', 'x']);
  expect((await events(store, one))[0]).toMatchObject({ offset: 0, facts: { tokens: 2, ids: '7,8,9,' } });
});

it('resends a batch whose answer was lost, and applies it once, releasing slots once', async () => {
  const proxy = await openRedisProxy();
  const store = openTestStore();
  const behindProxy = connectStore({ url: proxy.url, prefix: store.prefix });
  onTestFinished(() => behindProxy.close());
  const delivery = await run(store, 3);
  const queue = new WriteQueue({ store: behindProxy, getIdentity });
  await queue.push(progress(delivery, 1), never);
  proxy.loseNextAnswer();
  const outcomes = await Promise.all([
    queue.push(progress(delivery, 2), never),
    queue.push({ type: 'release', delivery, slots: 1 }, never),
  ]);
  expect(proxy.lostAnswers).toBe(1);
  expect(outcomes).toEqual(['written', 'written']);
  expect(await queue.push(progress(delivery, 3), never)).toBe('written');
  expect((await events(store, delivery)).map((event) => 'done' in event && event.done)).toEqual([1, 2, 3]);
  expect(await readStats(store, 'tiny')).toMatchObject({ slots: 8, freeSlots: 6 });
});

it('sends outputs encoded in the same tick in one call', async () => {
  const store = openTestStore();
  const deliveries = [await run(store), await run(store), await run(store)];
  const calls = watchCalls(store);
  const queue = new WriteQueue({ store, getIdentity });
  const steps = deliveries.map(async (delivery, turns) => {
    for (let turn = 0; turn < 10 * turns; turn++) await Promise.resolve();
    return queue.push(progress(delivery, 1), never);
  });
  await Promise.all(steps);
  expect(calls.sizes).toEqual([3]);
});

it("retries while Redis cannot write, until the request's deadline", async () => {
  const redis = await startPrivateRedis();
  onTestFinished(() => redis.stop());
  const store = connectStore({ url: redis.url });
  onTestFinished(() => store.close());
  const [one, other] = [await run(store), await run(store)];
  const queue = new WriteQueue({ store, getIdentity });
  await store.redis.config('SET', 'min-replicas-to-write', '1');
  await expect(queue.push(progress(one, 1), performance.now())).rejects.toThrow('NOREPLICAS');
  const calls = watchCalls(store);
  const written = queue.push(progress(other, 1), performance.now() + anHourMs);
  await expect.poll(() => calls.sizes.length).toBeGreaterThan(1);
  await store.redis.config('SET', 'min-replicas-to-write', '0');
  expect(await written).toBe('written');
  expect([await texts(store, one), await texts(store, other)]).toEqual([[], ['progress']]);
});

it('returns the outcome of each write of a batch', async () => {
  const store = openTestStore();
  const [mine, lost] = [await run(store), await run(store)];
  const queue = new WriteQueue({ store, getIdentity });
  const writes: RequestWrite[] = [
    progress(mine, 1),
    progress({ ...lost, token: 'of an earlier delivery' }, 1),
    { type: 'end', delivery: mine, end: { state: 'succeeded', outputs: 1 } },
    { type: 'end', delivery: mine, end: { state: 'canceled' } },
    progress(mine, 2),
  ];
  const outcomes = await Promise.all(writes.map((write) => queue.push(write, never)));
  expect(outcomes).toEqual(['written', 'lost', 'incomplete', 'finished', 'ended']);
});

it('writes to the shard that the write was pushed in after the worker has moved', async () => {
  const store = openTestStore();
  const shard = 'tiny~1';
  const id = createRequestId({ model: shard, nowMs: Date.now(), owner: '', secret: 'test' });
  const [running, orphaned] = [await run(store), await run(store)];
  const { delivery: elsewhere } = await seedRunning(store, { id, worker: { model: shard } });
  const calls = watchCalls(store);
  let current = identity;
  const queue = new WriteQueue({ store, getIdentity: () => current });
  const { release } = calls.hold();
  const outcomes = [queue.push(progress(running, 1), never)];
  await expect.poll(() => calls.sizes).toEqual([1]);
  outcomes.push(queue.push({ type: 'give-back', delivery: orphaned, reason: 'worker_stopped' }, never));
  current = { ...identity, shard };
  outcomes.push(queue.push(progress(elsewhere, 1), never));
  release();
  expect(await Promise.all(outcomes)).toEqual(['written', 'requeued', 'written']);
  expect(calls.sizes).toEqual([1, 1, 1]);
  expect(await readRequest(store, orphaned.id)).toMatchObject({ request: { state: 'queued' } });
});
