/** The janitor against a real queue: it cleans up after dead processes exactly once, however many janitors sweep. */
import { once } from 'node:events';
import {
  admitRequest,
  cancelRequest,
  type Delivery,
  forgetModel,
  listShards,
  pauseModel,
  publishModel,
  readEvents,
  readRequest,
  readStats,
  type RequestWrite,
  retryRequest,
  splitOutput,
  setShardCount,
  type StoreConnection,
  unregisterWorker,
} from '@darkroom/store';
import {
  allKeys,
  dispatchNext,
  openTestStore,
  seedRequest,
  seedWorker,
  silentLogger,
  testEnvelope,
  writeNow,
} from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Janitor, type JanitorOptions } from '../../apps/janitor/src/janitor.ts';
import { submit } from './worker-bench.ts';

const nothing = { reaped: [], requeued: [], expired: [] };

async function openStore(): Promise<StoreConnection> {
  const store = openTestStore({ maxAttempts: 3 });
  await publishModel(store, { id: 'tiny' } as never);
  return store;
}

/** Returns a janitor that reaps a worker after two missed sweeps. With the default interval every sweep counts. */
function createJanitor(store: StoreConnection, sweepIntervalMs = 1): Janitor {
  const janitor = new Janitor({
    store,
    log: silentLogger(),
    sweepIntervalMs,
    workerTtlMs: 2 * sweepIntervalMs,
    leakSweepIntervalMs: 60_000,
  });
  onTestFinished(() => janitor.stop());
  return janitor;
}

/** Leases the first request in the queue to a new worker of this name. */
async function run(store: StoreConnection, workerId: string, isExclusive = false): Promise<Delivery> {
  await seedWorker(store, { workerId });
  const [delivery] = await dispatchNext(store, 1, { workerId, isExclusive });
  return delivery!;
}

function write(store: StoreConnection, workerId: string, ...writes: RequestWrite[]): Promise<string | undefined> {
  return writeNow(store, { shard: 'tiny', workerId, incarnation: 'first' }, ...writes);
}

function save(delivery: Delivery, done: number): RequestWrite {
  return { type: 'checkpoint', delivery, index: 0, done, data: Buffer.from(`at ${done}`) };
}

/** Sweeps until a silent worker is reaped. Returns the ids of reaped workers. */
async function reap(janitor: Janitor): Promise<string[]> {
  for (let sweeps = 0; sweeps < 100; sweeps++) {
    const { reaped } = await janitor.sweepOnce('tiny');
    if (reaped.length > 0) return reaped;
  }
  return [];
}

it("requeues a dead worker's requests at the front of the queue, with the attempt counted", async () => {
  const store = await openStore();
  const id = await submit(store);
  await run(store, 'w1');
  await submit(store);
  const janitor = createJanitor(store);
  expect(await janitor.sweepOnce('tiny')).toEqual(nothing);
  expect(await reap(janitor)).toEqual(['w1']);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', queuePosition: 0, attempts: 1 } });
  expect(await readStats(store, 'tiny')).toMatchObject({
    workers: { loading: 0, idle: 0, busy: 0, draining: 0, silent: 0 },
    queued: 2,
    running: 0,
    slots: 0,
    freeSlots: 0,
  });
  expect((await allKeys(store)).filter((key) => /:(?:worker|inbox|leases):/.test(key))).toEqual([]);
});

it('a request that loses its worker max-attempts times fails with worker_lost and is listed as dead', async () => {
  const store = await openStore();
  const id = await submit(store);
  const janitor = createJanitor(store);
  for (const attempts of [1, 2]) {
    await run(store, `w${attempts}`);
    expect(await reap(janitor)).toEqual([`w${attempts}`]);
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts } });
  }
  await run(store, 'w3', true);
  expect(await reap(janitor)).toEqual(['w3']);
  const error = { code: 'worker_lost', message: expect.stringContaining('3 attempts') as string };
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'failed', error } });
  expect(await store.redis.xlen(store.keysOf('tiny').dead)).toBe(1);
});

