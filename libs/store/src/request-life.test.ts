/** A request's way through the store: one transition per test, seeded by the ones before it. */
import type { RequestEnvelope } from '@darkroom/core';
import { allKeys, openTestStore, startPrivateRedis, testEnvelope } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  admitRequest,
  appendProgress,
  buryWorkers,
  cancelRequest,
  connectStore,
  type Delivery,
  expireRequests,
  finishRequest,
  giveBackRequest,
  leaseBatch,
  openInbox,
  openJobTaker,
  readEvents,
  readOutput,
  readPool,
  readRequest,
  registerWorker,
  releaseRows,
  requeueStalled,
  type StoreConnection,
  writeCheckpoint,
  writeOutput,
} from './index.ts';

const admission = { queueMaxLength: 100, unserved: 'accept' } as const;
const lease = { mode: 'shared', maxRows: 8, maxAttempts: 3 } as const;
const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
const announcement = { state: 'ready', capacity: 8, ttlMs: 60_000, info: { device: 'cpu' } } as const;

async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<RequestEnvelope> {
  const envelope = testEnvelope(overrides);
  expect(await admitRequest(store, envelope, admission)).toMatchObject({ status: 'admitted' });
  return envelope;
}

async function take(store: StoreConnection, count: number): Promise<Delivery[]> {
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  const jobs = await taker.take(count);
  await taker.close();
  return jobs;
}

/** Seeds a request that a worker runs. */
async function run(
  store: StoreConnection,
  overrides: Partial<RequestEnvelope> = {},
): Promise<{ id: string; delivery: Delivery }> {
  await registerWorker(store, identity, announcement);
  const { id } = await submit(store, overrides);
  const [delivery] = await take(store, 1);
  expect(await leaseBatch(store, 'tiny', [delivery!], lease)).toEqual({ workerId: 'w1', outcomes: ['leased'] });
  return { id, delivery: delivery! };
}

async function stateOf(store: StoreConnection, id: string): Promise<string> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.state : result.status;
}

async function eventTypes(store: StoreConnection, id: string): Promise<string[]> {
  return (await readEvents(store, id, { after: 0 })).map(({ type }) => type);
}

describe('admitting', () => {
  it('queues a request with its event, position and TTLs', async () => {
    const store = openTestStore();
    const first = testEnvelope();
    const result = await admitRequest(store, first, admission);
    expect(result).toEqual({ status: 'admitted', position: 0, isPossible: false, costAhead: 0 });
    expect(await stateOf(store, first.id)).toBe('queued');
    expect(await readEvents(store, first.id, { after: 0 })).toEqual([
      { sequence: 1, type: 'queued', position: 0, attempt: 1, timestampMs: first.createdAtMs },
    ]);
    const keys = store.keysOf('tiny');
    for (const key of [keys.request(first.id), keys.events(first.id), keys.gone(first.id)])
      expect(await store.redis.pttl(key)).toBeGreaterThan(600_000);
  });

  it('reports positions in dispatch order: priority first, then arrival', async () => {
    const store = openTestStore();
    const late = await submit(store, { priority: 9 });
    const normal = await submit(store, { priority: 5 });
    const urgent = await submit(store, { priority: 1 });
    const second = await submit(store, { priority: 5 });
    const order = [urgent, normal, second, late];
    for (const [position, { id }] of order.entries())
      expect(await readRequest(store, id)).toMatchObject({ request: { queuePosition: position } });
    expect((await take(store, 4)).map(({ id }) => id)).toEqual(order.map(({ id }) => id));
  });

  it('refuses past the limit and without a worker, and stores nothing', async () => {
    const store = openTestStore();
    const refuse = { queueMaxLength: 100, unserved: 'refuse' } as const;
    expect(await admitRequest(store, testEnvelope(), refuse)).toEqual({ status: 'unserved' });
    expect(await admitRequest(store, testEnvelope(), { ...admission, queueMaxLength: 0 })).toEqual({
      status: 'overloaded',
      waiting: 0,
    });
    expect(await allKeys(store)).toEqual([]);
    await registerWorker(store, identity, announcement);
    expect(await admitRequest(store, testEnvelope(), refuse)).toMatchObject({ status: 'admitted', isPossible: true });
  });

  it('never takes more than the limit under concurrent submits', async () => {
    const store = openTestStore();
    const results = await Promise.all(
      Array.from({ length: 40 }, () => admitRequest(store, testEnvelope(), { ...admission, queueMaxLength: 7 })),
    );
    expect(results.filter(({ status }) => status === 'admitted')).toHaveLength(7);
  });
});

