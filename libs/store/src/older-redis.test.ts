/** Runs on the redis-server of this machine, often an older version: 7.0 does not parse "-0". */
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

it('requeues the requests of a worker that unregisters with no free slot', async () => {
  const worker = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, worker, { state: 'ready', capacity: 1, info: {} });
  const envelope = testEnvelope();
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept' });
  await dispatchRequests(store, 'tiny', [{ workerId: 'w1', isExclusive: false, requestIds: [envelope.id] }]);
  expect(await readStats(store, 'tiny')).toMatchObject({ running: 1, slots: 1, freeSlots: 0 });
  await unregisterWorker(store, worker);
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1, running: 0, slots: 0, freeSlots: 0 });
});

it('ends a request whose stored bytes are counted', async () => {
  const envelope = testEnvelope();
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept', ownerMaxBytes: 10_000 });
  expect(await cancelRequest(store, envelope.id)).toEqual({ status: 'canceled' });
});
