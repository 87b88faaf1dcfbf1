import { openTestStore, testEnvelope } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  admitRequest,
  buryWorkers,
  cancelRequest,
  type Delivery,
  expireRequests,
  exportBullmqMetrics,
  finishRequest,
  giveBackRequest,
  leaseBatch,
  openJobTaker,
  publishModel,
  readStats,
  registerWorker,
  requeueStalled,
  type StoreConnection,
  sweepLeaks,
} from './index.ts';

const startMs = 1_800_000_000_000;
const noRequeues = { worker_lost: 0, engine_failed: 0, worker_stopped: 0 };

async function register(store: StoreConnection, workerId = 'w1', ttlMs = 60_000): Promise<void> {
  const identity = { model: 'tiny', workerId, incarnation: workerId };
  await registerWorker(store, identity, { state: 'ready', capacity: 4, ttlMs, info: {}, nowMs: startMs });
}

async function admit(
  store: StoreConnection,
  {
    atMs = startMs,
    priority = 5,
    owner = '',
    lastsMs = 600_000,
  }: { atMs?: number; priority?: number; owner?: string; lastsMs?: number } = {},
): Promise<string> {
  const deadlines = { deadlineMs: atMs + lastsMs, startDeadlineMs: atMs + lastsMs };
  const envelope = testEnvelope({ createdAtMs: atMs, priority, owner, ...deadlines });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

async function take(store: StoreConnection): Promise<Delivery> {
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  onTestFinished(() => taker.close());
  const [delivery] = await taker.take(1);
  return delivery!;
}

async function lease(store: StoreConnection, atMs: number): Promise<Delivery> {
  const delivery = await take(store);
  const options = { mode: 'shared', maxRows: 4, maxAttempts: 3, nowMs: atMs } as const;
  expect((await leaseBatch(store, 'tiny', [delivery], options)).outcomes).toEqual(['leased']);
  return delivery;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((left, right) => left + right, 0);
}

/** `queued>running` → how many and how long together, ms. */
async function transitions(store: StoreConnection): Promise<Record<string, [count: number, sumMs: number]>> {
  const { tally } = await readStats(store, 'tiny');
  const all = [
    ...tally.states.map(({ state, next, counts, sumMs }) => [`${state}>${next}`, [sum(counts), sumMs]] as const),
    ...tally.ends.map(({ state, counts, sumMs }) => [state, [sum(counts), sumMs]] as const),
  ];
  return Object.fromEntries(all.filter(([, [count]]) => count > 0)) as Record<string, [number, number]>;
}

describe('what became of requests', () => {
  it('a request that succeeds: its time in each state, and in all', async () => {
    const store = openTestStore();
    await register(store);
    await admit(store);
    const delivery = await lease(store, startMs + 300);
    await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' }, startMs + 2300);
    // A worker that lost the reply sends it again.
    await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded' }, startMs + 9000);
    expect(await transitions(store)).toEqual({
      'queued>running': [1, 300],
      'running>succeeded': [1, 2000],
      succeeded: [1, 2300],
    });
    const { tally } = await readStats(store, 'tiny');
    const { boundsMs, counts } = tally.states.find(({ next }) => next === 'running')!;
    expect(counts).toHaveLength(boundsMs.length + 1);
    // 300 ms are above 250 and not above 500.
    expect(counts.indexOf(1)).toBe(boundsMs.indexOf(500));
  });

  it('a duration on a bound belongs below it, one beyond the last to the last bucket', async () => {
    const store = openTestStore();
    await register(store);
    await admit(store);
    await lease(store, startMs + 500);
    await admit(store, { lastsMs: 9_000_000 });
    await lease(store, startMs + 3_600_001);
    const { boundsMs, counts } = (await readStats(store, 'tiny')).tally.states.find(({ next }) => next === 'running')!;
    expect(counts[boundsMs.indexOf(500)]).toBe(1);
    expect(counts.at(-1)).toBe(1);
  });

  it('a clock that is behind makes a time of zero', async () => {
    const store = openTestStore();
    await register(store);
    await admit(store);
    await lease(store, startMs - 1000);
    expect(await transitions(store)).toEqual({ 'queued>running': [1, 0] });
  });

  it('canceled and expired while waiting', async () => {
    const store = openTestStore();
    const canceled = await admit(store);
    await cancelRequest(store, canceled, { nowMs: startMs + 100 });
    await cancelRequest(store, canceled, { nowMs: startMs + 900 });
    await admit(store);
    await expireRequests(store, 'tiny', startMs + 600_000);
    expect(await transitions(store)).toEqual({
      'queued>canceled': [1, 100],
      'queued>expired': [1, 600_000],
      canceled: [1, 100],
      expired: [1, 600_000],
    });
  });

  it('given back by its worker: once stopping, once without its engine; asked again, counted once', async () => {
    const store = openTestStore();
    await register(store);
    await admit(store);
    const first = await lease(store, startMs + 100);
    await giveBackRequest(store, 'tiny', 'w1', first, 'stops', startMs + 300);
    const second = await lease(store, startMs + 1300);
    await giveBackRequest(store, 'tiny', 'w1', second, 'failed', startMs + 1400);
    await giveBackRequest(store, 'tiny', 'w1', second, 'failed', startMs + 1500);
    expect(await transitions(store)).toEqual({ 'queued>running': [2, 1100], 'running>queued': [2, 300] });
    const { tally } = await readStats(store, 'tiny');
    expect(tally.requeues).toEqual({ ...noRequeues, worker_stopped: 1, engine_failed: 1 });
  });

  it('recovered from a worker that died, by a janitor or by whoever was faster', async () => {
    const store = openTestStore();
    await register(store);
    const id = await admit(store);
    await lease(store, startMs);
    await store.redis.del(store.keysOf('tiny').lock(id));
    const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
    onTestFinished(() => taker.close());
    await expect.poll(() => taker.recoverStalled(), { interval: 2 }).toEqual([id]);
    // A former takes the job before the janitor has said that the request is queued again.
    await lease(store, startMs + 700);
    expect(await requeueStalled(store, 'tiny', id, startMs + 800)).toBe('held');
    expect(await transitions(store)).toEqual({ 'queued>running': [2, 0], 'running>queued': [1, 700] });
    await store.redis.del(store.keysOf('tiny').lock(id));
    await expect.poll(() => taker.recoverStalled(), { interval: 2 }).toEqual([id]);
    expect(await requeueStalled(store, 'tiny', id, startMs + 1000)).toBe('requeued');
    expect((await readStats(store, 'tiny')).tally.requeues).toEqual({ ...noRequeues, worker_lost: 2 });
  });

  it('workers that were buried', async () => {
    const store = openTestStore();
    await register(store);
    await store.redis.del(store.keysOf('tiny').alive('w1'));
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 0, silent: 1 }, tally: { buried: 0 } });
    await buryWorkers(store, 'tiny', { pauseMs: 60_000, forgiveMs: 0 });
    await buryWorkers(store, 'tiny', { pauseMs: 60_000, forgiveMs: 0 });
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 0, silent: 0 }, tally: { buried: 1 } });
  });
});

