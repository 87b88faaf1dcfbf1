/** Workers that restart because their model's files were replaced: one at a time, and no row mixes two models. */
import type { ModelCard } from '@darkroom/core';
import { Metrics } from '@darkroom/service';
import {
  sendCommand,
  listWorkers,
  readAsset,
  readLoadFailures,
  readRequest,
  readWorkers,
  type StoreConnection,
} from '@darkroom/store';
import { openTestStore, parseExposition, silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { Restart } from '../../apps/worker/src/engine/worker-engine.ts';
import { RestartableWorker } from '../../apps/worker/src/models/restartable-worker.ts';
import { Worker } from '../../apps/worker/src/worker/worker.ts';
import type { WorkerOptions } from '../../apps/worker/src/worker/worker-options.ts';
import {
  card,
  FakeExecutor,
  free,
  lease,
  openBench,
  openBusy,
  optionsOf,
  stateOf,
  submit,
  types,
} from './worker-bench.ts';

interface RestartBench {
  store: StoreConnection;
  service: RestartableWorker;
  /** The engine of each worker that was created, in order. */
  executors: FakeExecutor[];
  /** Loads the model in the workers created from now on. */
  starting: () => Promise<ModelCard>;
}

function openRestartable(
  {
    store = openTestStore(),
    workerId = 'w1',
    lockRetryMs = 1,
  }: Pick<Partial<WorkerOptions>, 'store' | 'workerId'> & { lockRetryMs?: number } = {},
  optionsFor: (restart: Restart) => Partial<WorkerOptions> = () => ({}),
): RestartBench {
  const executors: FakeExecutor[] = [];
  const createWorker = (restart: Restart): Promise<Worker> => {
    const options = optionsOf(store, (listener) => {
      const executor = new FakeExecutor(listener);
      executor.starting = bench.starting;
      executors.push(executor);
      return executor;
    });
    return Promise.resolve(new Worker({ ...options, ...optionsFor(restart), workerId, restart }));
  };
  const holder = { model: 'tiny', workerId };
  const times = { retryMs: { firstMs: 1, maxMs: 1 }, lockRetryMs };
  const service = new RestartableWorker({ store, holder, createWorker, log: silentLogger(), ...times });
  const bench: RestartBench = { store, service, executors, starting: () => Promise.resolve(card) };
  onTestFinished(() => service.stop());
  return bench;
}

async function openStarted(...options: Parameters<typeof openRestartable>): Promise<RestartBench> {
  const bench = openRestartable(...options);
  await bench.service.start();
  return bench;
}

async function openPair(): Promise<[RestartBench, RestartBench]> {
  const store = openTestStore();
  return [await openStarted({ store, workerId: 'w1' }), await openStarted({ store, workerId: 'w2' })];
}

/** Holds the loads of later workers until the test settles them. */
function holdLoads(bench: RestartBench) {
  const held: { finish: () => void; fail: () => void }[] = [];
  bench.starting = () =>
    new Promise<ModelCard>((finish, fail) => {
      held.push({ finish: () => finish(card), fail: () => fail(new Error('no such file')) });
    });
  return held;
}

async function statesOf(store: StoreConnection): Promise<string[]> {
  return (await readWorkers(store, 'tiny', 10)).map(({ state }) => state).toSorted();
}

function command(store: StoreConnection, type: 'sleep' | 'wake'): Promise<unknown> {
  return sendCommand(store, { shard: 'tiny', workerId: 'w1' }, { type });
}

async function restartAll(store: StoreConnection): Promise<void> {
  for (const worker of await listWorkers(store, 'tiny')) await sendCommand(store, worker, { type: 'restart' });
}

function isLocked(store: StoreConnection): Promise<number> {
  return store.redis.exists(store.keysOf('tiny').restarting);
}

it('requeues its requests without an attempt, and the fresh worker resumes them from their checkpoints', async () => {
  const { store, executors } = await openStarted();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executors[0]!.submitted).toHaveLength(1);
  const { id: requestId } = executors[0]!.submitted[0]!;
  executors[0]!.emit([{ type: 'checkpoint', requestId, index: 0, checkpoint: { done: 3, data: Uint8Array.of(1) } }]);
  await restartAll(store);
  await expect.poll(() => executors).toHaveLength(2);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(executors[0]!.isRunning).toBe(false);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0 } });
  await lease(store, id);
  await expect.poll(() => executors[1]!.submitted).toHaveLength(1);
  const [{ id: again, checkpoints }] = executors[1]!.submitted as [(typeof executors)[0]['submitted'][0]];
  expect(checkpoints!.size).toBe(1);
  executors[1]!.complete(again);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await isLocked(store)).toBe(0);
});

