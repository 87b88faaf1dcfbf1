/** The worker against a real queue and an engine that the test controls. */
import { DarkroomError, type ModelCard, type RowRequest } from '@darkroom/core';
import {
  cancelRequest,
  listShards,
  readLoadFailures,
  readFailure,
  readRequest,
  readStats,
  type StoreConnection,
  sweepWorkers,
} from '@darkroom/store';
import { createLogger } from '@darkroom/service';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { LoadWatch } from '../../apps/worker/src/engine/load-watch.ts';
import { Worker } from '../../apps/worker/src/worker/worker.ts';
import {
  card,
  type Encoded,
  kindsOf,
  FakeExecutor,
  free,
  lease,
  openBench,
  optionsOf,
  pixels,
  stateOf,
  submit,
  types,
  startBench,
  openBusy,
} from './worker-bench.ts';

/** Returns a model load that the test settles. */
function createDeferred(): {
  promise: Promise<ModelCard>;
  resolve: (card: ModelCard) => void;
  reject: (error: Error) => void;
} {
  let settle: Pick<ReturnType<typeof createDeferred>, 'resolve' | 'reject'> | undefined;
  const promise = new Promise<ModelCard>((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle! };
}

/** Returns an encoder that is busy until the test calls `finish`. */
function createHeldEncoder(): { encode: () => Promise<Encoded>; finish: () => void } {
  let finish: ((encoded: Encoded) => void) | undefined;
  const encoding = new Promise<Encoded>((resolve) => (finish = resolve));
  return { encode: () => encoding, finish: () => finish?.({ data: pixels.data, contentType: 'x/y' }) };
}

/** Reaps the worker, as a janitor does, and returns the ids of its requeued requests. */
async function reap(store: StoreConnection): Promise<string[]> {
  // A heartbeat may come between two sweeps.
  for (let sweeps = 0; sweeps < 4; sweeps++) {
    const [dead] = (await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 })).reaped;
    if (dead !== undefined) return dead.requests.map(({ id }) => id);
  }
  throw new Error('no worker was reaped');
}

it('runs a leased request to its end', async () => {
  const { store, worker, executor, id } = await openBusy();
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await types(store, id)).toEqual(['queued', 'started', 'output', 'succeeded']);
  await expect.poll(() => worker.requestIds).toEqual([]);
  expect(await free(store)).toEqual([1, 4]);
});

