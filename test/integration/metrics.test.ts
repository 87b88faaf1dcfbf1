/** Prometheus metrics compared with what has happened. */
import {
  cancelRequest,
  connectStore,
  type Delivery,
  isStoreReachable,
  publishModel,
  readStats,
  type RequestEnd,
  type StoreConnection,
  sweepWorkers,
} from '@darkroom/store';
import {
  dispatchNext,
  type Exposition,
  openTestStore,
  parseExposition,
  seedWorker,
  silentLogger,
  startPrivateRedis,
  writeNow,
} from '@darkroom/testing';
import { createReadiness, Metrics } from '@darkroom/service';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createFormerMetrics } from '../../apps/batch-former/src/batch-former.ts';
import { Janitor } from '../../apps/janitor/src/janitor.ts';
import { reportQueues } from '../../apps/janitor/src/report-queues.ts';
import { openFormer } from './open-former.ts';
import { submit } from './worker-bench.ts';

const model = 'tiny';
const identity = { shard: model, workerId: 'w1', incarnation: 'first' };

async function openStore(): Promise<StoreConnection> {
  const store = openTestStore();
  await publishModel(store, { id: model } as never);
  return store;
}

/** Returns a function that scrapes a janitor of this store. */
function openReport(store: StoreConnection): () => Promise<Exposition> {
  const metrics = new Metrics({ app: 'janitor', log: silentLogger() });
  reportQueues({ store, metrics });
  return async () => parseExposition(await metrics.expose());
}

/** Moves a request's creation and last transition back in time, s. */
async function age(store: StoreConnection, id: string, seconds: number): Promise<void> {
  const request = store.keysOf(model).request(id);
  for (const field of ['createdAtMs', 'sinceMs']) await store.redis.hincrby(request, field, -1000 * seconds);
}

async function run(store: StoreConnection): Promise<Delivery> {
  const [delivery] = await dispatchNext(store);
  return delivery!;
}

async function finish(store: StoreConnection, delivery: Delivery, end: RequestEnd): Promise<void> {
  expect(await writeNow(store, identity, { type: 'end', delivery, end })).toBe('finished');
}

it('reports queue length, oldest age, workers and request outcomes', async () => {
  const store = await openStore();
  await seedWorker(store, { capacity: 4 });
  await age(store, await submit(store), 200);
  const drawn = await run(store);
  await age(store, drawn.id, 1000);
  await finish(store, drawn, { state: 'succeeded', outputs: 0 });
  await age(store, await submit(store), 400);
  await finish(store, await run(store), { state: 'failed', error: { code: 'internal', message: 'no' } });
  const canceled = await submit(store);
  await age(store, canceled, 70);
  await cancelRequest(store, canceled);
  await submit(store);
  await run(store);
  const oldest = await submit(store);
  await submit(store);

  await store.redis.zincrby(store.keysOf(model).waiting, -4000, oldest);
  const now = vi.spyOn(Date, 'now').mockReturnValue(0);
  const page = await openReport(store)();
  now.mockRestore();
  const value = (name: string, labels: Record<string, string> = {}): number | undefined =>
    page.value(name, { app: 'janitor', model, ...labels });
  const counted = (name: string, labels: Record<string, string>, le: string): number | undefined =>
    value(`${name}_bucket`, { ...labels, le });
  expect(value('darkroom_queue_requests')).toBe(2);
  expect(value('darkroom_queue_oldest_seconds')).toBeGreaterThanOrEqual(4);
  expect(value('darkroom_running_requests')).toBe(1);
  expect(value('darkroom_workers', { state: 'busy' })).toBe(1);
  expect(value('darkroom_workers', { state: 'idle' })).toBe(0);
  expect([value('darkroom_worker_rows'), value('darkroom_worker_free_rows')]).toEqual([4, 3]);
  // Time spent in the queue: 200 s, 400 s and 0 s.
  const waited = { state: 'queued', next: 'running' };
  expect(value('darkroom_state_seconds_count', waited)).toBe(3);
  expect(['120', '300', '600'].map((le) => counted('darkroom_state_seconds', waited, le))).toEqual([1, 2, 3]);
  expect(value('darkroom_state_seconds_sum', waited)).toBeGreaterThanOrEqual(600);
  const left = { state: 'queued', next: 'canceled' };
  expect(['60', '120'].map((le) => counted('darkroom_state_seconds', left, le))).toEqual([0, 1]);
  const ended = { outcome: 'succeeded' };
  expect(['600', '1800'].map((le) => counted('darkroom_request_seconds', ended, le))).toEqual([0, 1]);
  for (const outcome of ['succeeded', 'failed', 'canceled'])
    expect(value('darkroom_request_seconds_count', { outcome })).toBe(1);
  expect(value('darkroom_requeues_total', { reason: 'worker_lost' })).toBe(0);
  // BullMQ holds webhook deliveries only, no requests.
  const jobs = page.series('bullmq_job_count').filter(({ value: count }) => count > 0);
  expect(jobs).toEqual([]);
  expect(new Set(page.series('bullmq_job_count').map(({ labels }) => labels['model']))).toEqual(new Set(['_webhooks']));
});