describe('leasing', () => {
  it('writes the batch to the inbox of an idle worker and makes it busy', async () => {
    const store = openTestStore();
    await registerWorker(store, identity, announcement);
    const one = await submit(store);
    const two = await submit(store, { slots: 3 });
    const deliveries = await take(store, 2);
    expect((await leaseBatch(store, 'tiny', deliveries, lease)).outcomes).toEqual(['leased', 'leased']);
    expect(await readPool(store, 'tiny')).toEqual({
      model: 'tiny',
      loading: 0,
      idle: 0,
      busy: 1,
      freeRows: 4,
      queued: 0,
      takeable: 0,
      nextRows: [],
      isPaused: false,
    });
    const message = await openInboxOnce(store);
    expect(message).toEqual({
      type: 'run',
      requests: [
        { token: deliveries[0]!.token, attempt: 1, slots: 1, isResumed: false, envelope: one },
        { token: deliveries[1]!.token, attempt: 1, slots: 3, isResumed: false, envelope: two },
      ],
    });
    expect(await eventTypes(store, one.id)).toEqual(['queued', 'started']);
  });

  it('prefers idle workers, then the busy one with most free rows, and skips dead ones', async () => {
    const store = openTestStore();
    await registerWorker(store, { ...identity, workerId: 'dead' }, { ...announcement, nowMs: 1 });
    await store.redis.del(store.keysOf('tiny').alive('dead'));
    await registerWorker(store, { ...identity, workerId: 'a' }, { ...announcement, nowMs: 2 });
    await registerWorker(store, { ...identity, workerId: 'b' }, { ...announcement, capacity: 6, nowMs: 3 });
    const chosen: (string | undefined)[] = [];
    for (const slots of [5, 1, 1]) {
      await submit(store, { slots });
      chosen.push((await leaseBatch(store, 'tiny', await take(store, 1), lease)).workerId);
    }
    expect(chosen).toEqual(['a', 'b', 'b']);
  });

  it('leaves what does not fit waiting, and leases it when rows are released', async () => {
    const store = openTestStore();
    const { delivery } = await run(store, { slots: 8 });
    await submit(store);
    const next = await take(store, 1);
    expect(await leaseBatch(store, 'tiny', next, lease)).toEqual({ workerId: undefined, outcomes: ['waiting'] });
    await releaseRows(store, 'tiny', 'w1', delivery, 1);
    expect(await leaseBatch(store, 'tiny', next, lease)).toEqual({ workerId: 'w1', outcomes: ['leased'] });
  });

  it('exclusive: only an idle worker, and nobody joins it', async () => {
    const store = openTestStore();
    await run(store);
    await submit(store);
    const [alone] = await take(store, 1);
    expect((await leaseBatch(store, 'tiny', [alone!], { ...lease, mode: 'exclusive' })).outcomes).toEqual(['waiting']);
    await registerWorker(store, { ...identity, workerId: 'w2' }, announcement);
    expect(await leaseBatch(store, 'tiny', [alone!], { ...lease, mode: 'exclusive' })).toEqual({
      workerId: 'w2',
      outcomes: ['leased'],
    });
    expect((await readPool(store, 'tiny')).freeRows).toBe(7);
  });

  it('empties a busy worker for a request that must run alone', async () => {
    const store = openTestStore();
    const { delivery } = await run(store);
    await submit(store);
    await submit(store);
    const [alone, other] = await take(store, 2);
    const exclusive = { ...lease, mode: 'exclusive' } as const;
    expect((await leaseBatch(store, 'tiny', [alone!], exclusive)).outcomes).toEqual(['waiting']);
    expect((await leaseBatch(store, 'tiny', [other!], lease)).outcomes).toEqual(['waiting']);
    expect((await readPool(store, 'tiny')).freeRows).toBe(0);
    await finishRequest(store, 'tiny', 'w1', delivery, { state: 'canceled' });
    expect((await leaseBatch(store, 'tiny', [other!], lease)).outcomes).toEqual(['waiting']);
    expect((await leaseBatch(store, 'tiny', [alone!], exclusive)).outcomes).toEqual(['leased']);
    await finishRequest(store, 'tiny', 'w1', alone!, { state: 'canceled' });
    expect((await leaseBatch(store, 'tiny', [other!], lease)).outcomes).toEqual(['leased']);
  });

  it('ends what is canceled, overdue or out of attempts instead of leasing it, and refuses a lost lock', async () => {
    const store = openTestStore();
    await registerWorker(store, identity, announcement);
    const overdue = await submit(store, { startDeadlineMs: Date.now() + 5 });
    const canceled = await submit(store);
    const tried = await submit(store);
    const stolen = await submit(store);
    const deliveries = await take(store, 4);
    await cancelRequest(store, canceled.id);
    await store.redis.hset(store.keysOf('tiny').request(tried.id), 'attempts', 3);
    await store.redis.set(store.keysOf('tiny').lock(stolen.id), 'somebody else');
    const { outcomes, workerId } = await leaseBatch(store, 'tiny', deliveries, { ...lease, nowMs: Date.now() + 10 });
    expect({ outcomes, workerId }).toEqual({ workerId: undefined, outcomes: ['ended', 'ended', 'exhausted', 'lost'] });
    expect(await stateOf(store, overdue.id)).toBe('expired');
    expect(await readRequest(store, tried.id)).toMatchObject({
      request: { state: 'failed', error: { code: 'worker_lost' } },
    });
    expect(await stateOf(store, stolen.id)).toBe('queued');
  });
});

