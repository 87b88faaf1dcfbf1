/** The store on a Redis Cluster: keys on several masters, pub/sub through any node, and the loss of a master. */
import { modelOfRequestId, type StoredEvent, shardName } from '@darkroom/core';
import {
  admitRequest,
  cancelRequest,
  connectStore,
  createRateLimiter,
  createEventHub,
  dropOutboxEntries,
  dropRequest,
  enqueueWebhooks,
  LeakSweeper,
  listDead,
  listDeliveries,
  listModels,
  openInbox,
  pauseModel,
  publishModel,
  readRequest,
  readShardLoads,
  readStats,
  readWebhookSecret,
  readWorkers,
  registerWorker,
  type RequestEnd,
  resumeModel,
  resumeWorker,
  retryRequest,
  sendMove,
  setShardCount,
  type StoreConnection,
  sumStats,
  takeOutbox,
  drainByOperator,
  writeBatch,
} from '@darkroom/store';
import { allKeys, dispatchNext, type RedisCluster, startRedisCluster, testEnvelope } from '@darkroom/testing';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { startBench } from '../../integration/worker-bench.ts';

const announcement = { state: 'ready', capacity: 8, info: {} } as const;
let cluster: RedisCluster;
/** Three models, one on each master. */
let models: string[];

beforeAll(async () => {
  cluster = await startRedisCluster();
  // A long node timeout, so that a busy machine causes no failover.
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
  end: RequestEnd = { state: 'succeeded', outputs: 0 },
): Promise<string> {
  const identity = { shard: model, workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, announcement);
  const inbox = openInbox(store, () => identity);
  onTestFinished(() => inbox.close());
  const webhook = { url: 'http://receiver.test', events: ['completed' as const], progressIntervalMs: 0 };
  const envelope = testEnvelope({ model, webhook });
  expect(await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'refuse' })).toMatchObject({
    status: 'admitted',
  });
  const [delivery] = await dispatchNext(store, 1, { shard: model });
  expect(await inbox.next(5)).toMatchObject([{ type: 'run' }]);
  const writes = [{ type: 'end', delivery: delivery!, end }] as const;
  expect(await writeBatch(store, identity, writes, { batch: 1 })).toEqual(['finished']);
  return envelope.id;
}

it('runs requests, outbox, wake-ups, webhooks and rate limits of models on every master', async () => {
  const store = openStore('life');
  for (const id of models) await publishModel(store, { id } as never);
  const hub = createEventHub(store);
  onTestFinished(() => hub.close());
  const wakeups = createEventHub(store);
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
  for (const model of models) expect(await readStats(store, model)).toMatchObject({ workers: { idle: 1 } });
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
  expect([await limiter('alice'), await limiter('alice')]).toMatchObject([{ isAllowed: true }, { isAllowed: false }]);
});

it('runs admin commands (retry, drop, pause, drain, resume) for models on every master', async () => {
  const store = openStore('operators');
  for (const model of models) {
    const worker = { shard: model, workerId: 'w1' };
    const id = await drawOne(store, model, { state: 'failed', error: { code: 'internal', message: 'no' } });
    expect((await listDead(store, model, 10)).map((dead) => dead.id)).toEqual([id]);
    const retried = await retryRequest(store, id);
    expect(retried).toMatchObject({ status: 'retried', isNew: true });
    expect(await dropRequest(store, id)).toEqual({ status: 'dropped' });
    await pauseModel(store, model);
    expect(await readStats(store, model)).toMatchObject({ isPaused: true });
    await resumeModel(store, model);
    expect(await drainByOperator(store, worker)).toBe(true);
    expect((await readWorkers(store, model, 10)).map(({ state }) => state)).toEqual(['draining']);
    expect(await resumeWorker(store, worker)).toBe('resumed');
    expect(await readStats(store, model)).toMatchObject({ workers: { idle: 1 }, queued: 1, isPaused: false });
  }
});

