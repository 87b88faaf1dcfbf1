/** A worker that frees its model's memory while there is nothing to do, against a real queue and an engine that does what the test says. */
import type { ModelCard } from '@darkroom/core';
import {
  askWorker,
  cancelRequest,
  dispatchRequests,
  readDispatchable,
  readEvents,
  readLoadFailures,
  readStats,
  readWorkers,
  type StoreConnection,
  sweepWorkers,
} from '@darkroom/store';
import { expect, it, vi } from 'vitest';
import { type Bench, card, free, lease, openBench, stateOf, submit, types } from './worker-bench.ts';

const name = { model: 'tiny', workerId: 'w1' };

async function workersOf(store: StoreConnection) {
  const { workers } = await readStats(store, 'tiny');
  return Object.entries(workers).flatMap(([state, count]) => (count > 0 ? [state] : []));
}

/** One that has gone to sleep. */
async function openAsleep(): Promise<Bench> {
  const bench = openBench({ retryMs: { firstMs: 5, mostMs: 5 } });
  await bench.worker.start();
  expect(await askWorker(bench.store, name, 'sleep')).toBe(true);
  await expect.poll(() => bench.executor.isRunning).toBe(false);
  await expect.poll(() => workersOf(bench.store)).toEqual(['asleep']);
  return bench;
}

/** The next load ends when the test says how. */
function holdLoad({ executor }: Bench) {
  let resolve!: (of: ModelCard) => void;
  let reject!: (error: Error) => void;
  const loading = new Promise<ModelCard>((settle, fail) => {
    resolve = settle;
    reject = fail;
  });
  executor.starting = () => loading;
  return { finish: () => resolve(card), fail: () => reject(new Error('no memory')) };
}

it('sleeps once it has had nothing to do for long enough, and not while it has work', async () => {
  const { store, worker, executor } = openBench({ sleepAfterMs: 1 });
  await worker.start();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  await worker.beatOnce();
  await worker.beatOnce();
  expect(executor.isRunning).toBe(true);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await expect
    .poll(async () => {
      await worker.beatOnce();
      return executor.isRunning;
    })
    .toBe(false);
  await expect.poll(() => workersOf(store)).toEqual(['asleep']);
  expect(await readWorkers(store, 'tiny', 1)).toMatchObject([{ state: 'asleep', isLoaded: false, freeSlots: 4 }]);
  expect(worker.isReady).toBe(true);
});

it('is waked by a lease, which says so, and all that come meanwhile share the load', async () => {
  const bench = await openAsleep();
  const { store, executor, worker } = bench;
  const load = holdLoad(bench);
  const ids = [await submit(store), await submit(store)];
  await lease(store, ids[0]!);
  await expect.poll(() => types(store, ids[0]!)).toEqual(['queued', 'started', 'loading']);
  await lease(store, ids[1]!);
  expect(await workersOf(store)).toEqual(['asleep']);
  expect(executor.submitted).toEqual([]);
  load.finish();
  await expect.poll(() => executor.submitted).toHaveLength(2);
  for (const { id } of executor.submitted) executor.complete(id);
  for (const id of ids) await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await expect.poll(() => free(store)).toEqual([1, 4]);
  const [, , loading] = await readEvents(store, ids[0]!, { after: 0 });
  expect(loading).toMatchObject({ type: 'loading', expectedMs: expect.any(Number) as number });
  expect((await readStats(store, 'tiny')).loadMs).toEqual(expect.any(Number));
  expect(worker.requestIds).toEqual([]);
});

it('is waked by an operator, too', async () => {
  const { store, executor } = await openAsleep();
  expect(await askWorker(store, name, 'wake')).toBe(true);
  await expect.poll(() => executor.isRunning).toBe(true);
  await expect.poll(() => workersOf(store)).toEqual(['idle']);
  expect(await askWorker(store, { ...name, workerId: 'w2' }, 'wake')).toBe(false);
});

it('hears while it loads that a request was canceled, and that ends at once', async () => {
  const bench = await openAsleep();
  const { store, executor } = bench;
  const load = holdLoad(bench);
  const ids = [await submit(store), await submit(store)];
  for (const id of ids) await lease(store, id);
  await expect.poll(() => types(store, ids[1]!)).toContain('loading');
  await cancelRequest(store, ids[0]!);
  await expect.poll(() => stateOf(store, ids[0]!)).toBe('canceled');
  load.finish();
  await expect.poll(() => executor.submitted).toHaveLength(1);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, ids[1]!)).toBe('succeeded');
});

it('gives back what it could not load for, which is no attempt, says why, and gets no more until it is loaded', async () => {
  const bench = await openAsleep();
  const { store, executor } = bench;
  const load = holdLoad(bench);
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => types(store, id)).toContain('loading');
  load.fail();
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  expect(await readLoadFailures(store)).toMatchObject([{ model: 'tiny' }]);
  expect(await readEvents(store, id, { after: 3 })).toMatchObject([{ type: 'queued', attempt: 1 }]);
  expect(await workersOf(store)).toEqual(['loading']);
  executor.starting = () => Promise.resolve(card);
  await expect.poll(() => workersOf(store)).toEqual(['idle']);
  expect(await readLoadFailures(store)).toEqual([]);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
});

it('does not sleep with what was leased as it was about to', async () => {
  const { store, worker, executor } = openBench({ sleepAfterMs: 1 });
  await worker.start();
  const id = await submit(store);
  // Both at once, in either order.
  await Promise.all([askWorker(store, name, 'sleep'), lease(store, id)]);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  expect(executor.isRunning).toBe(true);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
});

it('is still asleep when it was taken for dead and registers again', async () => {
  const { store, worker } = await openAsleep();
  for (let sweep = 0; sweep < 4; sweep++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await workersOf(store)).toEqual([]);
  await worker.beatOnce();
  expect(await workersOf(store)).toEqual(['asleep']);
});

it('stops in mid-load: what it was leased goes back, and that is no attempt', async () => {
  const bench = await openAsleep();
  const { store, worker, executor } = bench;
  const load = holdLoad(bench);
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => types(store, id)).toContain('loading');
  executor.shutdown = () => {
    load.fail();
    return Promise.resolve();
  };
  await worker.stop();
  expect(await types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  expect((await readStats(store, 'tiny')).workers).toMatchObject({ asleep: 0, busy: 0, idle: 0 });
  expect(await readEvents(store, id, { after: 3 })).toMatchObject([{ type: 'queued', attempt: 1 }]);
});

it('is gone once it has stopped, though it was about to say that it is awake', async () => {
  const { store, worker, options } = await openAsleep();
  let goOn!: () => void;
  const clearing = vi.spyOn(options.loads, 'clear').mockReturnValue(new Promise((resolve) => (goOn = resolve)));
  await askWorker(store, name, 'wake');
  await expect.poll(() => clearing.mock.calls).toHaveLength(1);
  await worker.stop();
  goOn();
  await store.redis.ping();
  expect(await readWorkers(store, 'tiny', 1)).toEqual([]);
});

it('gets what must run alone', async () => {
  const { store, executor } = await openAsleep();
  const id = await submit(store);
  expect((await readDispatchable(store, 'tiny', { maxWorkers: 4, maxRequests: 4 })).workers).toMatchObject([
    { id: 'w1', isIdle: false, isAsleep: true, free: 4 },
  ]);
  const [outcome] = await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: true, requestIds: [id] }]);
  expect(outcome).toMatchObject({ status: 'leased' });
  await expect.poll(() => executor.submitted).toHaveLength(1);
});
