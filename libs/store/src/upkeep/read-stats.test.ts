import {
  backdateRequest,
  dispatchNext,
  openTestStore,
  seedRequest,
  seedRunning,
  seedWorker,
  testEnvelope,
  writeNow,
} from '@darkroom/testing';
import { describe, expect, it, vi } from 'vitest';
import {
  cancelRequest,
  countEnded,
  enqueueWebhooks,
  expireRequests,
  exportBullmqMetrics,
  LeakSweeper,
  readStats,
  readCounters,
  type StoreConnection,
  type QueueCounters,
} from '../index.ts';

const noRequeues = { worker_lost: 0, engine_failed: 0, worker_stopped: 0 };
const worker = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };

function numbersOf({
  counts,
  sum,
}: Pick<QueueCounters['ends'][number], 'counts' | 'sum'>): [count: number, tenths: number] {
  return [counts.reduce((left, right) => left + right, 0), Math.floor(Math.round(sum * 1000) / 100)];
}

/** Maps transitions, such as `queued>running`, to their count and total duration in tenths of a second. */
async function transitions(store: StoreConnection): Promise<Record<string, [count: number, tenths: number]>> {
  const { states, ends } = await readCounters(store, 'tiny');
  const all = [
    ...states.map(({ state, next, ...durations }) => [`${state}>${next}`, numbersOf(durations)] as const),
    ...ends.map(({ state, ...durations }) => [state, numbersOf(durations)] as const),
  ];
  return Object.fromEntries(all.filter(([, [count]]) => count > 0)) as Record<string, [number, number]>;
}

describe('counters of requests', () => {
  it('record the time a successful request spent in each state, and its total', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const envelope = await seedRequest(store, { timeoutMs: 90_000_000, startTimeoutMs: 90_000_000 });
    await backdateRequest(store, envelope, 30_000_000);
    const [delivery] = await dispatchNext(store);
    await backdateRequest(store, envelope, 20_000_000);
    const end = { type: 'end', delivery: delivery!, end: { state: 'succeeded', outputs: 0 } } as const;
    await writeNow(store, worker, end);
    await writeNow(store, worker, end);
    const recorded = await transitions(store);
    expect(Object.keys(recorded)).toEqual(['queued>running', 'running>succeeded', 'succeeded']);
    for (const [name, tenths] of [
      ['queued>running', 300_000],
      ['running>succeeded', 200_000],
      ['succeeded', 500_000],
    ] as const) {
      expect(recorded[name]![0]).toBe(1);
      expect(recorded[name]![1]).toBeGreaterThanOrEqual(tenths);
    }
    const { bounds, counts } = (await readCounters(store, 'tiny')).ends[0]!;
    expect(counts).toHaveLength(bounds.length + 1);
    // The bucket beyond the last bound.
    expect(counts.at(-1)).toBe(1);
    const ended = { succeeded: 1, failed: 0, canceled: 0, expired: 0 };
    expect(await countEnded(store, 'tiny', { minutes: 5, nowMs: Date.now() })).toEqual(ended);
  });

  it('record a duration of zero if the clock was set back', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await backdateRequest(store, await seedRequest(store), -3_600_000);
    await dispatchNext(store);
    expect(await transitions(store)).toEqual({ 'queued>running': [1, 0] });
  });

  it('count requests that were canceled or expired while queued', async () => {
    const store = openTestStore();
    const canceled = await seedRequest(store);
    await cancelRequest(store, canceled.id);
    await cancelRequest(store, canceled.id);
    await backdateRequest(store, await seedRequest(store), 600_000);
    await expireRequests(store, 'tiny');
    expect(await transitions(store)).toMatchObject({
      'queued>canceled': [1, expect.any(Number)],
      'queued>expired': [1, expect.any(Number)],
    });
  });

  it('count requeues by reason, once per requeue even if the write is resent', async () => {
    const store = openTestStore();
    const { delivery: first } = await seedRunning(store);
    await writeNow(store, worker, { type: 'give-back', delivery: first, reason: 'worker_stopped' });
    const [second] = await dispatchNext(store);
    await writeNow(store, worker, { type: 'give-back', delivery: second!, reason: 'engine_failed' });
    await writeNow(store, worker, { type: 'give-back', delivery: second!, reason: 'engine_failed' });
    const { requeues } = await readCounters(store, 'tiny');
    expect(requeues).toEqual({ ...noRequeues, worker_stopped: 1, engine_failed: 1 });
    expect(await transitions(store)).toMatchObject({
      'queued>running': [2, expect.any(Number)],
      'running>queued': [2, expect.any(Number)],
    });
  });
});

