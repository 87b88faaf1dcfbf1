/** What is different on a Cluster: keys on several servers, messages through any of them, a master that is lost. */
import { createRequestId, modelOfRequestId, type RequestEvent } from '@darkroom/core';
import {
  admitRequest,
  connectStore,
  createEventHub,
  createRateLimiter,
  createWakeups,
  dropOutboxEntries,
  dropRequest,
  enqueueWebhooks,
  type Finish,
  finishRequest,
  readStats,
  leaseBatch,
  listDead,
  listDeliveries,
  openInbox,
  openJobTaker,
  pauseModel,
  publishModel,
  readPool,
  readPools,
  readWebhookSecret,
  readWorkers,
  registerWorker,
  resumeModel,
  resumeWorker,
  retryRequest,
  type StoreConnection,
  sweepLeaks,
  takeOutbox,
  withdrawWorker,
} from '@darkroom/store';
import { allKeys, type RedisCluster, startRedisCluster, testEnvelope } from '@darkroom/testing';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';

const announcement = { state: 'ready', capacity: 8, ttlMs: 600_000, info: {} } as const;
let cluster: RedisCluster;
/** One on each master. */
let models: string[];

beforeAll(async () => {
  cluster = await startRedisCluster();
  // A machine that stands still for a moment is no reason to give a master up.
  await cluster.setNodeTimeout(60_000);
  const byPort = new Map<number, string>();
  for (let number = 1; byPort.size < 3; number++) {
    const { port } = await cluster.masterOf(`{tiny-${number}}`);
    if (!byPort.has(port)) byPort.set(port, `tiny-${number}`);
  }
  models = [...byPort.values()];
});
afterAll(() => cluster.stop());

function openStore(prefix: string): StoreConnection {
  const store = connectStore({ url: cluster.url, prefix });
  onTestFinished(() => store.close());
  return store;
}

/** Admits, leases and finishes one request; returns its id. */
async function drawOne(
  store: StoreConnection,
  model: string,
  finish: Finish = { state: 'succeeded' },
): Promise<string> {
  const identity = { model, workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, announcement);
  const taker = openJobTaker(store, model, { lockMs: 60_000, stalledCheckMs: 1000 });
  onTestFinished(() => taker.close());
  const inbox = openInbox(store, identity);
  onTestFinished(() => inbox.close());
  const webhook = { url: 'http://receiver.test', events: ['completed' as const], progressIntervalMs: 0 };
  const envelope = testEnvelope({ model, webhook });
  expect(await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'refuse' })).toMatchObject({
    status: 'admitted',
  });
  const [delivery] = await taker.take(1);
  await leaseBatch(store, model, [delivery!], { mode: 'shared', maxRows: 8, maxAttempts: 3 });
  expect(await inbox.next(5)).toMatchObject({ type: 'run' });
  expect(await finishRequest(store, model, 'w1', delivery!, finish)).toBe('finished');
  return envelope.id;
}

it('serves models on every master over one connection', async () => {
  const store = openStore('life');
  for (const id of models) await publishModel(store, { id } as never);
  const hub = createEventHub(store);
  onTestFinished(() => hub.close());
  const wakeups = createWakeups(store);
  onTestFinished(() => wakeups.close());
  for (const model of models) {
    let wakes = 0;
    await wakeups.listen(model, () => wakes++);
    const id = await drawOne(store, model);
    expect(modelOfRequestId(id)).toBe(model);
    await expect.poll(() => wakes).toBeGreaterThan(0);
    const [entry] = await takeOutbox(store, model, { limit: 10, reclaimAfterMs: 10_000 });
    expect(entry).toMatchObject({ requestId: id, model });
    await dropOutboxEntries(store, model, [entry!.entryId]);
    expect(await takeOutbox(store, model, { limit: 10, reclaimAfterMs: 0 })).toEqual([]);
  }
  expect((await readPools(store)).map(({ model, idle }) => [model, idle])).toEqual(
    expect.arrayContaining(models.map((model) => [model, 1])),
  );
  const message = {
    id: 'x',
    owner: '',
    requestId: 'r',
    type: 'request.succeeded',
    url: 'http://receiver.test',
    payload: '{}',
  };
  await enqueueWebhooks(store, [message], { attempts: 1 });
  expect(await listDeliveries(store, '', { state: 'pending', limit: 10 })).toEqual([]);
  expect(await readWebhookSecret(store, '')).toMatch(/^whsec_/);
  const limiter = createRateLimiter(store, { name: 'submit', limit: 1, windowS: 60 });
  expect([await limiter.count('alice'), await limiter.count('alice')]).toMatchObject([
    { isAllowed: true },
    { isAllowed: false },
  ]);
});

it('takes what operators say, on whichever master a model is', async () => {
  const store = openStore('operators');
  for (const model of models) {
    const worker = { model, workerId: 'w1' };
    const id = await drawOne(store, model, { state: 'failed', error: { code: 'internal', message: 'no' } });
    expect((await listDead(store, model, 10)).map((dead) => dead.id)).toEqual([id]);
    const newId = createRequestId({ model, nowMs: Date.now() });
    expect(await retryRequest(store, id, { newId })).toEqual({ status: 'retried', id: newId, isNew: true });
    expect(await dropRequest(store, id)).toEqual({ status: 'dropped' });
    await pauseModel(store, model);
    expect([(await readStats(store, model)).isPaused, (await readPool(store, model)).isPaused]).toEqual([true, true]);
    await resumeModel(store, model);
    expect(await withdrawWorker(store, worker)).toBe(true);
    expect((await readWorkers(store, model)).map(({ state }) => state)).toEqual(['draining']);
    expect(await resumeWorker(store, worker)).toBe('resumed');
    expect(await readPool(store, model)).toMatchObject({ idle: 1, queued: 1, isPaused: false });
  }
});

it('finds keys that lost their TTL on whichever master they are', async () => {
  const store = openStore('leaks');
  for (const model of models) {
    const id = await drawOne(store, model);
    const key = store.keysOf(model).events(id);
    await store.redis.persist(key);
    expect((await sweepLeaks(store, model)).repaired).toEqual([key]);
    expect(await store.redis.pttl(key)).toBeGreaterThan(0);
  }
  const keys = await allKeys(store);
  for (const model of models) expect(keys.some((key) => key.includes(`{${model}}`))).toBe(true);
});

it('subscriptions and commands move when the master they were with is lost', { timeout: 60_000 }, async () => {
  const store = openStore('failover');
  const hub = createEventHub(store);
  onTestFinished(() => hub.close());
  const [model = ''] = models;
  await drawOne(store, model);
  const { server } = await cluster.masterOf(`{${model}}`);
  await cluster.setNodeTimeout(1000);
  await server.kill();
  const envelope = testEnvelope({ model });
  const events: RequestEvent['type'][] = [];
  await hub.subscribe(envelope.id, ({ type }) => events.push(type));
  // Waits for the replica, as it would wait for one server to come back.
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept' });
  await expect.poll(() => events).toEqual(['queued']);
  expect(await drawOne(store, models[1]!)).toBeTypeOf('string');
  await server.restart();
});