it('restarts once for several commands', async () => {
  const { store, executors } = await openStarted();
  const { restarting } = store.keysOf('tiny');
  await store.redis.set(restarting, 'another worker');
  for (let times = 0; times < 3; times++) await restartAll(store);
  await store.redis.del(restarting);
  await expect.poll(() => executors).toHaveLength(2);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(executors).toHaveLength(2);
});

it('workers restart one after the other', async () => {
  const benches = await openPair();
  const [{ store }] = benches;
  const loads = benches.map(holdLoads);
  await restartAll(store);
  await expect.poll(() => loads.flat()).toHaveLength(1);
  const [first, second] = loads[0]!.length > 0 ? [0, 1] : [1, 0];
  await expect.poll(() => statesOf(store)).toEqual(['idle', 'loading']);
  expect(loads[second]).toHaveLength(0);
  loads[first]![0]!.finish();
  await expect.poll(() => loads[second]!).toHaveLength(1);
  await expect.poll(() => benches[first]!.service.isReady).toBe(true);
  loads[second]![0]!.finish();
  await expect.poll(() => statesOf(store)).toEqual(['idle', 'idle']);
  await expect.poll(() => isLocked(store)).toBe(0);
});

it('reports a failed restart and retries it, and the other workers keep serving the old model', async () => {
  const benches = await openPair();
  const [{ store }] = benches;
  for (const bench of benches) bench.starting = () => Promise.reject(new Error('no such file'));
  await restartAll(store);
  await expect.poll(() => readLoadFailures(store)).toMatchObject([{ model: 'tiny' }]);
  await expect.poll(() => benches.flatMap(({ executors }) => executors).length).toBeGreaterThan(4);
  expect(benches.filter(({ service }) => service.isReady)).toHaveLength(1);
  expect(benches.map(({ executors }) => executors.length)).toContain(1);
  for (const bench of benches) bench.starting = () => Promise.resolve(card);
  await expect.poll(() => benches.every(({ executors }) => executors.length > 1)).toBe(true);
  await expect.poll(() => statesOf(store)).toEqual(['idle', 'idle']);
  expect(await readLoadFailures(store)).toEqual([]);
  await expect.poll(() => isLocked(store)).toBe(0);
});

it('restarts when the lock of a worker that died during its restart expires', async () => {
  const bench = await openStarted();
  const { store } = bench;
  const loads = holdLoads(bench);
  await store.redis.set(store.keysOf('tiny').restarting, 'a dead worker', 'PX', 100);
  await restartAll(store);
  await expect.poll(() => loads).toHaveLength(1);
  expect(await store.redis.pttl(store.keysOf('tiny').restarting)).toBeGreaterThan(500_000);
  loads[0]!.finish();
  await expect.poll(() => free(store)).toEqual([1, 4]);
});

it('stops while it waits for the restart lock', async () => {
  const { store, service, executors } = await openStarted();
  await store.redis.set(store.keysOf('tiny').restarting, 'another worker');
  const tries = vi.spyOn(store.redis as unknown as Record<string, () => Promise<number>>, 'models/restart-lock');
  await restartAll(store);
  await expect.poll(() => tries.mock.calls.length).toBeGreaterThan(1);
  await service.stop();
  expect([executors.length, await statesOf(store), await isLocked(store)]).toEqual([1, [], 1]);
});

it('stops while the fresh worker loads, and while a failed restart is retried', async () => {
  const bench = await openStarted();
  const { store, service, executors } = bench;
  const loads = holdLoads(bench);
  await restartAll(store);
  await expect.poll(() => loads).toHaveLength(1);
  const stopping = service.stop();
  loads[0]!.fail();
  await stopping;
  expect([executors.length, await statesOf(store), await isLocked(store)]).toEqual([2, [], 0]);
  bench.starting = () => Promise.resolve(card);
  await service.start();
  bench.starting = () => Promise.reject(new Error('no such file'));
  await restartAll(store);
  await expect.poll(() => executors.length).toBeGreaterThan(4);
  await service.stop();
  expect([await statesOf(store), await isLocked(store)]).toEqual([[], 0]);
});

it.each([
  ['resumes from its checkpoint with the same model digest', 'old', 1],
  ['restarts with another model digest', 'new', 0],
])('an interrupted row %s', async (_what, digest, resumed) => {
  const files = { digest: 'old', changed: [], check: () => Promise.resolve(false) };
  const { store, worker, executor } = openBench({ files });
  await worker.start();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  const { id: requestId } = executor.submitted.pop()!;
  executor.emit([
    { type: 'checkpoint', requestId, index: 0, checkpoint: { done: 3, data: Uint8Array.of(1) } },
    { type: 'request-lost', requestId, message: 'it broke off' },
  ]);
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'queued']);
  files.digest = digest;
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  expect(executor.submitted[0]!.checkpoints!.size).toBe(resumed);
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
});

