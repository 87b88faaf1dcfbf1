/** A worker's life in the store: registered, heard of, drained, resumed, buried. */
import { allKeys, dispatchNext, openTestStore, seedRequest, seedRunning, seedWorker, write } from '@darkroom/testing';
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
  readTally,
  readWorkers,
  resumeWorker,
  type StoreConnection,
  sweepWorkers,
  unregisterWorker,
  withdrawWorker,
} from '../index.ts';
import { workerLists } from '../connection/keys.ts';

const name = { model: 'tiny', workerId: 'w1' };
const identity = { ...name, incarnation: 'first' };
const pace = { costMs: { fast: 2, slow: 4 }, stepMs: { fast: 10, slow: 20 }, remainingCost: 7 };

async function listsOf(store: StoreConnection): Promise<string[]> {
  const { workers } = store.keysOf('tiny');
  const scores = await Promise.all(workerLists.map((list) => store.redis.zscore(workers(list), 'w1')));
  return workerLists.filter((_list, index) => scores[index] !== null);
}

async function sweep(store: StoreConnection, times = 1) {
  const buried = [];
  for (let time = 0; time < times; time++)
    buried.push(...(await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 2 })));
  return buried;
}

describe('sweeping', () => {
  it('returns what had promised its last slot to others, and lets nobody be alone with it', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    expect(await write(store, worker, { type: 'release', delivery, slots: 1 })).toBe('written');
    expect(await readStats(store, 'tiny')).toMatchObject({ freeSlots: 8 });
    const { id } = await seedRequest(store);
    const leases = [{ workerId: 'w1', isExclusive: true, requestIds: [id] }];
    expect(await dispatchRequests(store, 'tiny', leases)).toEqual([{ status: 'waiting' }]);
    const requests = [{ id: delivery.id, outcome: 'requeued', trace: undefined }];
    expect(await sweep(store, 3)).toEqual([{ workerId: 'w1', requests }]);
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued' } });
  });

  it('is not stopped by a pace that is no number', async () => {
    const store = openTestStore();
    const { worker } = await seedRunning(store);
    await heartbeatWorker(store, worker, { pace: { ...pace, remainingCost: Number.NaN } });
    expect(await sweep(store, 3)).toHaveLength(1);
    expect(await store.redis.exists(store.keysOf('tiny').room)).toBe(0);
  });

  it('buries who missed more sweeps than it may; what it had goes first', async () => {
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
    expect(await write(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('lost');
    expect(await heartbeatWorker(store, worker)).toBe('buried');
    expect((await readEvents(store, delivery.id, { after: 0 })).map(({ type }) => type)).toEqual([
      'queued',
      'started',
      'queued',
    ]);
    expect((await readTally(store, 'tiny')).buried).toBe(1);
    const left = (await allKeys(store)).filter((key) => /:(?:workers?:.*|w1|room)$/.test(key));
    expect(left).toEqual([]);
  });

  it('a heartbeat in time is all that it takes', async () => {
    const store = openTestStore();
    await seedRunning(store);
    for (let turn = 0; turn < 5; turn++) {
      expect(await sweep(store, 2)).toEqual([]);
      expect(await heartbeatWorker(store, identity)).toBe('alive');
    }
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'busy', freeSlots: 7 }]);
  });

  it('counts sweeps of several janitors that come together as one, and those of a clock that was set back', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const options = { intervalMs: 60_000, missedSweeps: 1 };
    for (let time = 0; time < 5; time++) expect(await sweepWorkers(store, 'tiny', options)).toEqual([]);
    expect(await store.redis.hget(store.keysOf('tiny').swept, 'count')).toBe('1');
    await store.redis.hset(store.keysOf('tiny').swept, 'atMs', Date.now() + 3_600_000);
    expect(await sweepWorkers(store, 'tiny', options)).toMatchObject([{ workerId: 'w1' }]);
  });

  it('gives up what has lost its worker in each of its attempts', async () => {
    const store = openTestStore({ maxAttempts: 2 });
    const { delivery } = await seedRunning(store);
    expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'requeued' }] }]);
    await seedWorker(store);
    expect(await dispatchNext(store)).toMatchObject([{ id: delivery.id }]);
    expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'failed' }] }]);
    const error = { code: 'worker_lost', message: 'Gave up after 2 attempts: the worker was lost each time.' };
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'failed', error } });
  });

  it('does not count an attempt that got further than any before', async () => {
    const store = openTestStore({ maxAttempts: 2 });
    await seedRequest(store);
    for (let done = 1; done <= 5; done++) {
      const worker = await seedWorker(store);
      const [delivery] = await dispatchNext(store);
      await write(store, worker, { type: 'checkpoint', delivery: delivery!, index: 0, done, data: Buffer.from('x') });
      expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'requeued' }] }]);
    }
    for (const outcome of ['requeued', 'failed']) {
      const worker = await seedWorker(store);
      const [delivery] = await dispatchNext(store);
      // No further than it was.
      await write(store, worker, {
        type: 'checkpoint',
        delivery: delivery!,
        index: 0,
        done: 5,
        data: Buffer.from('x'),
      });
      expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome }] }]);
    }
  });

  it('does not run a canceled request again', async () => {
    const store = openTestStore();
    const { delivery } = await seedRunning(store);
    await cancelRequest(store, delivery.id);
    expect(await sweep(store, 3)).toMatchObject([{ requests: [{ outcome: 'canceled' }] }]);
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'canceled' } });
  });

  it('buries any number, a few at a time', async () => {
    const store = openTestStore();
    for (let index = 0; index < 30; index++) await seedRunning(store, { worker: { workerId: `w${index}` } });
    expect(await sweep(store, 3)).toHaveLength(30);
    expect(await readStats(store, 'tiny')).toMatchObject({ queued: 30, slots: 0, workers: { busy: 0, silent: 0 } });
  });
});