describe('how things stand', () => {
  it('of a model that nothing is known of: zeros, also of what may come', async () => {
    const { tally, ...rest } = await readStats(openTestStore(), 'tiny');
    expect(tally.states.map(({ state, next }) => `${state}>${next}`)).toEqual([
      'queued>running',
      'queued>canceled',
      'queued>expired',
      'queued>failed',
      'running>queued',
      'running>succeeded',
      'running>failed',
      'running>canceled',
      'running>expired',
    ]);
    expect(tally.ends.map(({ state }) => state)).toEqual(['succeeded', 'failed', 'canceled', 'expired']);
    for (const { counts, sumMs } of [...tally.states, ...tally.ends]) expect([...counts, sumMs]).not.toContain(1);
    expect(tally).toMatchObject({ requeues: noRequeues, buried: 0 });
    expect(rest).toEqual({
      model: 'tiny',
      workers: { loading: 0, idle: 0, busy: 0, draining: 0, silent: 0 },
      rows: 0,
      freeRows: 0,
      queued: 0,
      running: 0,
      waitingOwners: 0,
      oldestQueuedAtMs: undefined,
      outbox: 0,
      isPaused: false,
    });
  });

  it('workers, rows, what waits and what runs', async () => {
    const store = openTestStore();
    await register(store, 'w1');
    await register(store, 'w2');
    await admit(store);
    await lease(store, startMs);
    await admit(store, { owner: 'alice' });
    await admit(store, { owner: 'bob' });
    expect(await readStats(store, 'tiny')).toMatchObject({
      workers: { idle: 1, busy: 1 },
      rows: 8,
      freeRows: 7,
      queued: 2,
      running: 1,
      waitingOwners: 2,
    });
  });

  it('the oldest waiting request, whatever its owner, priority and place in the queue', async () => {
    const store = openTestStore();
    const oldest = async (): Promise<number | undefined> => (await readStats(store, 'tiny')).oldestQueuedAtMs;
    await admit(store, { atMs: startMs + 400, priority: 1 });
    expect(await oldest()).toBe(startMs + 400);
    const last = await admit(store, { atMs: startMs + 300, priority: 10 });
    await admit(store, { atMs: startMs + 350, priority: 10 });
    expect(await oldest()).toBe(startMs + 300);
    const other = await admit(store, { atMs: startMs + 200, priority: 5, owner: 'bob' });
    expect(await oldest()).toBe(startMs + 200);
    await cancelRequest(store, other);
    await cancelRequest(store, last);
    expect(await oldest()).toBe(startMs + 350);
  });

  it('the oldest waiting request when it is in no line any more: one that was running before', async () => {
    const store = openTestStore();
    await register(store);
    await admit(store);
    const delivery = await lease(store, startMs + 10);
    await admit(store, { atMs: startMs + 50 });
    await giveBackRequest(store, 'tiny', 'w1', delivery, 'stops', startMs + 100);
    expect((await readStats(store, 'tiny')).oldestQueuedAtMs).toBe(startMs);
  });
});