it('reports no rows and no replaced files of a worker that has stopped', async () => {
  const metrics = new Metrics({ app: 'worker', log: silentLogger() });
  const files = { digest: 'old', changed: ['unet.onnx'], check: () => Promise.resolve(true) };
  const { worker, executor } = await openBusy({ metrics, files });
  executor.emit([{ type: 'progress', requestId: executor.submitted[0]!.id, index: 0, done: 1, total: 9 }]);
  const names = ['darkroom_engine_rows', 'darkroom_model_files_changed'];
  const gauges = async () => {
    const page = parseExposition(await metrics.expose());
    return names.map((name) => page.value(name, { app: 'worker', model: 'tiny' }));
  };
  await expect.poll(gauges).toEqual([1, 1]);
  await worker.stop();
  expect(await gauges()).toEqual([0, 0]);
});

/** Starts a worker that sleeps, and replaces its model's files. */
async function openReplaced() {
  let version = 1;
  const names = ['one', 'two'];
  const log = silentLogger();
  const errors = vi.spyOn(log, 'error');
  const bench = await openStarted({}, (restart) => {
    const [created, name] = [version, names[version - 1]!];
    const prepare = async (): Promise<void> => {
      if (created === version) return;
      restart({ isForced: true });
      throw new Error('the files were replaced');
    };
    return { prepare, log, capacity: version, asset: { name, bytes: Buffer.from(name) } };
  });
  expect(await readAsset(bench.store, 'tiny', 'one')).toEqual(Buffer.from('one'));
  await command(bench.store, 'sleep');
  await expect.poll(() => statesOf(bench.store)).toEqual(['asleep']);
  version = 2;
  return { ...bench, errors, loads: holdLoads(bench) };
}

it('restarts again for a command that arrives while the fresh worker loads', async () => {
  const restarts: Restart[] = [];
  const bench = await openStarted({}, (restart) => {
    restarts.push(restart);
    return {};
  });
  const { store, executors } = bench;
  const loads = holdLoads(bench);
  await restartAll(store);
  await expect.poll(() => loads).toHaveLength(1);
  restarts[1]!();
  loads[0]!.finish();
  await expect.poll(() => loads).toHaveLength(2);
  loads[1]!.finish();
  await expect.poll(() => free(store)).toEqual([1, 4]);
  await expect.poll(() => isLocked(store)).toBe(0);
  expect(executors).toHaveLength(3);
});

it('a wake that finds replaced files restarts although another worker holds the restart lock', async () => {
  const { store, executors, loads, errors } = await openReplaced();
  const { restarting } = store.keysOf('tiny');
  await store.redis.set(restarting, 'another worker');
  await command(store, 'wake');
  await expect.poll(() => loads).toHaveLength(1);
  // Replaced files are no failure: the worker reports none.
  expect([await readLoadFailures(store), errors.mock.calls]).toEqual([[], []]);
  loads[0]!.finish();
  await expect.poll(() => free(store)).toEqual([1, 2]);
  expect([executors.length, await store.redis.get(restarting)]).toEqual([2, 'another worker']);
});

it('replaced files end the wait of a restart for the lock', async () => {
  let restart!: Restart;
  const { store, executors } = await openStarted({ lockRetryMs: 600_000 }, (given) => {
    restart = given;
    return {};
  });
  await store.redis.set(store.keysOf('tiny').restarting, 'another worker');
  const tries = vi.spyOn(store.redis as unknown as Record<string, () => Promise<number>>, 'models/restart-lock');
  await restartAll(store);
  await expect.poll(() => tries.mock.settledResults).toMatchObject([{ type: 'fulfilled' }]);
  restart({ isForced: true });
  await expect.poll(() => executors).toHaveLength(2);
});

it('a wake that finds replaced files requeues its request, and restarts the worker', async () => {
  const { store, executors, loads } = await openReplaced();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => types(store, id)).toEqual(['queued', 'started', 'loading', 'queued']);
  await expect.poll(() => loads).toHaveLength(1);
  loads[0]!.finish();
  await expect.poll(() => free(store)).toEqual([1, 2]);
  expect(executors).toHaveLength(2);
  expect(await readAsset(store, 'tiny', 'two')).toEqual(Buffer.from('two'));
  expect(await readLoadFailures(store)).toEqual([]);
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0 } });
});
