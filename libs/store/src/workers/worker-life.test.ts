/** Lifecycle of a worker in the store: registered, alive, drained, resumed, reaped. */
import {
  allKeys,
  dispatchNext,
  openTestStore,
  seedRequest,
  seedRunning,
  seedWorker,
  writeNow,
} from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  cancelRequest,
  dispatchRequests,
  drainWorker,
  heartbeatWorker,
  openInbox,
  readDispatchable,
  readEvents,
  readRequest,
  readStats,
  readCounters,
  readWorkers,
  resumeWorker,
  type StoreConnection,
  sweepWorkers,
  unregisterWorker,
  drainByOperator,
} from '../index.ts';
import { workerLists } from '../connection/keys.ts';

const name = { shard: 'tiny', workerId: 'w1' };
const identity = { ...name, incarnation: 'first' };
const pace = { costMs: { fast: 2, slow: 4 }, stepMs: { fast: 10, slow: 20 }, remainingCost: 7 };

async function listsOf(store: StoreConnection): Promise<string[]> {
  const { workers } = store.keysOf('tiny');
  const scores = await Promise.all(workerLists.map((list) => store.redis.zscore(workers(list), 'w1')));
  return workerLists.filter((_list, index) => scores[index] !== null);
}

async function sweep(store: StoreConnection, times = 1) {
  const reaped = [];
  for (let time = 0; time < times; time++)
    reaped.push(...(await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 2 })).reaped);
  return reaped;
}

describe('sweeping', () => {
  it('requeues a request that had released all its slots, and grants no exclusive lease next to it', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    expect(await writeNow(store, worker, { type: 'release', delivery, slots: 1 })).toBe('written');
    expect(await readStats(store, 'tiny')).toMatchObject({ freeSlots: 8 });
    const { id } = await seedRequest(store);
    const leases = [{ workerId: 'w1', isExclusive: true, requestIds: [id] }];
    expect(await dispatchRequests(store, 'tiny', leases)).toEqual([{ status: 'waiting' }]);
    const requests = [{ id: delivery.id, outcome: 'requeued', trace: undefined }];
    expect(await sweep(store, 3)).toEqual([{ workerId: 'w1', requests }]);
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued' } });
  });

  it('works with a throughput that is NaN', async () => {
    const store = openTestStore();
    const { worker } = await seedRunning(store);
    await heartbeatWorker(store, worker, { pace: { ...pace, remainingCost: Number.NaN } });
    expect(await sweep(store, 3)).toHaveLength(1);
    expect(await store.redis.exists(store.keysOf('tiny').capacity)).toBe(0);
  });

  it('reaps a worker that missed too many sweeps and requeues its request at the front', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const other = await seedRequest(store, { priority: 1 });
    expect(await sweep(store, 2)).toEqual([]);
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'silent' }]);
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { silent: 1 } });
    const requests = [{ id: delivery.id, outcome: 'requeued', trace: undefined }];
    expect(await sweep(store)).toEqual([{ workerId: 'w1', requests }]);
    expect(await readRequest(store, delivery.id)).toMatchObject({
      request: { state: 'queued', queuePosition: 0, attempts: 1 },
    });
    expect(await readRequest(store, other.id)).toMatchObject({ request: { queuePosition: 1 } });
    expect(await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('lost');
    expect(await heartbeatWorker(store, worker)).toBe('reaped');
    expect((await readEvents(store, delivery.id, { after: 0 })).map(({ type }) => type)).toEqual([
      'queued',
      'started',
      'queued',
    ]);
    expect((await readCounters(store, 'tiny')).reaped).toBe(1);
    const left = (await allKeys(store)).filter((key) => /:(?:workers?:.*|w1|capacity)$/.test(key));
    expect(left).toEqual([]);
  });

  it('does not reap a worker whose heartbeats arrive in time', async () => {
    const store = openTestStore();
    await seedRunning(store);
    for (let turn = 0; turn < 5; turn++) {
      expect(await sweep(store, 2)).toEqual([]);
      expect(await heartbeatWorker(store, identity)).toBe('alive');
    }
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'busy', freeSlots: 7 }]);
  });

  it('counts simultaneous sweeps of several janitors as one, and goes on after the clock was set back', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const options = { intervalMs: 60_000, missedSweeps: 1 };
    for (let time = 0; time < 5; time++) expect((await sweepWorkers(store, 'tiny', options)).reaped).toEqual([]);
    expect(await store.redis.hget(store.keysOf('tiny').swept, 'count')).toBe('1');
    await store.redis.hset(store.keysOf('tiny').swept, 'atMs', Date.now() + 3_600_000);
    expect((await sweepWorkers(store, 'tiny', options)).reaped).toMatchObject([{ workerId: 'w1' }]);
  });

  it('fails a request that lost its worker in all its attempts', async () => {
    const store = openTestStore({ maxAttempts: 2 });
    const { delivery } = await seedRunning(store);
    expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'requeued' }] }]);
    await seedWorker(store);
    expect(await dispatchNext(store)).toMatchObject([{ id: delivery.id }]);
    expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'failed' }] }]);
    const error = { code: 'worker_lost', message: 'Failed in all 2 attempts: the worker was lost.' };
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'failed', error } });
  });

  it('uses the max attempts set at admission, not those of the process that reaps the worker', async () => {
    const store = openTestStore({ maxAttempts: 3 });
    const other = openTestStore({ prefix: store.prefix, maxAttempts: 2 });
    await seedRunning(store);
    for (const outcome of ['requeued', 'requeued', 'failed']) {
      expect(await sweep(other, 3)).toMatchObject([{ requests: [{ outcome }] }]);
      await seedWorker(store);
      await dispatchNext(other);
    }
  });

  it('does not count an attempt that advanced further than any before', async () => {
    const store = openTestStore({ maxAttempts: 2 });
    await seedRequest(store);
    for (let done = 1; done <= 5; done++) {
      const worker = await seedWorker(store);
      const [delivery] = await dispatchNext(store);
      await writeNow(store, worker, {
        type: 'checkpoint',
        delivery: delivery!,
        index: 0,
        done,
        data: Buffer.from('x'),
      });
      expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'requeued' }] }]);
    }
    for (const outcome of ['requeued', 'failed']) {
      const worker = await seedWorker(store);
      const [delivery] = await dispatchNext(store);
      // No further than before.
      await writeNow(store, worker, {
        type: 'checkpoint',
        delivery: delivery!,
        index: 0,
        done: 5,
        data: Buffer.from('x'),
      });
      expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome }] }]);
    }
  });

  it('cancels instead of requeueing a request that was being canceled', async () => {
    const store = openTestStore();
    const { delivery } = await seedRunning(store);
    await cancelRequest(store, delivery.id);
    expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'canceled' }] }]);
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'canceled' } });
  });

  it('reaps any number of workers in batches', async () => {
    const store = openTestStore();
    for (let index = 0; index < 30; index++) await seedRunning(store, { worker: { workerId: `w${index}` } });
    expect(await sweep(store, 3)).toHaveLength(30);
    expect(await readStats(store, 'tiny')).toMatchObject({ queued: 30, slots: 0, workers: { busy: 0, silent: 0 } });
  });
});

