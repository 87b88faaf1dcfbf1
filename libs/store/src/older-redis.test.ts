/** On the redis-server of this machine, whose version is often an older one: 7.0 takes minus zero for no number. */
import { startPrivateRedis, testEnvelope } from '@darkroom/testing';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import { connectStore, type StoreConnection } from './connection/store-connection.ts';
import { dispatchRequests } from './dispatch/dispatch-requests.ts';
import { admitRequest } from './requests/admit-request.ts';
import { cancelRequest } from './requests/cancel-request.ts';
import { readStats } from './upkeep/read-stats.ts';
import { registerWorker } from './workers/register-worker.ts';
import { unregisterWorker } from './workers/drain-worker.ts';

let store: StoreConnection;
beforeEach(async () => {
  const redis = await startPrivateRedis();
  store = connectStore({ url: redis.url });
  onTestFinished(async () => {
    await store.close();
    await redis.stop();
  });
});

it('a worker with nothing free goes, and what it had waits again', async () => {
  const worker = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, worker, { state: 'ready', capacity: 1, info: {} });
  const envelope = testEnvelope();
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept' });
  await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: false, requestIds: [envelope.id] }]);
  expect(await readStats(store, 'tiny')).toMatchObject({ running: 1, slots: 1, freeSlots: 0 });
  await unregisterWorker(store, worker);
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1, running: 0, slots: 0, freeSlots: 0 });
});

it('a request that keeps no bytes ends', async () => {
  const envelope = testEnvelope({ bytes: 0 });
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept' });
  expect(await cancelRequest(store, envelope.id)).toEqual({ status: 'canceled' });
});