it('a live worker that was reaped drops its requests, registers again and can run them again', async () => {
  const { store, worker, executor, id } = await openBusy();
  expect(await reap(store)).toEqual([id]);
  await worker.heartbeatOnce();
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(2);
  const [first, second] = executor.submitted.map((request) => request.id);
  expect(executor.canceled).toEqual([first]);
  // Rows of the first delivery are still in the engine and emit events.
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

it('learns from its next write that it lost a request, and cancels it in the engine', async () => {
  const { store, executor, id } = await openBusy();
  expect(await reap(store)).toEqual([id]);
  const [{ id: token }] = executor.submitted as [RowRequest];
  executor.emit([{ type: 'progress', requestId: token, index: 0, done: 1, total: 2 }]);
  await expect.poll(() => executor.canceled).toEqual([token]);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
});

it('after it was reaped, reads new leases even if the clock of Redis was ahead before', async () => {
  const { store, worker, executor } = await startBench();
  const aDayAhead = `${Date.now() + 86_400_000}-0`;
  await store.redis.xadd(store.keysOf('tiny').inbox('w1'), aDayAhead, 'message', '{"type":"cancel","id":"read"}');
  const [first, second] = [await submit(store), await submit(store)];
  await lease(store, first);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  await reap(store);
  await worker.heartbeatOnce();
  await lease(store, second);
  await expect.poll(() => executor.submitted).toHaveLength(2);
});

it('cancels a running request', async () => {
  const { store, executor } = await startBench();
  const id = await submit(store);
  await lease(store, id);
  // The cancel message follows the lease in the inbox, whether or not the worker has read the lease.
  expect(await cancelRequest(store, id)).toEqual({ status: 'canceling' });
  await expect.poll(() => executor.canceled).toHaveLength(1);
  executor.emit([{ type: 'request-canceled', requestId: executor.canceled[0]! }]);
  await expect.poll(() => stateOf(store, id)).toBe('canceled');
});

it('does not end a request that it dropped as lost, even if Redis still shows the lease as its own', async () => {
  const { store, worker, executor, id } = await openBusy();
  const [{ id: token }] = executor.submitted as [RowRequest];
  // Simulates a failover to a master that does not know that the worker was reaped.
  const name = 'workers/heartbeat-worker';
  const heartbeat: unknown = Reflect.get(store.redis, name);
  // Answer so only once: a second heartbeat on a busy machine would read the inbox again and find the lease there.
  const answerReapedOnce = async (): Promise<string> => {
    Object.assign(store.redis, { [name]: heartbeat });
    // As reaping does. Otherwise a read that ends just now would find the lease again.
    await store.redis.del(store.keysOf('tiny').inbox('w1'));
    return 'reaped';
  };
  Object.assign(store.redis, { [name]: answerReapedOnce });
  await worker.heartbeatOnce();
  expect(executor.canceled).toEqual([token]);
  executor.emit([{ type: 'request-canceled', requestId: token }]);
  await expect.poll(() => worker.requestIds).toEqual([]);
  expect(await types(store, id)).toEqual(['queued', 'started', 'queued']);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  expect(await free(store)).toEqual([1, 4]);
});

it('requeues leases that arrive while it has no engine, without counting an attempt', async () => {
  const { store, worker, executor } = await startBench();
  const held = createDeferred();
  executor.starting = () => held.promise;
  const id = await submit(store);
  // Leased before the worker could report that it has no capacity, read after its engine died.
  await lease(store, id, () => executor.lose());
  await expect.poll(() => stateOf(store, id)).toBe('queued');
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0, queuePosition: 0 } });
  expect(worker.requestIds).toEqual([]);
  held.resolve(card);
  await expect.poll(() => free(store)).toEqual([1, 4]);
});

it('counts an attempt for requests in an engine that died', async () => {
  const { store, executor, id } = await openBusy();
  executor.lose(executor.submitted[0]!.id);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 1 } });
});

it('kills an engine that does not respond, and counts an attempt for its requests', async () => {
  const { store, worker, executor, id } = await openBusy({ engineTimeoutMs: 1 });
  const killed = vi.spyOn(executor, 'kill');
  await vi.waitFor(async () => {
    await worker.heartbeatOnce();
    expect(killed).toHaveBeenCalledOnce();
  }, 10_000);
  await expect.poll(() => free(store)).toEqual([1, 4]);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 1 } });
});

it('exits when its engine cannot be killed, so that other workers take over its requests', async () => {
  const { store, worker, executor } = openBench({ engineTimeoutMs: 1 });
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  onTestFinished(() => exit.mockRestore());
  const killed = vi.spyOn(executor, 'kill').mockImplementation(() => {});
  await worker.start();
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => executor.submitted).toHaveLength(1);
  await vi.waitFor(async () => {
    await worker.heartbeatOnce();
    expect(exit).toHaveBeenCalledWith(1);
  }, 10_000);
  expect(killed).toHaveBeenCalledOnce();
});

it('does not kill an idle engine while its output is encoded and stored', async () => {
  const { encode, finish } = createHeldEncoder();
  const { store, worker, executor, id } = await openBusy({ kinds: kindsOf(encode), engineTimeoutMs: 1 });
  const killed = vi.spyOn(executor, 'kill');
  executor.complete(executor.submitted[0]!.id);
  const deadlineMs = performance.now() + 50;
  while (performance.now() < deadlineMs) await worker.heartbeatOnce();
  finish();
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(killed).not.toHaveBeenCalled();
});

it('stopping waits until an output that left the engine is stored, and does not requeue its request', async () => {
  const { encode, finish } = createHeldEncoder();
  const { store, worker, executor, id } = await openBusy({ kinds: kindsOf(encode) });
  executor.complete(executor.submitted[0]!.id);
  const stopped = worker.stop();
  await expect.poll(() => executor.isRunning).toBe(false);
  finish();
  await stopped;
  expect(await types(store, id)).toEqual(['queued', 'started', 'output', 'succeeded']);
});

