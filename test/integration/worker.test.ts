/** The worker against a real queue and an engine that does what the test says. */
import { DarkroomError, type ModelCard, type RowRequest } from '@darkroom/core';
import {
  cancelRequest,
  listShards,
  readLoadFailures,
  readRequest,
  readStats,
  type StoreConnection,
  sweepWorkers,
} from '@darkroom/store';
import { createLogger } from '@darkroom/service';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LoadWatch } from '../../apps/worker/src/engine/load-watch.ts';
import { Worker } from '../../apps/worker/src/worker.ts';
import {
  card,
  type Encoded,
  encoderOf,
  FakeExecutor,
  free,
  lease,
  openBench,
  optionsOf,
  pixels,
  stateOf,
  submit,
  types,
} from './worker-bench.ts';

/** A model that is loading until the test says how that ends. */
function createDeferred(): {
  promise: Promise<ModelCard>;
  resolve: (card: ModelCard) => void;
  reject: (error: Error) => void;
} {
  let settle: Pick<ReturnType<typeof createDeferred>, 'resolve' | 'reject'> | undefined;
  const promise = new Promise<ModelCard>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle! };
}

/** An encoder that is at work until the test says that it is done. */
function createHeldEncoder(): { encode: () => Promise<Encoded>; finish: () => void } {
  let finish: ((encoded: Encoded) => void) | undefined;
  const encoding = new Promise<Encoded>((resolve) => (finish = resolve));
  return { encode: () => encoding, finish: () => finish?.({ data: pixels.data, contentType: 'x/y' }) };
}

/** Takes the worker for dead, as a janitor does; what it had is in the queue again. */
async function bury(store: StoreConnection): Promise<string[]> {
  // One heartbeat may come between them.
  for (let sweeps = 0; sweeps < 4; sweeps++) {
    const [dead] = await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
    if (dead !== undefined) return dead.requests.map(({ id }) => id);
  }
  throw new Error('nobody was buried');
}

/** A worker that has a request in its engine. */
async function openBusy(options?: Parameters<typeof openBench>[0]) {
  const bench = openBench(options);
  await bench.worker.start();
  const id = await submit(bench.store);
  await lease(bench.store, id);
  await expect.poll(() => bench.executor.submitted).toHaveLength(1);
  return { ...bench, id };
}

it('runs what it is leased', async () => {
  const { store, worker, executor, id } = await openBusy();
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await types(store, id)).toEqual(['queued', 'started', 'output', 'succeeded']);
  await expect.poll(() => worker.requestIds).toEqual([]);
  expect(await free(store)).toEqual([1, 4]);
});

it('taken for dead while alive, it drops what it had, registers again and runs it once more', async () => {
  const { store, worker, executor, id } = await openBusy();
  expect(await bury(store)).toEqual([id]);
  await worker.beatOnce();
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(2);
  const [first, second] = executor.submitted.map((request) => request.id);
  expect(executor.canceled).toEqual([first]);
  // Its first rows are still in the engine, and say so.
  executor.emit([
    { type: 'progress', requestId: first!, index: 0, done: 1, total: 2 },
    { type: 'output', requestId: first!, index: 0, output: pixels },
    { type: 'request-canceled', requestId: first! },
  ]);
  await expect.poll(() => worker.requestIds).toEqual([id]);
  expect(executor.canceled).not.toContain(second);
  executor.complete(second!);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued', 'started', 'output', 'succeeded']);
  await expect.poll(() => worker.requestIds).toEqual([]);
  expect(await free(store)).toEqual([1, 4]);
});

it('hears of what it lost by the next thing that it writes', async () => {
  const { store, executor, id } = await openBusy();
  expect(await bury(store)).toEqual([id]);
  const [{ id: token }] = executor.submitted as [RowRequest];
  executor.emit([{ type: 'progress', requestId: token, index: 0, done: 1, total: 2 }]);
  await expect.poll(() => executor.canceled).toEqual([token]);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
});

it('taken for dead, it reads what it is leased then, whatever clock Redis had before', async () => {
  const { store, worker, executor } = openBench();
  await worker.start();
  const aDayAhead = `${Date.now() + 86_400_000}-0`;
  await store.redis.xadd(store.keysOf('tiny').inbox('w1'), aDayAhead, 'message', '{"type":"cancel","id":"read"}');
  const [first, second] = [await submit(store), await submit(store)];
  await lease(store, first);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  await bury(store);
  await worker.beatOnce();
  await lease(store, second);
  await expect.poll(() => executor.submitted).toHaveLength(2);
});

