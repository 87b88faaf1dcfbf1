/** A worker that unloads its model while idle, against a real queue and an engine that the test controls. */
import type { ModelCard } from '@darkroom/core';
import {
  sendCommand,
  cancelRequest,
  dispatchRequests,
  readDispatchable,
  readEvents,
  readLoadFailures,
  readStats,
  readWorkers,
  sweepWorkers,
} from '@darkroom/store';
import { expect, it, vi } from 'vitest';
import {
  type Bench,
  card,
  free,
  lease,
  stateOf,
  submit,
  types,
  startBench,
  openBusy,
  workerStates,
} from './worker-bench.ts';

const name = { shard: 'tiny', workerId: 'w1' };

/** Starts a worker and puts it to sleep. */
async function openAsleep(): Promise<Bench> {
  const bench = await startBench({ retryMs: { firstMs: 5, maxMs: 5 } });
  expect(await sendCommand(bench.store, name, { type: 'sleep' })).toBe(true);
  await expect.poll(() => bench.executor.isRunning).toBe(false);
  await expect.poll(() => workerStates(bench.store)).toEqual(['asleep']);
  return bench;
}

/** Holds the next load until the test settles it. */
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

it('sleeps after it was idle for long enough, and not while it has work', async () => {
  const { store, worker, executor, id } = await openBusy({ sleepAfterMs: 1 });
  await worker.heartbeatOnce();
  await worker.heartbeatOnce();
  expect(executor.isRunning).toBe(true);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await expect
    .poll(async () => {
      await worker.heartbeatOnce();
      return executor.isRunning;
    })
    .toBe(false);
  await expect.poll(() => workerStates(store)).toEqual(['asleep']);
  expect(await readWorkers(store, 'tiny', 1)).toMatchObject([{ state: 'asleep', isLoaded: false, freeSlots: 4 }]);
  expect(worker.isReady).toBe(true);
});

it('a lease wakes it and the request reports "loading"; leases during the load share it', async () => {
  const bench = await openAsleep();
  const { store, executor, worker } = bench;
  const load = holdLoad(bench);
  const ids = [await submit(store), await submit(store)];
  await lease(store, ids[0]!);
  await expect.poll(() => types(store, ids[0]!)).toEqual(['queued', 'started', 'loading']);
  await lease(store, ids[1]!);
  expect(await workerStates(store)).toEqual(['asleep']);
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

it('an operator can wake it', async () => {
  const { store, executor } = await openAsleep();
  expect(await sendCommand(store, name, { type: 'wake' })).toBe(true);
  await expect.poll(() => executor.isRunning).toBe(true);
  await expect.poll(() => workerStates(store)).toEqual(['idle']);
  expect(await sendCommand(store, { ...name, workerId: 'w2' }, { type: 'wake' })).toBe(false);
});

it('cancels a request at once while the model loads', async () => {
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

it('a failed load requeues its request without an attempt, reports why and takes no leases', async () => {
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
  expect(await workerStates(store)).toEqual(['loading']);
  executor.starting = () => Promise.resolve(card);
  await expect.poll(() => workerStates(store)).toEqual(['idle']);
  expect(await readLoadFailures(store)).toEqual([]);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
});

it('does not sleep with a request that was leased at the same time', async () => {
  const { store, executor } = await startBench({ sleepAfterMs: 1 });
  const id = await submit(store);
  // The two are concurrent: either may come first.
  await Promise.all([sendCommand(store, name, { type: 'sleep' }), lease(store, id)]);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  expect(executor.isRunning).toBe(true);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
});

it('stays asleep after it was reaped and registered again', async () => {
  const { store, worker } = await openAsleep();
  for (let sweep = 0; sweep < 4; sweep++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await workerStates(store)).toEqual([]);
  await worker.heartbeatOnce();
  expect(await workerStates(store)).toEqual(['asleep']);
});

it('stopping during a load requeues its requests without counting an attempt', async () => {
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
  expect(await readLoadFailures(store)).toEqual([]);
});

it('stays unregistered when it stops while it reports that it is awake', async () => {
  const { store, worker, options } = await openAsleep();
  let goOn!: () => void;
  const clearing = vi.spyOn(options.loads, 'clear').mockReturnValue(new Promise((resolve) => (goOn = resolve)));
  await sendCommand(store, name, { type: 'wake' });
  await expect.poll(() => clearing.mock.calls).toHaveLength(1);
  await worker.stop();
  goOn();
  await store.redis.ping();
  expect(await readWorkers(store, 'tiny', 1)).toEqual([]);
});

it('takes a lease of a request that must run alone', async () => {
  const { store, executor } = await openAsleep();
  const id = await submit(store);
  expect((await readDispatchable(store, 'tiny', { maxWorkers: 4, maxRequests: 4 })).workers).toMatchObject([
    { id: 'w1', isIdle: false, isAsleep: true, free: 4 },
  ]);
  const [outcome] = await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: true, requestIds: [id] }]);
  expect(outcome).toMatchObject({ status: 'leased' });
  await expect.poll(() => executor.submitted).toHaveLength(1);
});
