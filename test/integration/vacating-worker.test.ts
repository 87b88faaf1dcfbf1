/** A worker that takes no more leases, ends what it has, and frees its memory: to sleep, or to load its model anew. */
import {
  askWorker,
  dispatchRequests,
  readLoadFailures,
  readStats,
  resumeWorker,
  type StoreConnection,
  sweepWorkers,
  withdrawWorker,
} from '@darkroom/store';
import { expect, it } from 'vitest';
import { type Bench, card, free, lease, openBench, stateOf, submit, types } from './worker-bench.ts';

const name = { model: 'tiny', workerId: 'w1' };

async function listsOf(store: StoreConnection): Promise<string[]> {
  const { workers } = await readStats(store, 'tiny');
  return Object.entries(workers).flatMap(([state, count]) => (count > 0 ? [state] : []));
}

/** One that has a request, and was then asked for something. @returns the request, and how often a model was loaded. */
async function openBusy(to: 'sleep' | 'reload', options: Parameters<typeof openBench>[0] = {}) {
  const bench = openBench({ retryMs: { firstMs: 0, mostMs: 0 }, ...options });
  let loads = 0;
  bench.executor.starting = () => {
    loads += 1;
    return Promise.resolve(card);
  };
  await bench.worker.start();
  const id = await submit(bench.store);
  await lease(bench.store, id);
  await expect.poll(() => bench.executor.submitted).toHaveLength(1);
  await askWorker(bench.store, name, to);
  await expect.poll(() => listsOf(bench.store)).toEqual(['loading']);
  return { ...bench, id, loads: () => loads };
}

/** Ends all that the engine has. */
function completeAll({ executor }: Pick<Bench, 'executor'>): void {
  for (const { id } of executor.submitted.splice(0)) executor.complete(id);
}

/** Another request is leased, done, and ends. */
async function serveOne(bench: Pick<Bench, 'store' | 'executor'>): Promise<void> {
  const id = await submit(bench.store);
  await lease(bench.store, id);
  await expect.poll(() => bench.executor.submitted).toHaveLength(1);
  completeAll(bench);
  await expect.poll(() => stateOf(bench.store, id)).toBe('succeeded');
}

/** All that was said to it. */
async function hasRead({ store, worker }: Pick<Bench, 'store' | 'worker'>): Promise<void> {
  const unread = async (): Promise<number> => {
    await worker.beatOnce();
    return store.redis.xlen(store.keysOf('tiny').inbox('w1'));
  };
  await expect.poll(unread).toBe(0);
}

async function outcomeOfLease(store: StoreConnection): Promise<string> {
  const lease = { workerId: 'w1', isExclusive: false, requestIds: [await submit(store)] };
  const [outcome] = await dispatchRequests(store, 'tiny', [lease]);
  return outcome!.status;
}

it('gets no more leases, ends what it has, and sleeps; the next lease wakes it', async () => {
  const bench = await openBusy('sleep');
  const { store, worker, executor, id } = bench;
  expect(await outcomeOfLease(store)).toBe('waiting');
  await worker.beatOnce();
  expect(executor.isRunning).toBe(true);
  expect(worker.isReady).toBe(false);
  completeAll(bench);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await expect.poll(() => listsOf(store)).toEqual(['asleep']);
  expect(executor.isRunning).toBe(false);
  await serveOne(bench);
  await worker.beatOnce();
  expect(executor.isRunning).toBe(true);
  await expect.poll(() => free(store)).toEqual([1, 4]);
});

it('ends what was in its inbox, too', async () => {
  const bench = openBench();
  const { store, worker, executor } = bench;
  await worker.start();
  const ids = [await submit(store), await submit(store)];
  await Promise.all([lease(store, ids[0]!), askWorker(store, name, 'sleep'), lease(store, ids[1]!).catch(() => {})]);
  await expect.poll(() => executor.submitted.length).toBeGreaterThan(0);
  await expect
    .poll(async () => {
      completeAll(bench);
      await worker.beatOnce();
      return listsOf(store);
    })
    .toEqual(['asleep']);
  expect(await stateOf(store, ids[0]!)).toBe('succeeded');
  expect(['succeeded', 'queued']).toContain(await stateOf(store, ids[1]!));
});

it('goes on when it is waked before its end', async () => {
  const { store, executor, id, loads, ...bench } = await openBusy('sleep');
  await askWorker(store, name, 'wake');
  await expect.poll(() => listsOf(store)).toEqual(['busy']);
  completeAll({ executor });
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await bench.worker.beatOnce();
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect([executor.isRunning, loads()]).toEqual([true, 1]);
});

it('loads anew what lies there, once for all who asked, and gets leases again', async () => {
  const bench = await openBusy('reload');
  const { store, executor, id, loads } = bench;
  await askWorker(store, name, 'reload');
  await askWorker(store, name, 'wake');
  expect(await outcomeOfLease(store)).toBe('waiting');
  completeAll(bench);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect([executor.isRunning, loads()]).toEqual([true, 2]);
  await serveOne(bench);
  expect(loads()).toBe(2);
});