it('cancels what it runs', async () => {
  const { store, worker, executor } = openBench();
  await worker.start();
  const id = await submit(store);
  await lease(store, id);
  // In the inbox behind the batch, whether or not that has been read yet.
  expect(await cancelRequest(store, id)).toEqual({ status: 'canceling' });
  await expect.poll(() => executor.canceled).toHaveLength(1);
  executor.emit([{ type: 'request-canceled', requestId: executor.canceled[0]! }]);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
});

it('ends no request that it dropped because it was lost, though it is its own again', async () => {
  const { store, worker, executor, id } = await openBusy();
  const [{ id: token }] = executor.submitted as [RowRequest];
  // A master that then gave way to one that knows nothing of a burial.
  const name = 'workers/heartbeat-worker';
  const heartbeat: unknown = Reflect.get(store.redis, name);
  // Once: at another beat of its own, on a busy machine, it would read the inbox anew and find the lease there.
  const sayBuried = (): Promise<string> => {
    Object.assign(store.redis, { [name]: heartbeat });
    return Promise.resolve('buried');
  };
  Object.assign(store.redis, { [name]: sayBuried });
  await worker.beatOnce();
  expect(executor.canceled).toEqual([token]);
  executor.emit([{ type: 'request-canceled', requestId: token }]);
  await expect.poll(() => worker.requestIds).toEqual([]);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  expect(await free(store)).toEqual([1, 4]);
});

it('gives back what comes while it has no engine, without counting an attempt', async () => {
  const { store, worker, executor } = openBench();
  await worker.start();
  const held = createDeferred();
  executor.starting = () => held.promise;
  const id = await submit(store);
  // Leased before the worker could say that it takes nothing now, read after its engine has died.
  await lease(store, id, () => executor.lose());
  await expect.poll(() => stateOf(store, id)).toBe('queued');
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0, queuePosition: 0 } });
  expect(worker.requestIds).toEqual([]);
  held.resolve(card);
  await expect.poll(() => free(store)).toEqual([1, 4]);
});

it('counts an attempt of what was in an engine that died', async () => {
  const { store, executor, id } = await openBusy();
  executor.lose(executor.submitted[0]!.id);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 1 } });
});

it('kills an engine that says nothing, and counts an attempt of what it had', async () => {
  const { store, worker, executor, id } = await openBusy({ engineTimeoutMs: 1 });
  const killed = vi.spyOn(executor, 'kill');
  await vi.waitFor(async () => {
    await worker.beatOnce();
    expect(killed).toHaveBeenCalledOnce();
  }, 10_000);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 1 } });
});

it('goes itself when its engine cannot be killed, so that others take over what it has', async () => {
  const { store, worker, executor } = openBench({ engineTimeoutMs: 1 });
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  onTestFinished(() => exit.mockRestore());
  const killed = vi.spyOn(executor, 'kill').mockImplementation(() => {});
  await worker.start();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  await vi.waitFor(async () => {
    await worker.beatOnce();
    expect(exit).toHaveBeenCalledWith(1);
  }, 10_000);
  expect(killed).toHaveBeenCalledOnce();
});

it('kills no engine whose work is done while it is being stored', async () => {
  const { encode, finish } = createHeldEncoder();
  const { store, worker, executor, id } = await openBusy({ encoder: encoderOf(encode), engineTimeoutMs: 1 });
  const killed = vi.spyOn(executor, 'kill');
  executor.complete(executor.submitted[0]!.id);
  const deadlineMs = performance.now() + 50;
  while (performance.now() < deadlineMs) await worker.beatOnce();
  finish();
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(killed).not.toHaveBeenCalled();
});

it('a stop waits for what has left the engine, instead of giving it back', async () => {
  const { encode, finish } = createHeldEncoder();
  const { store, worker, executor, id } = await openBusy({ encoder: encoderOf(encode) });
  executor.complete(executor.submitted[0]!.id);
  const stopped = worker.stop();
  await expect.poll(() => executor.isRunning).toBe(false);
  finish();
  await stopped;
  expect(await types(store, id)).toEqual(['queued', 'started', 'output', 'succeeded']);
});

it('fails what it cannot encode, instead of calling it done', async () => {
  const { store, executor, id } = await openBusy({
    encoder: encoderOf(() => Promise.reject(new Error('no encoder'))),
  });
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('failed');
  expect(await types(store, id)).toEqual(['queued', 'started', 'failed']);
});

