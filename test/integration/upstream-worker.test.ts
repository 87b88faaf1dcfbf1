/** A worker whose executor forwards to another server: events that only such an executor emits. */
import { setTimeout as delay } from 'node:timers/promises';
import { createLlamaCpp, createOpenai, type ExecutorListener, UpstreamExecutor } from '@darkroom/executor';
import { readLoadFailures, readRequest, readStats } from '@darkroom/store';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { LoadWatch } from '../../apps/worker/src/engine/load-watch.ts';
import { ToyLlamaCpp } from '../../libs/executor/src/testing/toy-llama-cpp.ts';
import { ToyOpenai } from '../../libs/executor/src/testing/toy-openai.ts';
import { FakeExecutor, free, lease, openBench, stateOf, submit, startBench } from './worker-bench.ts';

class ReportedSlotsExecutor extends FakeExecutor {
  maxSlots = 2;
}

it('takes its capacity from the upstream server, again after a restart of the executor', async () => {
  let executor: ReportedSlotsExecutor | undefined;
  const { store, worker } = openBench({
    createExecutor: (listener) => (executor = new ReportedSlotsExecutor(listener)),
  });
  await worker.start();
  expect(await free(store)).toEqual([1, 2]);
  // Another server may have replaced the first.
  executor!.maxSlots = 3;
  executor!.lose();
  await expect.poll(() => free(store)).toEqual([1, 3]);
});

it('requeues a lost request with its attempt counted, and keeps running the others', async () => {
  const { store, worker, executor } = await startBench();
  const [lost, other] = [await submit(store), await submit(store)];
  await lease(store, lost);
  await lease(store, other);
  await expect.poll(() => executor.submitted).toHaveLength(2);
  const [one, two] = executor.submitted;
  executor.emit([{ type: 'request-lost', requestId: one!.id, message: 'the connection broke off' }]);
  await expect.poll(() => stateOf(store, lost)).toBe('queued');
  expect(await readRequest(store, lost)).toMatchObject({ request: { attempts: 1, queuePosition: 0 } });
  expect(worker.requestIds).toEqual([other]);
  executor.complete(two!.id);
  await expect.poll(() => stateOf(store, other)).toBe('succeeded');
  expect(worker.isReady).toBe(true);
});

it('requeues requests that the upstream refuses with 401, without an attempt, and reports the key', async () => {
  const toy = new ToyOpenai();
  // As llama.cpp's server does, which lists its models without a key.
  toy.fault = (_request, response, body) => body !== undefined && Boolean(response.writeHead(401).end());
  const url = await toy.start();
  onTestFinished(() => toy.stop().then(() => {}));
  const store = openTestStore();
  const loads = new LoadWatch({ store, model: 'tiny', host: 'box', log: silentLogger() });
  const model = 'gpt-image-toy';
  const { worker } = openBench({
    store,
    loads,
    createExecutor: (onEvents) =>
      new UpstreamExecutor({
        url,
        createProtocol: createOpenai,
        model,
        maxSlots: 2,
        onEvents,
        onWaiting: (reason) => loads.reportWaiting(reason),
      }),
    // Retry at once after the first loss, then after an hour.
    retryMs: { firstMs: 3_600_000, maxMs: 3_600_000 },
  });
  await worker.start();
  const id = await submit(store);
  for (const isLast of [false, true]) {
    await lease(store, id);
    await expect.poll(() => stateOf(store, id)).toBe('queued');
    expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 0, queuePosition: 0 } });
    await expect.poll(() => free(store)).toEqual(isLast ? [0, 0] : [1, 2]);
  }
  const reason = `${url} answers POST /v1/images/generations with 401: set UPSTREAM_KEY`;
  await expect.poll(() => readLoadFailures(store)).toMatchObject([{ model: 'tiny', reason }]);
});

it('does not kill an executor whose upstream sends only SSE comments beyond the engine timeout', async () => {
  const engineTimeoutMs = 20;
  const heartbeatMs = 10;
  const toy = new ToyOpenai();
  const untilMs = performance.now() + 50 * engineTimeoutMs;
  toy.fault = async (_request, response, body) => {
    if (body === undefined) return false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    for (; performance.now() < untilMs && !response.destroyed; await delay(5)) response.write(': at it\n\n');
    const b64_json = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1').toString('base64');
    response.end(`data: ${JSON.stringify({ type: 'image_generation.completed', b64_json, usage: {} })}\n\n`);
    return true;
  };
  const url = await toy.start();
  onTestFinished(() => toy.stop().then(() => {}));
  const options = { url, createProtocol: createOpenai, model: 'gpt-image-toy', maxSlots: 2 };
  const createExecutor = (onEvents: ExecutorListener) => new UpstreamExecutor({ ...options, onEvents });
  const { store } = await startBench({ createExecutor, engineTimeoutMs, heartbeatMs });
  const id = await submit(store);
  await lease(store, id);
  await expect.poll(() => stateOf(store, id)).toBe('succeeded');
  expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 1 } });
});

it('reports "loading" with the reason while llama.cpp loads its model', async () => {
  const toy = new ToyLlamaCpp();
  toy.isLoading = true;
  const url = await toy.start();
  onTestFinished(() => toy.stop().then(() => {}));
  const store = openTestStore();
  const loads = new LoadWatch({ store, model: 'tiny', host: 'box', log: silentLogger() });
  const onWaiting = (reason: string): void => loads.reportWaiting(reason);
  const options = { url, createProtocol: createLlamaCpp, model: 'tiny', retryMs: 1, onWaiting };
  const createExecutor = (onEvents: ExecutorListener) => new UpstreamExecutor({ ...options, onEvents });
  const { worker } = openBench({ store, loads, createExecutor });
  const starting = worker.start();
  const reason = `${url} answers GET /health with 503: Loading model`;
  await expect.poll(() => readLoadFailures(store)).toMatchObject([{ model: 'tiny', reason }]);
  expect((await readStats(store, 'tiny')).workers).toMatchObject({ loading: 1, idle: 0 });
  toy.isLoading = false;
  await starting;
  expect(await free(store)).toEqual([1, 2]);
  expect(await readLoadFailures(store)).toEqual([]);
});
