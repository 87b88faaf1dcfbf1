/** What Prometheus is told, compared with what has happened. */
import {
  admitRequest,
  cancelRequest,
  connectStore,
  createWakeups,
  finishRequest,
  leaseBatch,
  openJobTaker,
  publishModel,
  registerWorker,
  type StoreConnection,
} from '@darkroom/store';
import {
  type Exposition,
  openTestStore,
  parseExposition,
  silentLogger,
  startPrivateRedis,
  testEnvelope,
} from '@darkroom/testing';
import { createReadiness, Metrics } from '@darkroom/service';
import { expect, it, onTestFinished } from 'vitest';
import { createFormerMetrics } from '../../apps/batch-former/src/former-metrics.ts';
import { ModelFormer } from '../../apps/batch-former/src/model-former.ts';
import { Janitor } from '../../apps/janitor/src/janitor.ts';
import { reportQueues } from '../../apps/janitor/src/report-queues.ts';
import { isStoreReachable } from '../../libs/store/src/redis-health.ts';

const startMs = 1_800_000_000_000;
const model = 'tiny';

async function openStore(): Promise<StoreConnection> {
  const store = openTestStore();
  await publishModel(store, { id: model } as never);
  return store;
}

/** What a janitor of this store would answer to Prometheus, `afterMs` after the start. */
function openReport(store: StoreConnection, afterMs = 0): () => Promise<Exposition> {
  const metrics = new Metrics({ app: 'janitor', log: silentLogger() });
  reportQueues({ store, metrics, clock: { now: () => startMs + afterMs } });
  return async () => parseExposition(await metrics.expose());
}

async function register(store: StoreConnection): Promise<void> {
  const identity = { model, workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 4, ttlMs: 600_000, info: {}, nowMs: startMs });
}

