/** A worker that moves from one shard of its model to another, against a real queue. */
import { once } from 'node:events';
import { createRequestId } from '@darkroom/core';
import {
  dispatchRequests,
  publishModel,
  readDispatchable,
  readRequest,
  readStats,
  readWorkers,
  sendMove,
  setShardCount,
  type StoreConnection,
  sweepWorkers,
  drainByOperator,
} from '@darkroom/store';
import { allKeys, openTestStore } from '@darkroom/testing';
import { expect, it, vi } from 'vitest';
import { type Bench, card, startBench, stateOf, submit } from './worker-bench.ts';

const other = 'tiny~1';

async function openSpread(options: Parameters<typeof startBench>[0] = {}): Promise<Bench> {
  const store = options.store ?? openTestStore();
  await publishModel(store, card);
  await setShardCount(store, 'tiny', { count: 2, known: ['tiny'] });
  return startBench({ ...options, store });
}

function submitTo(store: StoreConnection, shard: string): Promise<string> {
  const id = createRequestId({ model: shard, nowMs: Date.now(), owner: '', secret: 'test' });
  return submit(store, { id });
}

async function leaseIn(store: StoreConnection, shard: string, id: string): Promise<string | undefined> {
  const lease = { workerId: 'w1', isExclusive: false, requestIds: [id] };
  return (await dispatchRequests(store, shard, [lease]))[0]?.status;
}

function send(store: StoreConnection, to: string, isPatient = false): Promise<void> {
  return sendMove(store, { workerId: 'w1', from: to === other ? 'tiny' : other, to, isPatient });
}

/** Returns the number of workers and of free slots in each shard: `1/4 0/0`. */
async function workersAndSlots(store: StoreConnection): Promise<string> {
  const stats = await Promise.all(['tiny', other].map((shard) => readStats(store, shard)));
  return stats
    .map(({ workers, freeSlots }) => `${workers.idle + workers.busy + workers.asleep}/${freeSlots}`)
    .join(' ');
}

async function arrival(store: StoreConnection, shard: string): Promise<void> {
  const expected = shard === other ? '0/0 1/4' : '1/4 0/0';
  await vi.waitFor(async () => expect(await workersAndSlots(store)).toBe(expected), { timeout: 10_000 });
}

/** Starts a worker with a running request in its engine. */
async function openRunning() {
  const bench = await openSpread();
  const first = await submitTo(bench.store, 'tiny');
  await leaseIn(bench.store, 'tiny', first);
  await vi.waitFor(() => expect(bench.executor.submitted).toHaveLength(1));
  return { ...bench, first };
}

/** Starts a worker that takes no more leases and moves once its request has ended. */
async function openLeaving() {
  const bench = await openRunning();
  await send(bench.store, other, true);
  await vi.waitFor(async () => expect(await workersAndSlots(bench.store)).toBe('1/0 0/0'));
  return bench;
}

it('an idle worker moves to the other shard, serves it, moves back and leaves no keys behind', async () => {
  const { store, executor, worker } = await openSpread();
  for (const shard of [other, 'tiny', other]) {
    await send(store, shard);
    await arrival(store, shard);
    const id = await submitTo(store, shard);
    expect(await leaseIn(store, shard, id)).toBe('leased');
    await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
    executor.complete(executor.submitted.splice(0)[0]!.id);
    await vi.waitFor(async () => expect(await stateOf(store, id)).toBe('succeeded'));
    await worker.heartbeatOnce();
  }
  const left = (await allKeys(store)).filter((key) => /\{tiny\}:(?:workers|worker|inbox|leases|room)/.test(key));
  expect(left).toEqual([]);
  const result = await readRequest(store, await submitTo(store, other));
  expect(result).toMatchObject({ status: 'found', request: { model: 'tiny', queuePosition: 0 } });
});

it('a worker with a running request stays in its shard and takes more leases', async () => {
  const { store, executor } = await openSpread();
  const first = await submitTo(store, 'tiny');
  await leaseIn(store, 'tiny', first);
  await send(store, other);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(1));
  const second = await submitTo(store, 'tiny');
  await vi.waitFor(async () => expect(await leaseIn(store, 'tiny', second)).toBe('leased'));
  expect(await workersAndSlots(store)).toBe('1/2 0/0');
});

it('with isPatient, a busy worker takes no more leases, finishes its requests and then moves', async () => {
  const { store, executor, first } = await openLeaving();
  const second = await submitTo(store, 'tiny');
  expect(await leaseIn(store, 'tiny', second)).toBe('waiting');
  expect((await readDispatchable(store, 'tiny', { maxWorkers: 8, maxRequests: 8 })).workers).toEqual([]);
  executor.complete(executor.submitted[0]!.id);
  await arrival(store, other);
  expect(await stateOf(store, first)).toBe('succeeded');
  expect(await stateOf(store, second)).toBe('queued');
});