describe('running', () => {
  it('writes progress and outputs under the fence', async () => {
    const store = openTestStore();
    const { id, delivery } = await run(store);
    const progress = { index: 0, done: 1, total: 4, requestDone: 1, requestTotal: 4, timestampMs: 5 };
    const preview = { data: Buffer.from([0, 10, 255, 10]), contentType: 'image/webp' };
    expect(await appendProgress(store, 'tiny', delivery, { ...progress, preview })).toBe('written');
    const data = Buffer.from(Array.from({ length: 100 }, (_value, index) => index));
    const output = { index: 0, contentType: 'image/png', data, facts: { seed: 7 }, chunkBytes: 35, timestampMs: 6 };
    expect(await writeOutput(store, 'tiny', delivery, output)).toBe('written');
    const info = { index: 0, contentType: 'image/png', bytes: 100, chunks: 4, seed: 7 };
    expect(await readOutput(store, id, 0)).toEqual({ info, data });
    expect(await readRequest(store, id)).toMatchObject({ request: { done: 1, total: 4, outputs: [info] } });
    const events = await readEvents(store, id, { after: 2 });
    expect(events[0]).toEqual({
      sequence: 3,
      type: 'preview',
      timestampMs: 5,
      index: 0,
      done: 1,
      total: 4,
      ...preview,
    });
    expect(events.slice(1)).toEqual(
      [0, 1, 2, 3].map((chunkIndex) => ({
        sequence: 4 + chunkIndex,
        type: 'output',
        timestampMs: 6,
        output: info,
        chunkIndex,
      })),
    );
  });

  it('refuses every write of a delivery whose lock is lost', async () => {
    const store = openTestStore();
    const { id, delivery } = await run(store);
    const zombie = { id, token: 'stale' };
    const before = await eventTypes(store, id);
    const progress = { index: 0, done: 1, total: 4, requestDone: 1, requestTotal: 4, timestampMs: 5 };
    expect(await appendProgress(store, 'tiny', zombie, progress)).toBe('lost');
    expect(await writeCheckpoint(store, 'tiny', zombie, 0, Buffer.from('x'))).toBe('lost');
    expect(await finishRequest(store, 'tiny', 'w1', zombie, { state: 'succeeded' })).toBe('lost');
    expect(await eventTypes(store, id)).toEqual(before);
    expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' })).toBe('finished');
  });

  it('finishes once: the job leaves the queue, the rows come back, everything gets its TTL', async () => {
    const store = openTestStore({ resultTtlMs: 50_000, goneTtlMs: 10_000 });
    const { id, delivery } = await run(store);
    await writeCheckpoint(store, 'tiny', delivery, 0, Buffer.from('state'));
    expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' })).toBe('finished');
    expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' })).toBe('lost');
    expect(await eventTypes(store, id)).toEqual(['queued', 'started', 'succeeded']);
    expect(await store.redis.zcard(store.keysOf('tiny').deadlines)).toBe(0);
    expect(await readPool(store, 'tiny')).toMatchObject({ idle: 1, busy: 0, freeRows: 8 });
    const keys = store.keysOf('tiny');
    expect(await store.queueOf('tiny').getJobCounts()).toMatchObject({
      active: 0,
      prioritized: 0,
      completed: 0,
      failed: 0,
    });
    expect(await store.redis.exists(keys.checkpoint(id, 0), keys.lock(id), keys.job(id))).toBe(0);
    expect(await store.redis.pttl(keys.request(id))).toBeLessThanOrEqual(50_000);
    await store.redis.del(keys.request(id));
    expect(await readRequest(store, id)).toEqual({ status: 'gone' });
    await store.redis.del(keys.gone(id));
    expect(await readRequest(store, id)).toEqual({ status: 'unknown' });
  });

  it('keeps failed requests where operators find them', async () => {
    const store = openTestStore();
    const { id, delivery } = await run(store);
    const error = { code: 'engine_failed', message: 'The model could not make this picture.' };
    expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'failed', error })).toBe('finished');
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'failed', error } });
    const [dead] = await store.queueOf('tiny').getFailed();
    expect(dead).toMatchObject({ id, failedReason: error.message });
  });
});