it('a sweep says what keys of each kind take', async () => {
  const store = openTestStore();
  const ids = await Promise.all(Array.from({ length: 30 }, () => admit(store)));
  const { sizes } = await sweepLeaks(store, 'tiny');
  const bytes = await Promise.all(ids.map((id) => store.redis.memory('USAGE', store.keysOf('tiny').request(id))));
  const sum = bytes.reduce<number>((total, size) => total + (size ?? 0), 0);
  expect(sizes.get('request')?.keys).toBe(30);
  // 20 of them are asked; they differ by a few bytes.
  expect(sizes.get('request')!.bytes / sum).toBeCloseTo(1, 1);
  expect(sizes.get('queued')?.keys).toBe(1);
});

it("BullMQ's own metrics: one page, each family once, with what it has finished", async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  await publishModel(store, { id: 'small' } as never);
  await register(store);
  await admit(store);
  await finishRequest(store, 'tiny', 'w1', await lease(store, startMs), { state: 'succeeded' });
  await admit(store);
  const page = await exportBullmqMetrics(store, { app: 'janitor' });
  const lines = page.split('\n');
  expect(lines.filter((line) => line.startsWith('# TYPE'))).toEqual([
    '# TYPE bullmq_job_count gauge',
    '# TYPE bullmq_job_completed_total counter',
    '# TYPE bullmq_job_failed_total counter',
  ]);
  expect(lines).toContain('bullmq_job_count{queue="queue", state="prioritized", app="janitor", model="tiny"} 1');
  expect(lines).toContain('bullmq_job_count{queue="queue", state="prioritized", app="janitor", model="small"} 0');
  expect(lines).toContain('bullmq_job_completed_total{queue="queue", app="janitor", model="tiny"} 1');
  expect(page).toContain('model="_webhooks"');
});