it('a request whose checkpoints advance may lose any number of workers and still succeeds', async () => {
  const store = await openStore();
  const id = await submit(store);
  const janitor = createJanitor(store);
  for (const [lost, done] of [10, 20, 30, 40, 50].entries()) {
    const delivery = await run(store, `w${lost}`);
    await write(store, `w${lost}`, save(delivery, done));
    await reap(janitor);
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  }
  const delivery = await run(store, 'last');
  const output = { index: 0, contentType: 'x/y', data: Buffer.from('done'), facts: {}, chunkBytes: 3000 };
  const end = { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } } as const;
  expect(await write(store, 'last', ...splitOutput(delivery, output), end)).toBe('finished');
});

it('a new output counts as progress and saves the attempt; a checkpoint at the same step does not', async () => {
  const store = await openStore();
  const id = await submit(store, { outputs: 2 });
  const janitor = createJanitor(store);
  const attempts: number[] = [];
  const lose = async (workerId: string, writes: (delivery: Delivery) => RequestWrite[]): Promise<void> => {
    const delivery = await run(store, workerId);
    await write(store, workerId, ...writes(delivery));
    await reap(janitor);
    const found = await readRequest(store, id);
    attempts.push(found.status === 'found' ? found.request.attempts : -1);
  };
  await lose('w1', (delivery) => [save(delivery, 10)]);
  await lose('w2', (delivery) => [save(delivery, 10)]);
  const output = { index: 1, contentType: 'x/y', data: Buffer.from('y'), facts: {}, chunkBytes: 3000 };
  await lose('w3', (delivery) => splitOutput(delivery, output));
  await lose('w4', (delivery) => [save(delivery, 10)]);
  expect(attempts).toEqual([0, 1, 1, 2]);
  await lose('w5', (delivery) => [save(delivery, 10)]);
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'failed', error: { code: 'worker_lost' } } });
});

it('two janitors that take turns count sweeps no faster than one', async () => {
  const store = await openStore();
  const minuteMs = 60_000;
  const { swept } = store.keysOf('tiny');
  const janitors = [createJanitor(store, minuteMs), createJanitor(store, minuteMs)];
  const counts: (string | null)[] = [];
  for (const janitor of [...janitors, ...janitors, ...janitors]) {
    await janitor.sweepOnce('tiny');
    counts.push(await store.redis.hget(swept, 'count'));
    await store.redis.hincrby(swept, 'atMs', -minuteMs / 2);
  }
  expect(counts).toEqual(['1', '1', '2', '2', '3', '3']);
});

it('uses the clock of Redis, not the clock of its machine', async () => {
  const store = await openStore();
  await seedWorker(store);
  const [overdue] = [await submit(store), await submit(store)];
  const janitor = createJanitor(store, 60_000);
  const now = vi.spyOn(Date, 'now');
  onTestFinished(() => now.mockRestore());
  for (const ms of [660_000, -86_400_000]) {
    now.mockReturnValue(performance.timeOrigin + performance.now() + ms);
    expect(await janitor.sweepOnce('tiny')).toEqual(nothing);
  }
  expect(await store.redis.hget(store.keysOf('tiny').swept, 'count')).toBe('1');
  await store.redis.zadd(store.keysOf('tiny').deadlines, 1, overdue);
  await store.redis.hset(store.keysOf('tiny').request(overdue), 'startDeadlineMs', 1);
  expect(await janitor.sweepOnce('tiny')).toEqual({ ...nothing, expired: [overdue] });
});

it('expires an overdue request once, however many janitors sweep', async () => {
  const store = await openStore();
  const overdue = await submit(store);
  const waiting = await submit(store);
  const keys = store.keysOf('tiny');
  await store.redis.hset(keys.request(overdue), 'startDeadlineMs', 1);
  await store.redis.zadd(keys.deadlines, 1, overdue);
  const janitors = Array.from({ length: 3 }, () => createJanitor(store));
  const results = await Promise.all(janitors.map((janitor) => janitor.sweepOnce('tiny')));
  expect(results.flatMap(({ expired }) => expired)).toEqual([overdue]);
  expect((await readEvents(store, overdue, { after: 0 })).map(({ type }) => type)).toEqual(['queued', 'expired']);
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1 });
  expect(await readRequest(store, waiting)).toMatchObject({ request: { state: 'queued', queuePosition: 0 } });
});