it("counts requeues of dead workers' requests; a failure at the last attempt is not a requeue", async () => {
  const store = await openStore();
  const id = await submit(store);
  await submit(store);
  for (let life = 1; life <= 3; life++) {
    await seedWorker(store, { capacity: 4 });
    expect(await run(store)).toMatchObject({ id });
    for (let sweep = 0; sweep < 2; sweep++) await sweepWorkers(store, model, { intervalMs: 0, missedSweeps: 1 });
  }
  const page = await openReport(store)();
  const labels = { app: 'janitor', model };
  expect(page.value('darkroom_workers_reaped_total', labels)).toBe(3);
  expect(page.value('darkroom_requeues_total', { ...labels, reason: 'worker_lost' })).toBe(2);
  expect(page.value('darkroom_request_seconds_count', { ...labels, outcome: 'failed' })).toBe(1);
  expect(page.value('darkroom_queue_requests', labels)).toBe(1);
});

it('every janitor reports the same values at every scrape', async () => {
  const store = await openStore();
  await submit(store);
  const one = openReport(store);
  await one();
  const pages = [await one(), await openReport(store)()];
  for (const page of pages) {
    expect(page.value('darkroom_queue_requests', { app: 'janitor', model })).toBe(1);
    expect(page.value('darkroom_workers_reaped_total', { app: 'janitor', model })).toBe(0);
  }
});

it('reports keys and bytes per key kind after a leak sweep, and 0 once a kind is gone', async () => {
  const store = await openStore();
  const id = await submit(store);
  const metrics = new Metrics({ app: 'janitor', log: silentLogger() });
  const times = { sweepIntervalMs: 1000, leakSweepIntervalMs: 60_000, workerTtlMs: 60_000 };
  const janitor = new Janitor({ store, metrics, log: silentLogger(), ...times });
  const read = async (name: string, kind: string): Promise<number | undefined> =>
    parseExposition(await metrics.expose()).value(name, { app: 'janitor', model, kind });
  // Leak sweeps go page by page through the keys of other tests too.
  const sweepAndRead = async (): Promise<number | undefined> => {
    await janitor.sweepLeaksOnce();
    return read('darkroom_redis_keys', 'request');
  };
  await expect.poll(sweepAndRead, { interval: 1 }).toBe(1);
  expect(await read('darkroom_redis_bytes', 'request')).toBe(
    await store.redis.memory('USAGE', store.keysOf(model).request(id)),
  );
  await store.redis.del(store.keysOf(model).request(id));
  await expect.poll(sweepAndRead, { interval: 1 }).toBe(0);
  expect(await read('darkroom_redis_bytes', 'request')).toBe(0);
});

it('while Redis is unavailable: reports not ready and no outdated values', async () => {
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

it('the readiness probe times out when Redis hangs', async () => {
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

it('batch-former metrics count leases by outcome and requests per lease', async () => {
  const store = await openStore();
  const metrics = new Metrics({ app: 'batch-former', log: silentLogger() });
  const { former } = openFormer(store, { metrics: createFormerMetrics(metrics) });
  const read = async (name: string, labels: Record<string, string> = {}): Promise<number | undefined> =>
    parseExposition(await metrics.expose()).value(name, { app: 'batch-former', model, ...labels });
  await seedWorker(store, { capacity: 2 });
  const overdue = await submit(store);
  for (let count = 0; count < 3; count++) await submit(store);
  await store.redis.hset(store.keysOf(model).request(overdue), 'startDeadlineMs', 1);
  await former.runOnce(model);
  expect(await read('darkroom_leases_total', { outcome: 'leased' })).toBe(2);
  expect(await read('darkroom_leases_total', { outcome: 'expired' })).toBe(1);
  expect(await read('darkroom_lease_requests_sum')).toBe(2);
  expect(await readStats(store, model)).toMatchObject({ queued: 1, running: 2 });
});
