/** The janitor against a real queue: what dead processes leave is put right, once, whoever sweeps. */
import { once } from 'node:events';
import type { RequestEnvelope } from '@darkroom/core';
import {
  admitRequest,
  type Delivery,
  publishModel,
  readEvents,
  readRequest,
  readStats,
  registerWorker,
  type RequestWrite,
  splitOutput,
  type StoreConnection,
  writeBatch,
} from '@darkroom/store';
import { allKeys, dispatchNext, openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { Janitor } from '../../apps/janitor/src/janitor.ts';

const nothing = { buried: [], requeued: [], expired: [] };

async function openStore(): Promise<StoreConnection> {
  const store = openTestStore({ maxAttempts: 3 });
  await publishModel(store, { id: 'tiny' } as never);
  return store;
}

/** Dead is who missed two sweeps; of which each counts, however soon after the last. */
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

async function register(store: StoreConnection, workerId: string): Promise<void> {
  const identity = { model: 'tiny', workerId, incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 8, info: {} });
}

async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<string> {
  const envelope = testEnvelope(overrides);
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

/** A request that a worker of this name has, the first in line. */
async function run(store: StoreConnection, workerId: string, isExclusive = false): Promise<Delivery> {
  await register(store, workerId);
  const [delivery] = await dispatchNext(store, 1, { workerId, isExclusive });
  return delivery!;
}

let batch = 0;

async function write(store: StoreConnection, workerId: string, writes: RequestWrite[]): Promise<string[]> {
  return writeBatch(store, { model: 'tiny', workerId, incarnation: 'first' }, writes, { batch: ++batch });
}

function save(delivery: Delivery, done: number): RequestWrite {
  return { type: 'checkpoint', delivery, index: 0, done, data: Buffer.from(`at ${done}`) };
}

/** Sweeps until a worker is buried that says nothing any more. */
async function bury(janitor: Janitor): Promise<string[]> {
  for (let sweeps = 0; sweeps < 100; sweeps++) {
    const { buried } = await janitor.sweepOnce('tiny');
    if (buried.length > 0) return buried;
  }
  return [];
}

it("requeues a dead worker's requests first in line, with the attempt counted", async () => {
  const store = await openStore();
  const id = await submit(store);
  await run(store, 'w1');
  await submit(store);
  const janitor = createJanitor(store);
  expect(await janitor.sweepOnce('tiny')).toEqual(nothing);
  expect(await bury(janitor)).toEqual(['w1']);
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

it('a request that loses every worker ends as failed and can be found', async () => {
  const store = await openStore();
  const id = await submit(store);
  const janitor = createJanitor(store);
  for (const attempts of [1, 2]) {
    await run(store, `w${attempts}`);
    expect(await bury(janitor)).toEqual([`w${attempts}`]);
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts } });
  }
  await run(store, 'w3', true);
  expect(await bury(janitor)).toEqual(['w3']);
  const error = { code: 'worker_lost', message: expect.stringContaining('3 attempts') as string };
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'failed', error } });
  expect(await store.redis.xlen(store.keysOf('tiny').dead)).toBe(1);
});

it('a request that got further each time loses as many workers as it must and still ends well', async () => {
  const store = await openStore();
  const id = await submit(store);
  const janitor = createJanitor(store);
  for (const [lost, done] of [10, 20, 30, 40, 50].entries()) {
    const delivery = await run(store, `w${lost}`);
    await write(store, `w${lost}`, [save(delivery, done)]);
    await bury(janitor);
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  }
  const delivery = await run(store, 'last');
  const output = { index: 0, contentType: 'x/y', data: Buffer.from('done'), facts: {}, chunkBytes: 3000 };
  const end = { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } } as const;
  expect((await write(store, 'last', [...splitOutput(delivery, output), end])).at(-1)).toBe('finished');
});

it('one that finished another output has got further; one that only came as far as before has not', async () => {
  const store = await openStore();
  const id = await submit(store, { outputs: 2 });
  const janitor = createJanitor(store);
  const attempts: number[] = [];
  const lose = async (workerId: string, writes: (delivery: Delivery) => RequestWrite[]): Promise<void> => {
    const delivery = await run(store, workerId);
    await write(store, workerId, writes(delivery));
    await bury(janitor);
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

it('two janitors that take turns count no faster than one: a worker has all of its time', async () => {
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

it('goes by the clock of Redis, whatever that of its machine says', async () => {
  const store = await openStore();
  await register(store, 'w1');
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

it('expires what is overdue, once, however many janitors sweep', async () => {
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

it('gives keys their TTL back and removes what dead workers left', async () => {
  const store = await openStore();
  const keys = store.keysOf('tiny');
  const [ended, running] = [await submit(store), await submit(store)];
  const delivery = await run(store, 'w1');
  expect(delivery.id).toBe(ended);
  await write(store, 'w1', [{ type: 'end', delivery, end: { state: 'canceled' } }]);
  await run(store, 'w1');
  await store.redis.persist(keys.events(ended));
  await store.redis.set(keys.checkpoint('nobody', 0), 'x');
  await store.redis.xadd(keys.inbox('long-gone'), '*', 'message', '{}');
  const janitor = createJanitor(store);
  // Page by page, through what other tests have there too.
  const sweepAndLook = async (): Promise<boolean> => {
    await janitor.sweepLeaksOnce();
    const ttls = await Promise.all(
      [keys.events(ended), keys.checkpoint('nobody', 0)].map((key) => store.redis.pttl(key)),
    );
    return ttls.every((ttl) => ttl > 0) && (await store.redis.exists(keys.inbox('long-gone'))) === 0;
  };
  await expect.poll(sweepAndLook, { interval: 1 }).toBe(true);
  // What is under way has no end yet, and a worker that lives keeps what is its.
  expect(await store.redis.pttl(keys.events(running))).toBe(-1);
  expect(await store.redis.exists(keys.inbox('w1'), keys.leases('w1'), keys.worker('w1'))).toBe(3);
});

it('looks at all keys once in an interval, however few pages that takes', async () => {
  const janitor = createJanitor(await openStore());
  // Page by page, through what other tests have there too.
  await expect.poll(() => janitor.sweepLeaksIfDue(0), { interval: 1 }).toBe('not due');
  expect(await janitor.sweepLeaksIfDue(1_000_000_000)).toBe('swept');
});

it('a model whose server does not answer keeps no other waiting', async () => {
  const store = openTestStore();
  for (const model of ['stuck', 'tiny']) {
    await publishModel(store, { id: model } as never);
    await registerWorker(
      store,
      { model, workerId: 'w1', incarnation: 'first' },
      { state: 'ready', capacity: 8, info: {} },
    );
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