async function submit(store: StoreConnection, afterMs = 0): Promise<string> {
  const envelope = testEnvelope({ createdAtMs: startMs + afterMs });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

async function run(store: StoreConnection, afterMs: number): Promise<{ id: string; token: string }> {
  const taker = openJobTaker(store, model, { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  const [delivery] = await taker.take(1);
  const options = { mode: 'shared', maxRows: 4, maxAttempts: 3, nowMs: startMs + afterMs } as const;
  expect((await leaseBatch(store, model, [delivery!], options)).outcomes).toEqual(['leased']);
  return delivery!;
}

it('the queue, its age, the workers and what became of requests, as they are', async () => {
  const store = await openStore();
  await register(store);
  await submit(store);
  await finishRequest(store, model, 'w1', await run(store, 2000), { state: 'succeeded' }, startMs + 5000);
  const error = { code: 'internal', message: 'no' } as const;
  await submit(store);
  await finishRequest(store, model, 'w1', await run(store, 2000), { state: 'failed', error }, startMs + 3000);
  await cancelRequest(store, await submit(store), { nowMs: startMs + 700 });
  await submit(store, 1000);
  await run(store, 4000);
  await submit(store, 6000);
  await submit(store, 8000);

  const page = await openReport(store, 10_000)();
  const value = (name: string, labels: Record<string, string> = {}): number | undefined =>
    page.value(name, { app: 'janitor', model, ...labels });
  expect(value('darkroom_queue_requests')).toBe(2);
  expect(value('darkroom_queue_oldest_seconds')).toBe(4);
  expect(value('darkroom_running_requests')).toBe(1);
  expect(value('darkroom_workers', { state: 'busy' })).toBe(1);
  expect(value('darkroom_workers', { state: 'idle' })).toBe(0);
  expect([value('darkroom_worker_rows'), value('darkroom_worker_free_rows')]).toEqual([4, 3]);
  const waited = { state: 'queued', next: 'running' };
  expect(value('darkroom_state_seconds_count', waited)).toBe(3);
  expect(value('darkroom_state_seconds_sum', waited)).toBe(7);
  expect(value('darkroom_state_seconds_bucket', { ...waited, le: '2.5' })).toBe(2);
  expect(value('darkroom_state_seconds_bucket', { ...waited, le: '5' })).toBe(3);
  expect(value('darkroom_state_seconds_sum', { state: 'queued', next: 'canceled' })).toBe(0.7);
  expect(value('darkroom_request_seconds_sum', { outcome: 'succeeded' })).toBe(5);
  for (const outcome of ['succeeded', 'failed', 'canceled'])
    expect(value('darkroom_request_seconds_count', { outcome })).toBe(1);
  expect(value('darkroom_requeues_total', { reason: 'worker_lost' })).toBe(0);
  expect(value('bullmq_job_count', { queue: 'queue', state: 'failed' })).toBe(1);
  expect(value('bullmq_job_failed_total', { queue: 'queue' })).toBe(1);
});

it('every janitor says the same, however often it is asked', async () => {
  const store = await openStore();
  await submit(store);
  const one = openReport(store);
  await one();
  const pages = [await one(), await openReport(store)()];
  for (const page of pages) {
    expect(page.value('darkroom_queue_requests', { app: 'janitor', model })).toBe(1);
    expect(page.value('darkroom_workers_buried_total', { app: 'janitor', model })).toBe(0);
  }
});

it('what keys take, after a sweep, and nothing of kinds that are gone', async () => {
  const store = await openStore();
  const id = await submit(store);
  const metrics = new Metrics({ app: 'janitor', log: silentLogger() });
  const options = { store, metrics, log: silentLogger(), sweepIntervalMs: 1000, leakSweepIntervalMs: 60_000 };
  const janitor = new Janitor({ ...options, lockMs: 60_000 });
  const read = async (name: string, kind: string): Promise<number | undefined> =>
    parseExposition(await metrics.expose()).value(name, { app: 'janitor', model, kind });
  await janitor.sweepLeaksOnce();
  expect(await read('darkroom_redis_keys', 'request')).toBe(1);
  expect(await read('darkroom_redis_bytes', 'request')).toBe(
    await store.redis.memory('USAGE', store.keysOf(model).request(id)),
  );
  await store.redis.del(store.keysOf(model).request(id));
  await janitor.sweepLeaksOnce();
  expect([await read('darkroom_redis_keys', 'request'), await read('darkroom_redis_bytes', 'request')]).toEqual([0, 0]);
});

it('a Redis that is away: not ready, and no numbers of the past', async () => {
  const redis = await startPrivateRedis();
  onTestFinished(() => redis.stop());
  const store = connectStore({ url: redis.url });
  onTestFinished(() => store.close());
  await publishModel(store, { id: model } as never);
  await submit(store);
  const metrics = new Metrics({ app: 'janitor', log: silentLogger() });
  const readiness = createReadiness(metrics);
  readiness.isStarted = true;
  readiness.check = () => isStoreReachable(store);
  reportQueues({ store, metrics });
  const read = async (): Promise<Exposition> => parseExposition(await metrics.expose());
  const before = await read();
  expect(before.value('darkroom_ready', { app: 'janitor' })).toBe(1);
  expect(before.value('darkroom_queue_requests', { app: 'janitor', model })).toBe(1);
  await redis.stop();
  await expect.poll(() => store.redis.status).not.toBe('ready');
  const after = await read();
  expect(after.value('darkroom_ready', { app: 'janitor' })).toBe(0);
  for (const name of [...after.types.keys()].filter((name) => name !== 'darkroom_ready'))
    expect(after.series(name)).toEqual([]);
});

it('a Redis that hangs does not hang a probe', async () => {
  const redis = await startPrivateRedis();
  onTestFinished(async () => {
    redis.process.kill('SIGCONT');
    await redis.stop();
  });
  const store = connectStore({ url: redis.url });
  onTestFinished(() => store.close());
  expect(await store.redis.ping()).toBe('PONG');
  expect(await isStoreReachable(store, 60_000)).toBe(true);
  redis.process.kill('SIGSTOP');
  expect(await isStoreReachable(store, 20)).toBe(false);
});

it('what a former has leased, holds and has lost', async () => {
  const store = await openStore();
  const metrics = new Metrics({ app: 'batch-former', log: silentLogger() });
  const wakeups = createWakeups(store);
  onTestFinished(() => wakeups.close());
  const former = new ModelFormer({
    store,
    model,
    wakeups,
    policy: { maxSize: 8, timeoutMs: 0, isBatching: true },
    lookahead: 2,
    maxAttempts: 3,
    lockMs: 60_000,
    heartbeatMs: 1000,
    log: silentLogger(),
    metrics: createFormerMetrics(metrics),
  });
  onTestFinished(() => former.stop());
  const read = async (name: string, labels: Record<string, string> = {}): Promise<number | undefined> =>
    parseExposition(await metrics.expose()).value(name, { app: 'batch-former', model, ...labels });
  const identity = { model, workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 2, ttlMs: 600_000, info: {} });
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    const envelope = testEnvelope();
    await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
    ids.push(envelope.id);
  }
  await former.runOnce();
  expect(await read('darkroom_leases_total', { outcome: 'leased' })).toBe(2);
  expect(await read('darkroom_lease_requests_sum')).toBe(2);
  expect(await read('darkroom_lease_requests_count')).toBe(1);
  expect(await read('darkroom_held_requests')).toBe(1);
  await store.redis.del(store.keysOf(model).lock(ids[2]!));
  await former.renewOnce();
  expect(await read('darkroom_held_locks_lost_total')).toBe(1);
  expect(await read('darkroom_held_requests')).toBe(0);
});
