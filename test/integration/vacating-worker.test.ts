/** Workers that take no more leases, finish their requests and free memory, in order to sleep. */
import {
  sendCommand,
  dispatchRequests,
  resumeWorker,
  type StoreConnection,
  sweepWorkers,
  drainByOperator,
} from '@darkroom/store';
import { expect, it } from 'vitest';
import {
  type Bench,
  card,
  free,
  lease,
  openBusy,
  startBench,
  stateOf,
  submit,
  types,
  workerStates,
} from './worker-bench.ts';

const name = { shard: 'tiny', workerId: 'w1' };

/** Starts a worker with one request and sends it to sleep. `loads` counts the loads of the model. */
async function openVacating() {
  const bench = await openBusy({ retryMs: { firstMs: 0, maxMs: 0 } });
  let loads = 1;
  bench.executor.starting = () => {
    loads += 1;
    return Promise.resolve(card);
  };
  await sendCommand(bench.store, name, { type: 'sleep' });
  await expect.poll(() => workerStates(bench.store)).toEqual(['loading']);
  return { ...bench, loads: () => loads };
}

/** Completes all requests in the engine. */
function completeAll({ executor }: Pick<Bench, 'executor'>): void {
  for (const { id } of executor.submitted.splice(0)) executor.complete(id);
}

/** Leases another request and completes it. */
async function serveOne(bench: Pick<Bench, 'store' | 'executor'>): Promise<void> {
  const id = await submit(bench.store);
  await lease(bench.store, id);
  await expect.poll(() => bench.executor.submitted).toHaveLength(1);
  completeAll(bench);
  await expect.poll(() => stateOf(bench.store, id)).toBe('succeeded');
}

async function outcomeOfLease(store: StoreConnection): Promise<string> {
  const lease = { workerId: 'w1', isExclusive: false, requestIds: [await submit(store)] };
  const [outcome] = await dispatchRequests(store, 'tiny', [lease]);
  return outcome!.status;
}

it('sleep: takes no more leases, finishes its requests and unloads the model; the next lease wakes it', async () => {
  const bench = await openVacating();
  const { store, worker, executor, id } = bench;
  expect(await outcomeOfLease(store)).toBe('waiting');
  await worker.heartbeatOnce();
  expect(executor.isRunning).toBe(true);
  expect(worker.isReady).toBe(false);
  completeAll(bench);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await expect.poll(() => workerStates(store)).toEqual(['asleep']);
  expect(executor.isRunning).toBe(false);
  await serveOne(bench);
  await worker.heartbeatOnce();
  expect(executor.isRunning).toBe(true);
  await expect.poll(() => free(store)).toEqual([1, 4]);
});

it('sleep: finishes requests that were in its inbox too', async () => {
  const bench = await startBench();
  const { store, worker, executor } = bench;

  const ids = [await submit(store), await submit(store)];
  await Promise.all([
    lease(store, ids[0]!),
    sendCommand(store, name, { type: 'sleep' }),
    lease(store, ids[1]!).catch(() => {}),
  ]);
  await expect.poll(() => executor.submitted.length).toBeGreaterThan(0);
  await expect
    .poll(async () => {
      completeAll(bench);
      await worker.heartbeatOnce();
      return workerStates(store);
    })
    .toEqual(['asleep']);
  expect(await stateOf(store, ids[0]!)).toBe('succeeded');
  expect(['succeeded', 'queued']).toContain(await stateOf(store, ids[1]!));
});

it('wake before the worker is asleep: it goes on without reloading', async () => {
  const { store, executor, id, loads, ...bench } = await openVacating();
  await sendCommand(store, name, { type: 'wake' });
  await expect.poll(() => workerStates(store)).toEqual(['busy']);
  completeAll({ executor });
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  await bench.worker.heartbeatOnce();
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect([executor.isRunning, loads()]).toEqual([true, 1]);
});

it('sleep: when the engine is lost, requeues its requests and does not start another engine', async () => {
  const { store, executor, id, loads } = await openVacating();
  executor.kill();
  await expect.poll(() => workerStates(store)).toEqual(['asleep']);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect(loads()).toBe(1);
});

it('sleep: still goes to sleep after it was reaped and registered again', async () => {
  const { store, worker, executor } = await openVacating();
  for (let sweep = 0; sweep < 4; sweep++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await workerStates(store)).toEqual([]);
  await worker.heartbeatOnce();
  expect(await workerStates(store)).toEqual(['loading']);
  executor.emit(executor.canceled.map((requestId) => ({ type: 'request-canceled', requestId })));
  await expect.poll(() => workerStates(store)).toEqual(['asleep']);
  expect(executor.isRunning).toBe(false);
});

it('sleep: stopping requeues its requests and unregisters the worker', async () => {
  const { store, worker, id } = await openVacating();
  await worker.stop();
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect(await workerStates(store)).toEqual([]);
});

it('sleep: stops while the engine shuts down', async () => {
  const { store, worker, executor, loads } = await openVacating();
  let end: (() => void) | undefined;
  executor.shutdown = () => new Promise((resolve) => (end = resolve));
  completeAll({ executor });
  await expect.poll(() => end).toBeDefined();
  executor.shutdown = () => Promise.resolve(end!());
  await worker.stop();
  await store.redis.ping();
  expect([loads(), await workerStates(store)]).toEqual([1, []]);
});

it('sleep: waits while Redis holds leases of this worker that it has not read yet', async () => {
  const { store, worker, executor } = await startBench();
  const leases = store.keysOf('tiny').leases('w1');
  await store.redis.hset(leases, 'tiny-1 token', '1 shape');
  await sendCommand(store, name, { type: 'sleep' });
  await expect.poll(() => workerStates(store)).toEqual(['loading']);
  for (let beats = 0; beats < 3; beats++) await worker.heartbeatOnce();
  expect(executor.isRunning).toBe(true);
  await store.redis.del(leases);
  await worker.heartbeatOnce();
  await expect.poll(() => workerStates(store)).toEqual(['asleep']);
});

it('stays drained by an operator, asleep or not', async () => {
  const bench = await openVacating();
  const { store } = bench;
  await drainByOperator(store, name);
  completeAll(bench);
  await expect.poll(() => bench.executor.isRunning).toBe(false);
  await bench.worker.heartbeatOnce();
  expect(await workerStates(store)).toEqual(['draining']);
  await resumeWorker(store, name);
  await expect.poll(() => workerStates(store)).toEqual(['asleep']);
});

it('replaces a lost engine at once, and after a pause when the replacement is lost too', async () => {
  const { store, worker, executor } = await startBench({ retryMs: { firstMs: 3_600_000, maxMs: 3_600_000 } });
  executor.kill();
  await expect.poll(() => executor.isRunning).toBe(true);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  executor.kill();
  await expect.poll(() => workerStates(store)).toEqual(['loading']);
  for (let beats = 0; beats < 3; beats++) await worker.heartbeatOnce();
  expect(executor.isRunning).toBe(false);
  await worker.stop();
  expect(await workerStates(store)).toEqual([]);
});