describe('canceling and expiring', () => {
  it('cancels what waits at once, and takes its job away', async () => {
    const store = openTestStore();
    const { id } = await submit(store);
    expect(await cancelRequest(store, id)).toEqual({ status: 'canceled' });
    expect(await cancelRequest(store, id)).toEqual({ status: 'ended', state: 'canceled' });
    expect(await take(store, 1)).toEqual([]);
    expect(await eventTypes(store, id)).toEqual(['queued', 'canceled']);
  });

  it('asks the worker to drop what runs, and tells its next write', async () => {
    const store = openTestStore();
    const { id, delivery } = await run(store);
    await openInboxOnce(store);
    expect(await cancelRequest(store, id)).toEqual({ status: 'canceling' });
    expect(await cancelRequest(store, id)).toEqual({ status: 'canceling' });
    expect(await openInboxOnce(store)).toEqual({ type: 'cancel', id });
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'running', isCanceling: true } });
    const progress = { index: 0, done: 1, total: 4, requestDone: 1, requestTotal: 4, timestampMs: 5 };
    expect(await appendProgress(store, 'tiny', delivery, progress)).toBe('canceling');
    expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'canceled' })).toBe('finished');
    expect(await stateOf(store, id)).toBe('canceled');
  });

  it('knows nothing of ids that never were', async () => {
    const store = openTestStore();
    expect(await cancelRequest(store, testEnvelope().id)).toEqual({ status: 'unknown' });
    expect(await cancelRequest(store, 'nonsense')).toEqual({ status: 'unknown' });
  });

  it('expires by the start deadline only what has not started, by the deadline everything', async () => {
    const store = openTestStore();
    const now = Date.now();
    const { id: running, delivery } = await run(store, {
      createdAtMs: now,
      startDeadlineMs: now + 60_000,
      deadlineMs: now + 90_000,
    });
    const { id: waiting } = await submit(store, {
      createdAtMs: now,
      startDeadlineMs: now + 60_000,
      deadlineMs: now + 90_000,
    });
    expect(await expireRequests(store, 'tiny', now + 59_999)).toEqual([]);
    expect(await expireRequests(store, 'tiny', now + 60_000)).toEqual([waiting]);
    // Leased between the janitor's look and its script: it has started in time.
    await store.redis.zadd(store.keysOf('tiny').deadlines, 0, running);
    expect(await expireRequests(store, 'tiny', now + 60_000)).toEqual([]);
    expect(await stateOf(store, running)).toBe('running');
    expect(await expireRequests(store, 'tiny', now + 90_000)).toEqual([running]);
    expect(await expireRequests(store, 'tiny', now + 99_000)).toEqual([]);
    expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' })).toBe('ended');
    expect(await eventTypes(store, running)).toEqual(['queued', 'started', 'expired']);
    expect(await readPool(store, 'tiny')).toMatchObject({ idle: 1, freeRows: 8 });
  });
});