it('fails a request whose output cannot be encoded', async () => {
  const { store, executor, id } = await openBusy({
    kinds: kindsOf(() => Promise.reject(new Error('no encoder'))),
  });
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('failed');
  expect(await types(store, id)).toEqual(['queued', 'started', 'failed']);
});

it('logs and stores the cause of an unexpected failure for operators, and does not show it to clients', async () => {
  let lines = '';
  const stream = { write: (line: string) => void (lines += line) };
  const { store, executor, id } = await openBusy({ log: createLogger({ app: 'worker', stream }) });
  const failure = { code: 'internal', message: 'the engine failed' } as const;
  const [{ id: requestId }] = executor.submitted as [RowRequest];
  executor.emit([
    { type: 'request-failed', requestId, ...failure, cause: `RangeError: Invalid length\n    at ${'x'.repeat(5000)}` },
  ]);
  await expect.poll(() => stateOf(store, id)).toBe('failed');
  const logged = lines.split('\n').filter((line) => line.includes('RangeError'));
  expect(logged.map((line): unknown => JSON.parse(line))).toMatchObject([{ level: 'error', request_id: id }]);
  const result = await readRequest(store, id);
  expect(result).toMatchObject({ request: { error: failure } });
  expect(JSON.stringify(result)).not.toContain('RangeError');
  const stored = await readFailure(store, id);
  expect(stored).toMatchObject({ code: 'engine_error', message: 'RangeError: Invalid length' });
  expect(stored?.details).toMatch(/^RangeError: Invalid length\n    at x+$/);
  expect(stored?.details).toHaveLength(4000);
});

it('fails a request that cannot be encoded, even if the reply about missing outputs was lost', async () => {
  const { store, executor, id } = await openBusy({
    kinds: kindsOf(() => Promise.reject(new Error('no encoder'))),
  });
  const redis = store.redis as unknown as Record<'events/write-batch', (...values: unknown[]) => Promise<unknown[]>>;
  const send = redis['events/write-batch'].bind(redis);
  // Redis answers so when the same batch is sent again.
  vi.spyOn(redis, 'events/write-batch').mockImplementationOnce((...values) => send(...values).then(() => []));
  executor.complete(executor.submitted[0]!.id);
  await expect.poll(() => stateOf(store, id)).toBe('failed');
});

it('reports a load failure and unregisters when its engine cannot start', { timeout: 5000 }, async () => {
  const { store, worker, executor } = openBench();
  executor.starting = () => Promise.reject(new Error('no such model in /srv/models'));
  await expect(worker.start()).rejects.toThrow('no such model');
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { loading: 0, idle: 0, busy: 0, draining: 0 } });
  expect(await listShards(store)).toEqual([]);
  // Only errors that are meant for clients are shown.
  const reason = "see the worker's log";
  expect(await readLoadFailures(store)).toMatchObject([{ model: 'tiny', host: 'box', reason }]);
});

it('reports why its model cannot be loaded, until a load succeeds', async () => {
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

it('reports no load failure when the process stops during loading', async () => {
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

it('stops although it was reaped while draining', { timeout: 5000 }, async () => {
  const { store, worker } = await startBench();
  // The worker's last message is deleted with its inbox.
  const redis = store.redis as unknown as Record<'workers/drain-worker', () => Promise<string>>;
  const drained = vi.spyOn(redis, 'workers/drain-worker').mockImplementationOnce(async () => {
    await reap(store);
    return 'draining';
  });
  const stopped = worker.stop();
  await expect.poll(() => drained).toHaveResolved();
  await worker.heartbeatOnce();
  await stopped;
});

it('stops cleanly while a lost engine is being replaced', { timeout: 5000 }, async () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => undefined) as never);
  onTestFinished(() => exit.mockRestore());
  const { store, worker, executor } = await startBench();
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