it('a new incarnation of a worker id removes the one before and requeues its request', async () => {
  const store = openTestStore();
  const { delivery } = await seedRunning(store);
  await seedWorker(store, { incarnation: 'second', state: 'loading' });
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued', attempts: 1 } });
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { loading: 1, idle: 0, busy: 0 }, slots: 0 });
  expect(await heartbeatWorker(store, identity)).toBe('reaped');
});

it('unregistering a worker requeues its request without counting an attempt', async () => {
  const store = openTestStore();
  const { worker, delivery } = await seedRunning(store);
  await unregisterWorker(store, worker);
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  expect(await listsOf(store)).toEqual([]);
});

it('sums the throughput of all workers as it changes', async () => {
  const store = openTestStore();
  await seedWorker(store);
  await seedWorker(store, { workerId: 'w2', capacity: 4 });
  expect((await readStats(store, 'tiny')).pace).toBeUndefined();
  await heartbeatWorker(store, identity, { pace });
  await heartbeatWorker(store, identity, { pace });
  await heartbeatWorker(store, { ...identity, workerId: 'w2' }, { pace: { ...pace, costMs: { fast: 4, slow: 4 } } });
  await heartbeatWorker(
    store,
    { ...identity, workerId: 'w2' },
    { pace: { ...pace, remainingCost: 1, share: { fast: 0.5, slow: 0.75 } } },
  );
  expect((await readStats(store, 'tiny')).pace).toEqual({
    workers: 2,
    capacity: 6,
    costPerMs: { slow: 0.5, fast: 1 },
    stepMs: { slow: 20, fast: 10 },
    // A worker that does not report its share counts as 1.
    share: { slow: 0.875, fast: 0.75 },
    remainingCost: 8,
  });
  await drainByOperator(store, name);
  expect((await readStats(store, 'tiny')).pace).toMatchObject({ workers: 1, capacity: 4, remainingCost: 1 });
  await unregisterWorker(store, { ...identity, workerId: 'w2' });
  expect(await store.redis.exists(store.keysOf('tiny').capacity)).toBe(0);
});

describe('capacity', () => {
  it.each(['loading', 'ready', 'asleep'] as const)('changes when a %s worker reports another one', async (state) => {
    const store = openTestStore();
    await seedWorker(store, { state });
    await seedRequest(store, { slots: 2 });
    // A loading worker gets no lease.
    const taken = 2 * (await dispatchNext(store, 1, identity)).length;
    for (const capacity of [12, 4]) {
      await seedWorker(store, { capacity });
      expect(await readWorkers(store, 'tiny', 1)).toMatchObject([{ capacity, freeSlots: capacity - taken }]);
      expect(await readStats(store, 'tiny')).toMatchObject({ slots: capacity, freeSlots: capacity - taken });
    }
  });

  it('changes for a drained worker, too', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await drainByOperator(store, name);
    await seedWorker(store, { capacity: 12 });
    expect(await readStats(store, 'tiny')).toMatchObject({ slots: 0, freeSlots: 0 });
    await resumeWorker(store, name);
    expect(await readStats(store, 'tiny')).toMatchObject({ slots: 12, freeSlots: 12 });
  });
});