it('a lease that arrives before the worker leaves its shard is not lost', async () => {
  const { store, executor } = await openSpread();
  const ids = await Promise.all(Array.from({ length: 4 }, () => submitTo(store, 'tiny')));
  const [, ...leased] = await Promise.all([send(store, other), ...ids.map((id) => leaseIn(store, 'tiny', id))]);
  await vi.waitFor(() => expect(executor.submitted).toHaveLength(leased.filter((each) => each === 'leased').length));
  for (const { id } of executor.submitted) executor.complete(id);
  await vi.waitFor(async () => {
    for (const [at, id] of ids.entries())
      expect(await stateOf(store, id)).toBe(leased[at] === 'leased' ? 'succeeded' : 'queued');
  });
});

it('a worker that is drained while it prepares to move stays drained, despite a failed write', async () => {
  const { store, executor } = await openLeaving();
  await drainByOperator(store, { shard: 'tiny', workerId: 'w1' });
  const script = 'workers/register-worker';
  const register = Reflect.get(store.redis, script) as (...words: unknown[]) => Promise<unknown>;
  const refuse = vi.fn<(...words: unknown[]) => Promise<unknown>>((...words) => {
    // The first call repeats that the worker leaves; the second says that it stays.
    if (refuse.mock.calls.length === 1) return register.apply(store.redis, words);
    Object.assign(store.redis, { [script]: register });
    return Promise.reject(new Error('READONLY You cannot write against a read only replica.'));
  });
  Object.assign(store.redis, { [script]: refuse });
  executor.complete(executor.submitted[0]!.id);
  const drained = { workerId: 'w1', state: 'draining', capacity: 4, freeSlots: 4 };
  await vi.waitFor(async () => expect(await readWorkers(store, 'tiny', 9)).toMatchObject([drained]), {
    timeout: 10_000,
  });
  expect(refuse).toHaveBeenCalledTimes(2);
});

it('a worker that is reaped while it prepares to move registers again and still moves', async () => {
  const { store, executor, worker, first } = await openLeaving();
  for (let sweep = 0; sweep < 3; sweep++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await stateOf(store, first)).toBe('queued');
  await worker.heartbeatOnce();
  expect(executor.canceled).toHaveLength(1);
  executor.emit([{ type: 'request-done', requestId: executor.canceled[0]! }]);
  await arrival(store, other);
  expect(await stateOf(store, first)).toBe('queued');
});

it('an asleep worker moves and stays asleep', async () => {
  const bench = await openSpread({ sleepAfterMs: 0 });
  const { store, worker } = bench;
  await worker.heartbeatOnce();
  await vi.waitFor(async () => expect((await readStats(store, 'tiny')).workers.asleep).toBe(1), { timeout: 10_000 });
  await send(store, other);
  await vi.waitFor(async () => expect((await readStats(store, other)).workers.asleep).toBe(1), { timeout: 10_000 });
});

it('a stop during a move requeues at once and unregisters the worker', async () => {
  const { store, worker, first } = await openLeaving();
  await worker.stop();
  expect(await stateOf(store, first)).toBe('queued');
  expect(await workersAndSlots(store)).toBe('0/0 0/0');
});

it('a move command to the shard that the worker has left is dropped', async () => {
  const { store } = await openSpread();
  await send(store, other);
  await arrival(store, other);
  await send(store, other);
  expect(await store.redis.exists(store.keysOf('tiny').inbox('w1'))).toBe(0);
});

it('moves only after the requeue of an orphaned lease is stored in the shard it came from', async () => {
  const { store, executor, first: id } = await openRunning();
  const redis = store.redis as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
  const writeBatch = redis['events/write-batch']!.bind(redis);
  const held = new AbortController();
  const released = once(held.signal, 'abort');
  const requeued = vi
    .spyOn(redis, 'events/write-batch')
    .mockImplementationOnce((...values) => released.then(() => writeBatch(...values)));
  // The worker drops the request before its requeue is stored.
  executor.emit([{ type: 'request-lost', requestId: executor.submitted[0]!.id, message: 'lost' }]);
  await vi.waitFor(() => expect(requeued).toHaveBeenCalledOnce());
  const registered = vi.spyOn(redis, 'workers/register-worker');
  await send(store, other, true);
  await vi.waitFor(() => expect(registered.mock.calls.length).toBeGreaterThan(2), { timeout: 10_000 });
  expect(await workersAndSlots(store)).toBe('1/0 0/0');
  held.abort();
  await arrival(store, other);
  expect(await requeued.mock.results[0]!.value).toEqual(['requeued']);
  expect(await stateOf(store, id)).toBe('queued');
});