it('the next life of a worker id buries the one before', async () => {
  const store = openTestStore();
  const { delivery } = await seedRunning(store);
  await seedWorker(store, { incarnation: 'second', state: 'loading' });
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued', attempts: 1 } });
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { loading: 1, idle: 0, busy: 0 }, slots: 0 });
  expect(await heartbeatWorker(store, identity)).toBe('buried');
});

it('what a worker that stops still has goes back, and is no attempt', async () => {
  const store = openTestStore();
  const { worker, delivery } = await seedRunning(store);
  await unregisterWorker(store, worker);
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  expect(await listsOf(store)).toEqual([]);
});

it('the pace of all workers is summed up as it changes', async () => {
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
    // One that says nothing of it does all.
    share: { slow: 0.875, fast: 0.75 },
    remainingCost: 8,
  });
  await withdrawWorker(store, name);
  expect((await readStats(store, 'tiny')).pace).toMatchObject({ workers: 1, capacity: 4, remainingCost: 1 });
  await unregisterWorker(store, { ...identity, workerId: 'w2' });
  expect(await store.redis.exists(store.keysOf('tiny').room)).toBe(0);
});

describe('room', () => {
  it.each(['loading', 'ready', 'asleep'] as const)('is what a %s worker says that it has by now', async (state) => {
    const store = openTestStore();
    await seedWorker(store, { state });
    await seedRequest(store, { slots: 2 });
    // One that loads gets no lease.
    const taken = 2 * (await dispatchNext(store, 1, identity)).length;
    for (const capacity of [12, 4]) {
      await seedWorker(store, { capacity });
      expect(await readWorkers(store, 'tiny', 1)).toMatchObject([{ capacity, freeSlots: capacity - taken }]);
      expect(await readStats(store, 'tiny')).toMatchObject({ slots: capacity, freeSlots: capacity - taken });
    }
  });

  it('is told of a worker that an operator drains, too', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await withdrawWorker(store, name);
    await seedWorker(store, { capacity: 12 });
    expect(await readStats(store, 'tiny')).toMatchObject({ slots: 0, freeSlots: 0 });
    await resumeWorker(store, name);
    expect(await readStats(store, 'tiny')).toMatchObject({ slots: 12, freeSlots: 12 });
  });
});

