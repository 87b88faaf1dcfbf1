/** What a worker does with what only an executor in front of another server says. */
import { createLlamaCpp, createOpenai, type ExecutorListener, UpstreamExecutor } from '@darkroom/executor';
import { readLoadFailures, readRequest, readStats } from '@darkroom/store';
import { openTestStore, silentLogger } from '@darkroom/testing';
import { expect, it, onTestFinished } from 'vitest';
import { LoadWatch } from '../../apps/worker/src/engine/load-watch.ts';
import { ToyLlamaCpp } from '../../libs/executor/src/testing/toy-llama-cpp.ts';
import { ToyOpenai } from '../../libs/executor/src/testing/toy-openai.ts';
import { FakeExecutor, free, lease, openBench, stateOf, submit } from './worker-bench.ts';

class FoundRoom extends FakeExecutor {
  maxSlots = 2;
}

it('has the room that the server says', async () => {
  let executor: FoundRoom | undefined;
  const { store, worker } = openBench({ createExecutor: (listener) => (executor = new FoundRoom(listener)) });
  await worker.start();
  expect(await free(store)).toEqual([1, 2]);
  // Another server may have come in its place.
  executor!.maxSlots = 3;
  executor!.lose();
  await expect.poll(() => free(store)).toEqual([1, 3]);
});

it('gives back one request that was lost, with its attempt counted, and goes on with the others', async () => {
  const { store, worker, executor } = openBench();
  await worker.start();
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

it('gives back what a refused key ends, with no attempt counted, and says why it makes nothing', async () => {
  const toy = new ToyOpenai();
  // As llama.cpp's server, which lists its models for everybody.
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
        onWaiting: (reason) => loads.waitsFor(reason),
      }),
    // After the first loss it tries at once.
    retryMs: { firstMs: 3_600_000, mostMs: 3_600_000 },
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

it('is loading, and says why, as long as llama.cpp loads its model', async () => {
  const toy = new ToyLlamaCpp();
  toy.isLoading = true;
  const url = await toy.start();
  onTestFinished(() => toy.stop().then(() => {}));
  const store = openTestStore();
  const loads = new LoadWatch({ store, model: 'tiny', host: 'box', log: silentLogger() });
  const onWaiting = (reason: string): void => loads.waitsFor(reason);
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