it('restores missing TTLs and deletes keys of dead workers', async () => {
  const store = await openStore();
  const keys = store.keysOf('tiny');
  const [ended, running] = [await submit(store), await submit(store)];
  const delivery = await run(store, 'w1');
  expect(delivery.id).toBe(ended);
  await write(store, 'w1', { type: 'end', delivery, end: { state: 'canceled' } });
  await run(store, 'w1');
  await store.redis.persist(keys.events(ended));
  await store.redis.set(keys.checkpoint('nobody', 0), 'x');
  await store.redis.xadd(keys.inbox('long-gone'), '*', 'message', '{}');
  const janitor = createJanitor(store);
  // Leak sweeps go page by page through the keys of other tests too.
  const sweepAndLook = async (): Promise<boolean> => {
    await janitor.sweepLeaksOnce();
    const ttls = await Promise.all(
      [keys.events(ended), keys.checkpoint('nobody', 0)].map((key) => store.redis.pttl(key)),
    );
    return ttls.every((ttl) => ttl > 0) && (await store.redis.exists(keys.inbox('long-gone'))) === 0;
  };
  await expect.poll(sweepAndLook, { interval: 1 }).toBe(true);
  // An open request has no TTL yet, and a live worker keeps its keys.
  expect(await store.redis.pttl(keys.events(running))).toBe(-1);
  expect(await store.redis.exists(keys.inbox('w1'), keys.leases('w1'), keys.worker('w1'))).toBe(3);
});

it('sweeps all keys for leaks once per interval, however few pages there are', async () => {
  const janitor = createJanitor(await openStore());
  // Leak sweeps go page by page through the keys of other tests too.
  await expect.poll(() => janitor.sweepLeaksIfDue(0), { interval: 1 }).toBe('not due');
  expect(await janitor.sweepLeaksIfDue(1_000_000_000)).toBe('swept');
});

it('a model whose Redis shard does not answer does not delay the sweeps of others', async () => {
  const store = openTestStore();
  for (const model of ['stuck', 'tiny']) {
    await publishModel(store, { id: model } as never);
    await seedWorker(store, { model });
  }
  const redis = store.redis as unknown as Record<string, (base: string, ...values: unknown[]) => Promise<unknown>>;
  const sweep = redis['workers/sweep-workers']!.bind(redis);
  const over = new AbortController();
  const silence = once(over.signal, 'abort').then(() => [0]);
  redis['workers/sweep-workers'] = (base, ...values) =>
    base === store.keysOf('stuck').base ? silence : sweep(base, ...values);
  await createJanitor(store).start();
  await expect.poll(() => store.redis.exists(store.keysOf('tiny').worker('w1'))).toBe(0);
  over.abort();
});

/** Returns a janitor that forgets a model whose sweeps find no worker for 5 ms. */
function createForgettingJanitor(store: StoreConnection, options: Partial<JanitorOptions> = {}): Janitor {
  return new Janitor({
    store,
    log: silentLogger(),
    sweepIntervalMs: 1,
    workerTtlMs: 2,
    leakSweepIntervalMs: 60_000,
    forgetAfterMs: 5,
    ...options,
  });
}

/** Sweeps repeatedly for a time, ms. */
async function sweepFor(janitor: Janitor, ms: number, shard = 'tiny'): Promise<void> {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) await janitor.sweepOnce(shard);
}