describe('an inbox', () => {
  it('is read and not popped: what was on its way comes again, until a heartbeat says that it is here', async () => {
    const store = openTestStore();
    await seedRunning(store);
    const first = openInbox(store, name);
    const messages = await first.next(1);
    expect(messages).toMatchObject([{ type: 'run' }]);
    const { lastRead } = first;
    first.close();
    const again = openInbox(store, name);
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
  it('drains: it finishes what it has, gets no lease, and is told nothing', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    expect(await withdrawWorker(store, name)).toBe(true);
    expect(await withdrawWorker(store, name)).toBe(true);
    const { id } = await seedRequest(store);
    expect(await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: false, requestIds: [id] }])).toEqual([
      { status: 'waiting' },
    ]);
    expect(await write(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('finished');
    expect(await dispatchNext(store)).toEqual([]);
    expect(await listsOf(store)).toEqual(['draining']);
    expect(await heartbeatWorker(store, identity)).toBe('alive');
    expect(await store.redis.xlen(store.keysOf('tiny').inbox('w1'))).toBe(1);
  });

  it('resumes: it takes leases again, with the room it has', async () => {
    const store = openTestStore();
    await seedRunning(store);
    const before = await allKeys(store);
    await withdrawWorker(store, name);
    expect(await readStats(store, 'tiny')).toMatchObject({ slots: 0, freeSlots: 0 });
    expect(await resumeWorker(store, name)).toBe('resumed');
    expect(await resumeWorker(store, name)).toBe('resumed');
    expect(await listsOf(store)).toEqual(['busy']);
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'busy', freeSlots: 7, isStopping: false }]);
    expect(await allKeys(store)).toEqual(before);
    await seedRequest(store);
    expect(await dispatchNext(store)).toHaveLength(1);
  });

  it('gives it no work before it has loaded, whatever is said to it in between', async () => {
    const store = openTestStore();
    await seedWorker(store, { state: 'loading' });
    await withdrawWorker(store, name);
    await resumeWorker(store, name);
    expect(await listsOf(store)).toEqual(['loading']);
    await withdrawWorker(store, name);
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'draining', isLoaded: false }]);
    await seedWorker(store);
    expect(await listsOf(store)).toEqual(['draining']);
    // Its engine dies, and it starts another.
    await seedWorker(store, { state: 'loading' });
    expect(await listsOf(store)).toEqual(['draining']);
    await seedWorker(store);
    await resumeWorker(store, name);
    expect(await listsOf(store)).toEqual(['idle']);
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ isLoaded: true }]);
  });

  it('cannot resume one that stops', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await withdrawWorker(store, name);
    expect(await drainWorker(store, identity)).toBe(true);
    expect(await resumeWorker(store, name)).toBe('stopping');
    expect(await readWorkers(store, 'tiny', 10)).toMatchObject([{ state: 'draining', isStopping: true }]);
    const inbox = openInbox(store, name);
    onTestFinished(() => inbox.close());
    expect(await inbox.next(1)).toEqual([{ type: 'drained' }]);
  });

  it('finds it drained after it was taken for dead and is not, and as new when it starts again', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await withdrawWorker(store, name);
    expect(await sweep(store, 3)).toHaveLength(1);
    await seedWorker(store);
    expect(await listsOf(store)).toEqual(['draining']);
    expect((await allKeys(store)).filter((key) => key.includes(':drained:'))).toEqual([]);
    expect(await sweep(store, 3)).toHaveLength(1);
    await seedWorker(store, { incarnation: 'second' });
    expect(await listsOf(store)).toEqual(['idle']);
  });

  it('does not hold up a request that must run alone and was promised the worker', async () => {
    const store = openTestStore();
    await seedRunning(store);
    await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
    await withdrawWorker(store, name);
    expect((await readDispatchable(store, 'tiny', { maxWorkers: 1, maxRequests: 1 })).reservedWorkerId).toBeUndefined();
  });

  it('knows when nobody has the id', async () => {
    const store = openTestStore();
    expect(await withdrawWorker(store, name)).toBe(false);
    expect(await resumeWorker(store, name)).toBe('unknown');
    expect(await allKeys(store)).toEqual([]);
  });
});