describe('stats of a model', () => {
  it('are zeros for an unknown model, for all possible transitions', async () => {
    const store = openTestStore();
    const { states, ends, requeues, reaped } = await readCounters(store, 'tiny');
    expect(states.map(({ state, next }) => `${state}>${next}`)).toEqual([
      'queued>running',
      'queued>canceled',
      'queued>expired',
      'running>queued',
      'running>succeeded',
      'running>failed',
      'running>canceled',
      'running>expired',
    ]);
    expect(ends.map(({ state }) => state)).toEqual(['succeeded', 'failed', 'canceled', 'expired']);
    for (const { counts, sum } of [...states, ...ends]) expect([...counts, sum]).not.toContain(1);
    expect({ requeues, reaped }).toEqual({ requeues: noRequeues, reaped: 0 });
    expect(await readStats(store, 'tiny')).toEqual({
      model: 'tiny',
      workers: { loading: 0, idle: 0, busy: 0, asleep: 0, draining: 0, silent: 0 },
      loadMs: undefined,
      slots: 0,
      freeSlots: 0,
      pace: undefined,
      queued: 0,
      running: 0,
      waitingOwners: 0,
      oldestQueuedAtMs: undefined,
      outbox: 0,
      isPaused: false,
      shards: 1,
      waitingShards: 0,
    });
  });

  it('report workers, slots, queued and running requests', async () => {
    const store = openTestStore();
    await seedRunning(store);
    await seedWorker(store, { workerId: 'w2', capacity: 4 });
    await seedRequest(store, { owner: 'alice' });
    await seedRequest(store, { owner: 'bob' });
    expect(await readStats(store, 'tiny')).toMatchObject({
      workers: { idle: 1, busy: 1 },
      slots: 12,
      freeSlots: 11,
      queued: 2,
      running: 1,
      waitingOwners: 2,
    });
  });

  it('report the oldest queued request for any owner, priority and position, also a requeued one', async () => {
    const store = openTestStore();
    const ran = testEnvelope();
    const { delivery } = await seedRunning(store, ran);
    const young = await seedRequest(store, { priority: 1 });
    const old = await seedRequest(store, { priority: 10, owner: 'bob' });
    await backdateRequest(store, old, 60_000);
    await backdateRequest(store, ran, 90_000);
    const oldest = async () => (await readStats(store, 'tiny')).oldestQueuedAtMs;
    const createdAt = async (id: string) =>
      Number(await store.redis.hget(store.keysOf('tiny').request(id), 'createdAtMs'));
    expect(await oldest()).toBe(await createdAt(old.id));
    await writeNow(store, worker, { type: 'give-back', delivery, reason: 'worker_stopped' });
    expect(await oldest()).toBe(await createdAt(ran.id));
    await cancelRequest(store, ran.id);
    await cancelRequest(store, old.id);
    expect(await oldest()).toBe(await createdAt(young.id));
  });
});

interface Command {
  name: string;
  args: unknown[];
}

async function pass(sweeper: LeakSweeper) {
  const repaired: string[] = [];
  const deleted: string[] = [];
  for (let page = 1; ; page++) {
    const found = await sweeper.sweepPage();
    repaired.push(...found.repaired);
    deleted.push(...found.deleted);
    if (found.sizes !== undefined) return { repaired, deleted, sizes: found.sizes, pages: page };
  }
}

