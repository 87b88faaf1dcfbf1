/** Behavior of a model with several shards, seen through the API. */
import { setShardCount, type StoreConnection } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openTestApi, type TestApi, type TestApiOptions } from '../testing/test-api.ts';

const shards = ['tiny', 'tiny~1', 'tiny~2', 'tiny~3'];

async function openSpread(options: TestApiOptions = {}): Promise<TestApi> {
  const test = await openTestApi(options);
  await setShardCount(test.store, 'tiny', { count: shards.length, known: ['tiny'] });
  return test;
}

function shardOf(id: string): string {
  return id.slice(0, -27);
}

async function waitingIn(store: StoreConnection): Promise<number[]> {
  return Promise.all(shards.map((shard) => store.redis.zcard(store.keysOf(shard).waiting)));
}

async function get(test: TestApi, path: string): Promise<Record<string, unknown>> {
  return (await (await test.api.request(path)).json()) as Record<string, unknown>;
}

it('spreads requests over all shards under the name of the model', async () => {
  const test = await openSpread();
  const ids = [];
  for (let sent = 0; sent < 8; sent++) ids.push(await test.submit());
  expect(await waitingIn(test.store)).toEqual([2, 2, 2, 2]);
  const far = ids.find((id) => shardOf(id) === 'tiny~3')!;
  expect(await get(test, `/v1/predict/${far}`)).toMatchObject({ request_id: far, model: 'tiny', status: 'queued' });
  expect(await get(test, '/v1/models')).toMatchObject({ data: [{ id: 'tiny' }] });
  expect(await get(test, '/status')).toMatchObject({ queues: [{ model: 'tiny', queued: 8 }] });
  expect((await test.api.request(`/v1/predict/${far}`, { method: 'DELETE' })).status).toBe(200);
  expect(await get(test, `/v1/predict/${far}`)).toMatchObject({ status: 'canceled' });
});

it('finds the request of an Idempotency-Key after the number of shards has changed', async () => {
  const test = await openSpread();
  const send = async (key: string) => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key };
    const response = await test.api.request('/v1/predict', { method: 'POST', headers, body: '{"prompt":"a fox"}' });
    return ((await response.json()) as { request_id: string }).request_id;
  };
  const keys = ['a', 'b', 'c', 'd'];
  const first = await Promise.all(keys.map(send));
  expect(first.map(shardOf).toSorted()).toEqual(shards);
  await setShardCount(test.store, 'tiny', { count: 1, known: shards });
  const later = test.replica();
  expect(shardOf(await later.submit())).toBe('tiny');
  expect(await Promise.all(keys.map(send))).toEqual(first);
  expect((await waitingIn(test.store)).reduce((sum, count) => sum + count)).toBe(5);
});

describe('with a worker in one shard', () => {
  it('accepts requests in every shard, and returns 503 only if no shard has a worker', async () => {
    const test = await openSpread({ config: { unservedModels: 'refuse' } });
    expect((await test.post({ prompt: 'a fox' })).status).toBe(503);
    await startWorker(test.store, { model: 'tiny~2' });
    const served = test.replica();
    for (let sent = 0; sent < 4; sent++)
      expect(await (await served.post({ prompt: 'a fox' })).json()).toMatchObject({ is_possible: true });
    expect(await waitingIn(test.store)).toEqual([1, 1, 1, 1]);
  });

  it('reports is_possible: false for a paused model', async () => {
    const test = await openSpread();
    await startWorker(test.store, { model: 'tiny~2' });
    const paused = await test.api.request('/admin/models/tiny/pause', { method: 'POST' });
    expect(paused.status).toBe(200);
    for (let sent = 0; sent < 4; sent++)
      expect(await (await test.post({ prompt: 'a fox' })).json()).toMatchObject({ is_possible: false });
  });

  it('admin routes find the worker by the name of the model', async () => {
    const test = await openSpread();
    await startWorker(test.store, { model: 'tiny~2' });
    const drain = await test.api.request('/admin/models/tiny/workers/w1/drain', { method: 'POST' });
    expect(await drain.json()).toEqual({ model: 'tiny', worker: 'w1', draining: true });
    expect(await get(test, '/status')).toMatchObject({ workers: [{ id: 'w1', model: 'tiny', draining: true }] });
    const resume = await test.api.request('/admin/models/tiny/workers/w1/resume', { method: 'POST' });
    expect(await resume.json()).toMatchObject({ draining: false });
  });
});

it('limits the queue length over all shards together', async () => {
  const test = await openSpread({ config: { queueMaxLength: 8 } });
  for (let sent = 0; sent < 8; sent++) await test.submit();
  expect((await test.post({ prompt: 'a fox' })).status).toBe(503);
});

it('serves results from any shard', async () => {
  const test = await openSpread();
  await startWorker(test.store, { model: 'tiny~1' });
  const ids = [await test.submit(), await test.submit(), await test.submit(), await test.submit()];
  const id = ids.find((each) => shardOf(each) === 'tiny~1')!;
  const running = await runNext(test.store, 'tiny~1');
  await running.output(0, Uint8Array.of(1, 2, 3));
  await running.finish();
  expect(await get(test, `/v1/predict/${id}`)).toMatchObject({ status: 'succeeded' });
  const image = await test.api.request(`/v1/predict/${id}/images/0`);
  expect(new Uint8Array(await image.arrayBuffer())).toEqual(Uint8Array.of(1, 2, 3));
});