it('forgets a model without workers and deletes its keys, but keeps the results of ended requests', async () => {
  const store = await openStore();
  const janitor = createForgettingJanitor(store);
  const { id } = await seedRequest(store, { options: { ownerMaxBytes: 1e9 } });
  const delivery = await run(store, 'w1');
  await write(store, 'w1', { type: 'end', delivery, end: { state: 'failed', error: { code: 'x', message: 'x' } } });
  await unregisterWorker(store, { shard: 'tiny', workerId: 'w1', incarnation: 'first' });
  await expect.poll(() => janitor.sweepOnce('tiny').then(() => listShards(store))).toEqual([]);
  // A late sweep and a late rebalance create no keys.
  await janitor.sweepOnce('tiny');
  await createForgettingJanitor(store, { modelShards: 3 }).rebalanceOnce('tiny', ['tiny', 'tiny~1']);
  const rest = (await allKeys(store)).map((key) => key.replace(`${store.prefix}:v3:{tiny}:`, '')).toSorted();
  expect(rest.filter((key) => !/^minute:\d+$/.test(key))).toEqual(
    ['bytes:', `events:${id}`, 'expiring:', 'forgotten', `input:${id}`, 'listed:', `request:${id}`].toSorted(),
  );
  expect(await readRequest(store, id)).toMatchObject({ status: 'found', request: { state: 'failed' } });
  expect(await retryRequest(store, id)).toEqual({ status: 'forgotten', model: 'tiny' });
});

it.each([
  ['it has a worker', async (store: StoreConnection) => seedWorker(store)],
  ['it has a queued request', async (store: StoreConnection) => void (await submit(store))],
  ['it is paused', (store: StoreConnection) => pauseModel(store, 'tiny')],
  ['a webhook is unsent', (store: StoreConnection) => sendWebhook(store)],
])('does not forget a model while %s', async (_why, use) => {
  const store = await openStore();
  await use(store);
  // The TTL is too long for the worker to be reaped.
  const janitor = createForgettingJanitor(store, { workerTtlMs: 3_600_000, forgetAfterMs: 0 });
  await sweepFor(janitor, 20);
  expect(await listShards(store)).toEqual(['tiny']);
});

it('does not count an outage of all janitors as time without a worker', async () => {
  const store = await openStore();
  const janitor = createForgettingJanitor(store, { forgetAfterMs: 61_000 });
  await janitor.sweepOnce('tiny');
  // Moves the last sweep two days back on the clock of Redis.
  await store.redis.hincrby(store.keysOf('tiny').swept, 'atMs', -2 * 86_400_000);
  await janitor.sweepOnce('tiny');
  expect(await listShards(store)).toEqual(['tiny']);
});

it('refuses requests for a forgotten model, storing nothing, until a worker publishes it again', async () => {
  const store = await openStore();
  expect(await forgetModel(store, 'tiny')).toEqual({ status: 'forgotten' });
  const before = await allKeys(store);
  const envelope = testEnvelope();
  expect(await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' })).toEqual({
    status: 'forgotten',
  });
  expect(await allKeys(store)).toEqual(before);
  await publishModel(store, { id: 'tiny' } as never);
  await seedWorker(store);
  expect(await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' })).toMatchObject({
    status: 'admitted',
  });
});

it('forgets all shards of a model or none', async () => {
  const store = await openStore();
  await setShardCount(store, 'tiny', { count: 3, known: ['tiny'] });
  const identity = await seedWorker(store, { model: 'tiny~2' });
  const inUse = { status: 'in-use', workers: 1, openRequests: 0, unsentWebhooks: 0 };
  expect(await forgetModel(store, 'tiny')).toEqual(inUse);
  expect((await listShards(store)).toSorted()).toEqual(['tiny', 'tiny~1', 'tiny~2']);
  await submit(store);
  await unregisterWorker(store, identity);
  expect(await forgetModel(store, 'tiny')).toMatchObject({ status: 'in-use', workers: 0, openRequests: 1 });
  for (const id of await store.redis.zrange(store.keysOf('tiny').deadlines, '0', '-1')) await cancelRequest(store, id);
  expect(await forgetModel(store, 'tiny')).toEqual({ status: 'forgotten' });
  expect(await listShards(store)).toEqual([]);
});

/** Stores a webhook event that waits for a webhook-sender. */
async function sendWebhook(store: StoreConnection): Promise<void> {
  const webhook = { url: 'https://example.com', events: ['completed' as const], progressIntervalMs: 1000 };
  await cancelRequest(store, await submit(store, { webhook }));
}