describe('an inbox', () => {
  it('returns messages again after a reconnect until a heartbeat acknowledges them', async () => {
    const store = openTestStore();
    await seedRunning(store);
    const first = openInbox(store, () => name);
    const messages = await first.next(1);
    expect(messages).toMatchObject([{ type: 'run' }]);
    const { lastRead } = first;
    first.close();
    const again = openInbox(store, () => name);
    expect(await again.next(1)).toEqual(messages);
    await seedRequest(store);
    await dispatchNext(store);
    expect(await again.next(1)).toMatchObject([{ type: 'run' }]);
    again.close();
    await heartbeatWorker(store, identity, { lastRead });
    expect(await store.redis.xlen(store.keysOf('tiny').inbox('w1'))).toBe(1);
    await heartbeatWorker(store, identity, { lastRead: again.lastRead });
    expect(await store.redis.xlen(store.keysOf('tiny').inbox('w1'))).toBe(0);
  });
});

describe('an operator', () => {
  it('drains a worker: it finishes its leases, gets no more, and no message', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    expect(await drainByOperator(store, name)).toBe(true);
    expect(await drainByOperator(store, name)).toBe(true);
    const { id } = await seedRequest(store);
    expect(await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: false, requestIds: [id] }])).toEqual([
      { status: 'waiting' },
    ]);
    expect(await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('finished');
    expect(await dispatchNext(store)).toEqual([]);
    expect(await listsOf(store)).toEqual(['draining']);
    expect(await heartbeatWorker(store, identity)).toBe('alive');
    expect(await store.redis.xlen(store.keysOf('tiny').inbox('w1'))).toBe(1);
  });

  it('resumes a worker: it takes leases again with its free slots', async () => {
    const store = openTestStore();
    await seedRunning(store);
    const before = await allKeys(store);
    await drainByOperator(store, name);
    expect(await readStats(store, 'tiny')).toMatchObject({ slots: 0, freeSlots: 0 });
    expect(await resumeWorker(store, name)).toBe('resumed');
    expect(await resumeWorker(store, name)).toBe('resumed');
    expect(await listsOf(store)).toEqual(['busy']);
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'busy', freeSlots: 7, isStopping: false }]);
    expect(await allKeys(store)).toEqual(before);
    await seedRequest(store);
    expect(await dispatchNext(store)).toHaveLength(1);
  });

  it('drains and resumes a loading worker, which gets no leases before it has loaded', async () => {
    const store = openTestStore();
    await seedWorker(store, { state: 'loading' });
    await drainByOperator(store, name);
    await resumeWorker(store, name);
    expect(await listsOf(store)).toEqual(['loading']);
    await drainByOperator(store, name);
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'draining', isLoaded: false }]);
    await seedWorker(store);
    expect(await listsOf(store)).toEqual(['draining']);
    // Its engine dies and is started again.
    await seedWorker(store, { state: 'loading' });
    expect(await listsOf(store)).toEqual(['draining']);
    await seedWorker(store);
    await resumeWorker(store, name);
    expect(await listsOf(store)).toEqual(['idle']);
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ isLoaded: true }]);
  });

  it('cannot resume a worker that stops', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await drainByOperator(store, name);
    expect(await drainWorker(store, identity)).toBe(true);
    expect(await resumeWorker(store, name)).toBe('stopping');
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'draining', isStopping: true }]);
    const inbox = openInbox(store, () => name);
    onTestFinished(() => inbox.close());
    expect(await inbox.next(1)).toEqual([{ type: 'drained' }]);
  });

  it('finds a worker still drained after it was reaped by mistake, but not after a restart', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await drainByOperator(store, name);
    expect(await sweep(store, 3)).toHaveLength(1);
    await seedWorker(store);
    expect(await listsOf(store)).toEqual(['draining']);
    expect((await allKeys(store)).filter((key) => key.includes(':drained:'))).toEqual([]);
    expect(await sweep(store, 3)).toHaveLength(1);
    await seedWorker(store, { incarnation: 'second' });
    expect(await listsOf(store)).toEqual(['idle']);
  });

  it('frees the reservation of a worker that is drained', async () => {
    const store = openTestStore();
    await seedRunning(store);
    await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
    await drainByOperator(store, name);
    expect((await readDispatchable(store, 'tiny', { maxWorkers: 1, maxRequests: 1 })).reservedWorkerId).toBeUndefined();
  });

  it('gets `unknown` for an id without a worker', async () => {
    const store = openTestStore();
    expect(await drainByOperator(store, name)).toBe(false);
    expect(await resumeWorker(store, name)).toBe('unknown');
    expect(await allKeys(store)).toEqual([]);
  });
});
