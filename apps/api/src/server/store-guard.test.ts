import { cancelRequest } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { expect, it } from 'vitest';
import { checkMs } from '../follow/tail-events.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { openHangingRedis } from '../testing/open-hanging-redis.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { openTestApi, type TestApiOptions } from '../testing/test-api.ts';

const storeWaitMs = 400;

async function openPrivateApi(options: TestApiOptions = {}) {
  const redis = await openHangingRedis(storeWaitMs);
  const { store, runOut } = redis;
  const test = await openTestApi({ store, storeWaitMs, ...options });
  return { redis, store, test, runOut };
}

it('a Redis that hangs: 503 for who asks, and open streams go on when it is back', async () => {
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

it('takes back a request that is stored only after its client was turned away', async () => {
  const { redis, store, test, runOut } = await openPrivateApi({ clock: { now: () => 1_700_000_000_000 } });
  // Without asking for the models again: only the request itself reaches the Redis that hangs.
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