it('repairs keys without a TTL on every master (leak sweep)', async () => {
  const store = openStore('leaks');
  const keys: string[] = [];
  for (const model of models) keys.push(store.keysOf(model).events(await drawOne(store, model)));
  await Promise.all(keys.map((key) => store.redis.persist(key)));
  const sweeper = new LeakSweeper(store, { pageSize: 10_000 });
  const repaired: string[] = [];
  for (let sizes; sizes === undefined;) {
    const page = await sweeper.sweepPage();
    repaired.push(...page.repaired);
    ({ sizes } = page);
  }
  expect(repaired.toSorted()).toEqual(keys.toSorted());
  for (const key of keys) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
  const all = await allKeys(store);
  for (const model of models) expect(all.some((key) => key.includes(`{${model}}`))).toBe(true);
});

it('moves subscriptions and commands to the new master after a failover', { timeout: 60_000 }, async () => {
  const store = openStore('failover');
  const hub = createEventHub(store);
  onTestFinished(() => hub.close());
  const [model = ''] = models;
  await drawOne(store, model);
  const { server } = await cluster.masterOf(`{${model}}`);
  await cluster.setNodeTimeout(1000);
  await server.kill();
  const envelope = testEnvelope({ model });
  const events: StoredEvent['type'][] = [];
  await hub.subscribe(envelope.id, ({ type }) => events.push(type));
  // Waits until the replica is promoted, as it would wait for a single server to restart.
  await admitRequest(store, envelope, { queueMaxLength: 10, unserved: 'accept' });
  await cancelRequest(store, envelope.id);
  await expect.poll(() => events).toEqual(['canceled']);
  expect(await drawOne(store, models[1]!)).toBeTypeOf('string');
  await server.restart();
});

it('moves a worker between shards of a model on several masters and ends the requests of all shards', async () => {
  const store = openStore('shards');
  const [first] = models;
  await publishModel(store, { id: first } as never);
  const all = Array.from({ length: 8 }, (_shard, number) => shardName(first!, number));
  await setShardCount(store, first!, { count: all.length, known: [first!] });
  const masters = await Promise.all(all.map(async (shard) => (await cluster.masterOf(`{${shard}}`)).port));
  expect(new Set(masters).size).toBeGreaterThan(1);
  const [known] = await listModels(store);
  expect(known!.shards).toEqual(all);
  const limits = { queueMaxLength: 10, unserved: 'accept', ownerMaxBytes: 1e9, openRequestsMax: 100 } as const;
  const ids = await Promise.all(
    all.map(async (shard) => {
      const { id } = testEnvelope({ model: shard });
      const envelope = testEnvelope({ id, model: first! });
      const otherShards = all.filter((other) => other !== shard);
      expect(await admitRequest(store, envelope, { ...limits, otherShards })).toMatchObject({ status: 'admitted' });
      return id;
    }),
  );
  const { executor } = await startBench({ store, card: { id: first } as never });
  for (const [at, shard] of all.entries()) {
    const [from, load] = [all[at - 1], (await readShardLoads(store, all))[at]!];
    expect(load).toMatchObject({ shard, isOpen: true, waiting: 1, workers: at === 0 ? 1 : 0 });
    if (from !== undefined) await sendMove(store, { workerId: 'w1', from, to: shard, isPatient: true });
    await expect.poll(() => dispatchNext(store, 1, { shard })).toMatchObject([{ id: ids[at] }]);
    await expect.poll(() => executor.submitted.length).toBe(at + 1);
    executor.complete(executor.submitted[at]!.id);
    await expect
      .poll(() => readRequest(store, ids[at]!))
      .toMatchObject({ request: { model: first, state: 'succeeded' } });
  }
  const stats = sumStats(await Promise.all(all.map((shard) => readStats(store, shard))));
  expect(stats).toMatchObject({ model: first, queued: 0, running: 0, workers: { idle: 1 }, shards: 8 });
});
