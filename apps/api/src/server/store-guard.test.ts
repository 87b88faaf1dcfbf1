import { EventEmitter, once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { cancelRequest, type StoreConnection } from '@darkroom/store';
import { allKeys, openTestStore } from '@darkroom/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { checkMs } from '../follow/tail-events.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openHangingRedis } from '../testing/open-hanging-redis.ts';
import { dataUrl, openImageApi, plain } from '../testing/images.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi, type TestApiOptions } from '../testing/test-api.ts';

const storeWaitMs = 400;

async function openPrivateApi(options: TestApiOptions = {}) {
  const redis = await openHangingRedis(storeWaitMs);
  const { store, runOut } = redis;
  const test = await openTestApi({ store, storeWaitMs, ...options });
  return { redis, store, test, runOut };
}

it('answers 503 while Redis hangs, and continues open streams when it recovers', async () => {
  const { redis, store, test, runOut } = await openPrivateApi();
  await startWorker(store);
  const id = await test.submit();
  const reader = readFrames(await test.api.request(`/v1/predict/${id}/events`));
  expect((await reader.next())?.event).toBe('queued');
  const rest = reader.rest();
  redis.hang();
  test.tick(checkMs);
  const [poll, health] = await runOut(
    Promise.all([test.api.request(`/v1/predict/${id}`), test.api.request('/health')]),
  );
  expect([poll.status, health.status]).toEqual([503, 503]);
  expect(await health.json()).toMatchObject({ status: 'unavailable' });
  redis.goOn();
  await (await runNext(store)).finish();
  expect((await rest).map(({ event, data }) => event ?? data)).toEqual(['started', 'succeeded', '[DONE]']);
  expect((await test.api.request('/health')).status).toBe(200);
});

it('cancels a request that is stored after its client got a 503', async () => {
  const { redis, store, test, runOut } = await openPrivateApi({ clock: { now: () => 1_700_000_000_000 } });
  // Models are cached: only the write of the request reaches the hanging Redis.
  const ended = await test.submit();
  await cancelRequest(store, ended);
  redis.hang();
  expect((await runOut(test.post({ prompt: 'x' }))).status).toBe(503);
  redis.goOn();
  const keysOfTiny = store.keysOf('tiny');
  const statesOf = async () => {
    const keys = (await allKeys(store)).filter((key) => key.startsWith(keysOfTiny.request('')));
    return Promise.all(keys.map((key) => store.redis.hget(key, 'state')));
  };
  await expect.poll(statesOf).toEqual(['canceled', 'canceled']);
  expect(await store.redis.zcard(keysOfTiny.waiting)).toBe(0);
});

/** Blocks calls to the image store until the test calls `goOn`. */
function slowDown({ bytes }: StoreConnection, what: 'put' | 'get') {
  const gate = new EventEmitter();
  const isOpen = once(gate, 'open');
  const act = bytes![what].bind(bytes) as (...given: unknown[]) => Promise<never>;
  const spy = vi.spyOn(bytes!, what).mockImplementation((...given: unknown[]) => isOpen.then(() => act(...given)));
  const isCalled = async (): Promise<void> => expect.poll(() => spy.mock.calls).toHaveLength(1);
  const done = (): Promise<unknown> => spy.mock.results[0]!.value as Promise<unknown>;
  return { isCalled, goOn: () => gate.emit('open'), done };
}

describe('a slow image store', () => {
  const bytesWaitMs = 10 * storeWaitMs;

  async function openBeside() {
    const path = await mkdtemp(join(tmpdir(), 'darkroom-slow-'));
    onTestFinished(() => rm(path, { recursive: true, force: true }));
    const store = openTestStore({ bytes: { kind: 'directory', path } });
    const test = await openImageApi({ store, storeWaitMs, bytesWaitMs });
    const body = { prompt: 'x', image: await dataUrl(plain(64, 64)) };
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    return { store, test, body };
  }

  it('has a longer timeout than Redis', async () => {
    const { store, test, body } = await openBeside();
    const putting = slowDown(store, 'put');
    const answering = test.post(body);
    await putting.isCalled();
    vi.advanceTimersByTime(5 * storeWaitMs);
    putting.goOn();
    expect((await answering).status).toBe(202);
  });

  it('is reported as unavailable on timeout, and nothing is stored', async () => {
    const { store, test, body } = await openBeside();
    const putting = slowDown(store, 'put');
    const answering = test.post(body);
    await putting.isCalled();
    vi.advanceTimersByTime(bytesWaitMs);
    const response = await answering;
    expect(response.status).toBe(503);
    expect(await response.text()).toContain('store of images');
    putting.goOn();
    await putting.done();
    expect(await store.redis.exists(store.keysOf('tiny').waiting)).toBe(0);
  });

  it('has a longer timeout than Redis for an admin retry too', async () => {
    const { store, test, body } = await openBeside();
    await startWorker(store);
    const id = await test.submit(body);
    await (await runNext(store)).finish({ state: 'failed', error: { code: 'internal', message: 'it broke' } });
    const getting = slowDown(store, 'get');
    const retrying = test.api.request(`/admin/dead-requests/${id}/retry`, { method: 'POST' });
    await getting.isCalled();
    vi.advanceTimersByTime(5 * storeWaitMs);
    getting.goOn();
    expect((await retrying).status).toBe(202);
  });
});