describe('a sweep for leaks', () => {
  it('sets a TTL on keys of ended or missing requests, and deletes keys of missing workers', async () => {
    const store = openTestStore();
    const { delivery } = await seedRunning(store);
    const ended = await seedRequest(store);
    await cancelRequest(store, ended.id);
    const keys = store.keysOf('tiny');
    const lost = testEnvelope().id;
    const leaks = [keys.events(ended.id), keys.input(lost), keys.output(lost, 0), keys.checkpoint(lost, 1)];
    await store.redis.persist(leaks[0]!);
    for (const key of leaks.slice(1)) await store.redis.set(key, 'x');
    await store.redis.set(keys.leases('missing'), 'x');
    const found = await pass(new LeakSweeper(store));
    expect(found.repaired.toSorted()).toEqual(leaks.toSorted());
    expect(found.deleted).toEqual([keys.leases('missing')]);
    for (const key of leaks) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
    expect(await store.redis.pttl(keys.input(delivery.id))).toBe(-1);
    expect(await pass(new LeakSweeper(store))).toMatchObject({ repaired: [], deleted: [] });
  });

  it.each(['a worker that registers again', 'a request that ends'])(
    'leaves the keys of %s during the sweep',
    async (title) => {
      const store = openTestStore();
      const other = openTestStore({ prefix: store.prefix });
      const keys = store.keysOf('tiny');
      const { id } = await seedRequest(store);
      await store.redis.hset(keys.leases('w1'), 'x', 'y');
      const subject = title.startsWith('a worker') ? 'w1' : keys.input(id).slice(keys.input('').length);
      const redis = store.redis as unknown as { sendCommand: (command: Command) => Promise<unknown> };
      const send = redis.sendCommand.bind(redis);
      let commands = 0;
      // Runs between the first command about it and the next.
      const sendSpy = vi.spyOn(redis, 'sendCommand').mockImplementation(async (command) => {
        if (command.name !== 'memory' && command.args.join(' ').includes(subject) && ++commands === 2)
          await (subject === 'w1' ? seedWorker(other) : cancelRequest(other, id));
        return send(command);
      });
      const { repaired } = await pass(new LeakSweeper(store));
      sendSpy.mockRestore();
      expect(commands).toBeGreaterThan(0);
      expect(await other.redis.exists(keys.leases('w1'))).toBe(await other.redis.exists(keys.worker('w1')));
      expect(repaired).toEqual([]);
    },
  );

  it('takes two round trips per page of five hundred keys, and one more at the end of a pass', async () => {
    const store = openTestStore();
    const keys = store.keysOf('tiny');
    for (let lost = 0; lost < 20; lost++) {
      await store.redis.set(keys.input(testEnvelope().id), 'x');
      await store.redis.set(keys.leases(`w${lost}`), 'x');
    }
    const scan = vi.spyOn(store.redis, 'scan');
    const redis = store.redis as unknown as { sendCommand: (...command: unknown[]) => Promise<unknown> };
    const send = redis.sendCommand.bind(redis);
    let [trips, underWay] = [0, 0];
    vi.spyOn(redis, 'sendCommand').mockImplementation((...command) => {
      if (underWay === 0) trips += 1;
      underWay += 1;
      return send(...command).finally(() => (underWay -= 1));
    });
    const sweeper = new LeakSweeper(store);
    for (let sizes; sizes === undefined; trips = 0) {
      ({ sizes } = await sweeper.sweepPage());
      expect(trips).toBeLessThanOrEqual(sizes === undefined ? 2 : 3);
    }
    for (const call of scan.mock.calls) expect(call.slice(3)).toEqual(['COUNT', 500]);
  });

  it('scans one page per call, and estimates the memory of each kind of key', async () => {
    const store = openTestStore();
    const ids = [];
    for (let index = 0; index < 30; index++) ids.push((await seedRequest(store)).id);
    const { sizes, pages } = await pass(new LeakSweeper(store, { pageSize: 10 }));
    expect(pages).toBeGreaterThan(3);
    const bytes = await Promise.all(ids.map((id) => store.redis.memory('USAGE', store.keysOf('tiny').request(id))));
    const actual = bytes.reduce<number>((total, size) => total + (size ?? 0), 0);
    const { keys, bytes: estimated } = sizes.find(({ model, kind }) => model === 'tiny' && kind === 'request')!;
    // SCAN may return a key twice.
    expect(keys).toBeGreaterThanOrEqual(30);
    // Estimated from 20 keys, which differ by a few bytes.
    expect(estimated / keys / (actual / 30)).toBeCloseTo(1, 1);
  });
});

it("exports BullMQ's own metrics of the delivery queue", async () => {
  const store = openTestStore();
  const id = testEnvelope().id;
  const message = {
    id: 'msg_1',
    owner: '',
    requestId: id,
    type: 'request.started',
    url: 'https://example.com',
    payload: '{}',
  };
  await enqueueWebhooks(store, [message], { attempts: 1 });
  const page = await exportBullmqMetrics(store, { app: 'janitor' });
  expect(page).toContain('bullmq_job_count{queue="queue", state="waiting", app="janitor", model="_webhooks"} 1');
});