describe('losing a worker', () => {
  const patience = { pauseMs: 60_000, forgiveMs: 0 };

  it('buries it, and the next stalled check puts its requests first in line again', async () => {
    const store = openTestStore();
    const { id, delivery } = await run(store);
    const { id: other } = await submit(store);
    const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
    await taker.recoverStalled();
    expect(await buryWorkers(store, 'tiny', patience)).toEqual({ status: 'buried', workers: [] });
    await store.redis.del(store.keysOf('tiny').alive('w1'));
    expect(await buryWorkers(store, 'tiny', patience)).toEqual({
      status: 'buried',
      workers: [{ workerId: 'w1', requests: 1 }],
    });
    await expect.poll(() => taker.recoverStalled(), { interval: 2 }).toEqual([id]);
    expect(await requeueStalled(store, 'tiny', id, Date.now())).toBe('requeued');
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', queuePosition: 0, attempts: 1 } });
    expect(await readRequest(store, other)).toMatchObject({ request: { queuePosition: 1 } });
    expect((await taker.take(2)).map((job) => job.id)).toEqual([id, other]);
    expect(await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' })).toBe('lost');
    expect(await eventTypes(store, id)).toEqual(['queued', 'started', 'queued']);
    await taker.close();
  });

  it('does not requeue what somebody has leased again already', async () => {
    const store = openTestStore();
    const { id } = await run(store);
    expect(await requeueStalled(store, 'tiny', id, Date.now())).toBe('held');
  });

  it('a canceled request is not run again', async () => {
    const store = openTestStore();
    const { id, delivery } = await run(store);
    await cancelRequest(store, id);
    await store.redis.del(store.keysOf('tiny').lock(id));
    expect(await requeueStalled(store, 'tiny', id, Date.now())).toBe('canceled');
    expect(await stateOf(store, id)).toBe('canceled');
    expect(delivery.id).toBe(id);
  });

  it('a worker gives back what it has, without counting an attempt', async () => {
    const store = openTestStore();
    const { id, delivery } = await run(store);
    const { id: other } = await submit(store);
    expect(await giveBackRequest(store, 'tiny', 'w1', delivery, 'stops')).toBe('requeued');
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'queued', queuePosition: 0, attempts: 0 } });
    expect((await take(store, 2)).map((job) => job.id)).toEqual([id, other]);
    expect(await readPool(store, 'tiny')).toMatchObject({ idle: 1, freeRows: 8 });
  });

  it('the next life of a worker id buries the one before', async () => {
    const store = openTestStore();
    const { id } = await run(store);
    await registerWorker(store, { ...identity, incarnation: 'second' }, { ...announcement, state: 'loading' });
    expect(await store.redis.exists(store.keysOf('tiny').lock(id))).toBe(0);
    expect(await readPool(store, 'tiny')).toMatchObject({ loading: 1, idle: 0, busy: 0 });
  });
});

it('scripts survive a Redis that has forgotten them', async () => {
  // One of its own: on the one that is shared, others count their round trips.
  const redis = await startPrivateRedis();
  const store = connectStore({ url: redis.url });
  onTestFinished(async () => {
    await store.close();
    await redis.stop();
  });
  await submit(store);
  await store.redis.script('FLUSH');
  await submit(store);
  expect((await readPool(store, 'tiny')).queued).toBe(2);
});

async function openInboxOnce(store: StoreConnection): Promise<unknown> {
  const inbox = openInbox(store, identity);
  const message = await inbox.next(1);
  inbox.close();
  return message;
}