it('logs by what a request failed that nobody has foreseen, and shows it to nobody', async () => {
  let lines = '';
  const stream = { write: (line: string) => void (lines += line) };
  const { store, worker, executor } = openBench({ log: createLogger({ app: 'worker', stream }) });
  await worker.start();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  const failure = { code: 'internal', message: 'the engine failed' } as const;
  const [{ id: requestId }] = executor.submitted as [RowRequest];
  executor.emit([{ type: 'request-failed', requestId, ...failure, cause: 'RangeError: Invalid typed array length' }]);
  await expect.poll(() => stateOf(store, id)).toBe('failed');
  const logged = lines.split('\n').filter((line) => line.includes('RangeError'));
  expect(logged.map((line): unknown => JSON.parse(line))).toMatchObject([{ level: 'error', request_id: id }]);
  const result = await readRequest(store, id);
  expect(result).toMatchObject({ request: { error: failure } });
  expect(JSON.stringify(result)).not.toContain('RangeError');
});

it('fails what it cannot encode, though the answer that outputs are missing got lost', async () => {
  const { store, executor, id } = await openBusy({
    encoder: encoderOf(() => Promise.reject(new Error('no encoder'))),
  });
  const redis = store.redis as unknown as Record<'events/write-batch', (...values: unknown[]) => Promise<unknown[]>>;
  const send = redis['events/write-batch'].bind(redis);
  // What the same batch is answered when it is sent again.
  vi.spyOn(redis, 'events/write-batch').mockImplementationOnce((...values) => send(...values).then(() => []));
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('failed');
});

it('says so when its engine cannot be started, and is gone', { timeout: 5000 }, async () => {
  const { store, worker, executor } = openBench();
  executor.starting = () => Promise.reject(new Error('no such model in /srv/models'));
  await expect(worker.start()).rejects.toThrow('no such model');
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { loading: 0, idle: 0, busy: 0, draining: 0 } });
  expect(await listShards(store)).toEqual([]);
  // Of what is not known to be fit for others to read, nothing is shown.
  const reason = "its worker's log says why";
  expect(await readLoadFailures(store)).toMatchObject([{ model: 'tiny', host: 'box', reason }]);
});

it('says what its model fails by, until it can be loaded', async () => {
  const { store, worker, executor } = openBench();
  const message = 'unet/model.onnx: is missing';
  executor.starting = () => Promise.reject(new DarkroomError('model_unsupported', 'test', message));
  await expect(worker.start()).rejects.toThrow(message);
  expect(await readLoadFailures(store)).toMatchObject([{ reason: message }]);
  executor.starting = () => Promise.resolve(card);
  const again = new Worker(optionsOf(store, (listener) => new FakeExecutor(listener)));
  onTestFinished(() => again.stop());
  await again.start();
  expect(await readLoadFailures(store)).toEqual([]);
  expect(await listShards(store)).toEqual(['tiny']);
});

it('says nothing of a loading that is broken off because the process stops', async () => {
  const store = openTestStore();
  const stop = new AbortController();
  const loads = new LoadWatch({ store, model: 'tiny', host: 'box', stopSignal: stop.signal, log: silentLogger() });
  const held = createDeferred();
  const loading = loads.watch(() => held.promise);
  stop.abort();
  held.reject(new Error('killed while loading'));
  await expect(loading).rejects.toThrow('killed while loading');
  expect(await readLoadFailures(store)).toEqual([]);
});

it('stops although it was buried while draining', { timeout: 5000 }, async () => {
  const { store, worker } = openBench();
  await worker.start();
  // Its last message goes with its inbox.
  const redis = store.redis as unknown as Record<'workers/drain-worker', () => Promise<string>>;
  const drained = vi.spyOn(redis, 'workers/drain-worker').mockImplementationOnce(async () => {
    await bury(store);
    return 'draining';
  });
  const stopped = worker.stop();
  await expect.poll(() => drained).toHaveResolved();
  await worker.beatOnce();
  await stopped;
});

it('stops in order while a lost engine is being replaced', { timeout: 5000 }, async () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  onTestFinished(() => exit.mockRestore());
  const { store, worker, executor } = openBench();
  await worker.start();
  const held = createDeferred();
  const starting = vi.fn<() => Promise<ModelCard>>(() => held.promise);
  executor.starting = starting;
  executor.shutdown = () => Promise.resolve(held.reject(new Error('killed while loading')));
  executor.lose();
  await expect.poll(() => starting).toHaveBeenCalled();
  await worker.stop();
  expect(exit).not.toHaveBeenCalled();
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { loading: 0, idle: 0, busy: 0, draining: 0 } });
});