it('sleeps when it is asked for that as well: who wakes, loads anew', async () => {
  const bench = await openBusy('reload');
  await askWorker(bench.store, name, 'sleep');
  await hasRead(bench);
  completeAll(bench);
  await expect.poll(() => listsOf(bench.store)).toEqual(['asleep']);
  expect(bench.loads()).toBe(1);
  await serveOne(bench);
  await bench.worker.beatOnce();
  expect([bench.executor.isRunning, bench.loads()]).toEqual([true, 2]);
});

it('gets no leases for what cannot be loaded anew, says why, and tries until it can', async () => {
  const { store, executor, id } = await openBusy('reload', { retryMs: { firstMs: 5, mostMs: 5 } });
  executor.starting = () => Promise.reject(new Error('no such file'));
  completeAll({ executor });
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await expect.poll(() => readLoadFailures(store)).toMatchObject([{ model: 'tiny' }]);
  expect(await listsOf(store)).toEqual(['loading']);
  executor.starting = () => Promise.resolve(card);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(await readLoadFailures(store)).toEqual([]);
});

it('sleeps without another engine when its own is lost before its end; what that had goes back', async () => {
  const { store, executor, id, loads } = await openBusy('sleep');
  executor.kill();
  await expect.poll(() => listsOf(store)).toEqual(['asleep']);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect(loads()).toBe(1);
});

it('loads anew once when its engine is lost before its end', async () => {
  const { store, executor, id, loads } = await openBusy('reload');
  executor.kill();
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect([executor.isRunning, loads()]).toEqual([true, 2]);
});

it('is still about to sleep when it was taken for dead and registers again', async () => {
  const { store, worker, executor } = await openBusy('sleep');
  for (let sweep = 0; sweep < 4; sweep++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await listsOf(store)).toEqual([]);
  await worker.beatOnce();
  expect(await listsOf(store)).toEqual(['loading']);
  executor.emit(executor.canceled.map((requestId) => ({ type: 'request-canceled', requestId })));
  await expect.poll(() => listsOf(store)).toEqual(['asleep']);
  expect(executor.isRunning).toBe(false);
});

it('stops before its end: what it has goes back, and nobody is left behind', async () => {
  const { store, worker, id } = await openBusy('reload');
  await worker.stop();
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect(await listsOf(store)).toEqual([]);
});

it.each(['shutdown', 'starting'] as const)('stops in mid-%s', async (phase) => {
  const { store, worker, executor, loads } = await openBusy('reload');
  let end: ((outcome: Promise<never>) => void) | undefined;
  executor[phase] = () => new Promise<never>((resolve) => (end = resolve));
  completeAll({ executor });
  await expect.poll(() => end).toBeDefined();
  executor.shutdown = () => {
    end!(phase === 'starting' ? Promise.reject(new Error('killed')) : (undefined as never));
    return Promise.resolve();
  };
  await worker.stop();
  await store.redis.ping();
  expect([loads(), await listsOf(store)]).toEqual([1, []]);
});

it('waits for what Redis says that it has, though nobody has told it yet', async () => {
  const { store, worker, executor } = openBench();
  await worker.start();
  const leases = store.keysOf('tiny').leases('w1');
  await store.redis.hset(leases, 'tiny-1 token', '1 shape');
  await askWorker(store, name, 'sleep');
  await expect.poll(() => listsOf(store)).toEqual(['loading']);
  for (let beats = 0; beats < 3; beats++) await worker.beatOnce();
  expect(executor.isRunning).toBe(true);
  await store.redis.del(leases);
  await worker.beatOnce();
  await expect.poll(() => listsOf(store)).toEqual(['asleep']);
});

it('stays drained by an operator, asleep or not', async () => {
  const bench = await openBusy('sleep');
  const { store } = bench;
  await withdrawWorker(store, name);
  completeAll(bench);
  await expect.poll(() => bench.executor.isRunning).toBe(false);
  await bench.worker.beatOnce();
  expect(await listsOf(store)).toEqual(['draining']);
  await resumeWorker(store, name);
  await expect.poll(() => listsOf(store)).toEqual(['asleep']);
});

it('has another engine at once when one is lost, and after a pause when that is lost, too', async () => {
  const { store, worker, executor } = openBench({ retryMs: { firstMs: 3_600_000, mostMs: 3_600_000 } });
  await worker.start();
  executor.kill();
  await expect.poll(() => executor.isRunning).toBe(true);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  executor.kill();
  await expect.poll(() => listsOf(store)).toEqual(['loading']);
  for (let beats = 0; beats < 3; beats++) await worker.beatOnce();
  expect(executor.isRunning).toBe(false);
  await worker.stop();
  expect(await listsOf(store)).toEqual([]);
});
