import {
  age,
  dispatchNext,
  openTestStore,
  seedRequest,
  seedRunning,
  seedWorker,
  testEnvelope,
  write,
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
  readTally,
  type StoreConnection,
  type Tally,
} from '../index.ts';

const noRequeues = { worker_lost: 0, engine_failed: 0, worker_stopped: 0 };
const worker = { model: 'tiny', workerId: 'w1', incarnation: 'first' };

function numbersOf({ counts, sum }: Pick<Tally['ends'][number], 'counts' | 'sum'>): [count: number, tenths: number] {
  return [counts.reduce((left, right) => left + right, 0), Math.floor(Math.round(sum * 1000) / 100)];
}

/** `queued>running` → how many, and how long together, in tenths of a second. */
async function transitions(store: StoreConnection): Promise<Record<string, [count: number, tenths: number]>> {
  const { states, ends } = await readTally(store, 'tiny');
  const all = [
    ...states.map(({ state, next, ...durations }) => [`${state}>${next}`, numbersOf(durations)] as const),
    ...ends.map(({ state, ...durations }) => [state, numbersOf(durations)] as const),
  ];
  return Object.fromEntries(all.filter(([, [count]]) => count > 0)) as Record<string, [number, number]>;
}

describe('what became of requests', () => {
  it('a request that succeeds: its time in each state, and in all', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const envelope = await seedRequest(store, { timeoutMs: 90_000_000, startTimeoutMs: 90_000_000 });
    await age(store, envelope, 30_000_000);
    const [delivery] = await dispatchNext(store);
    await age(store, envelope, 20_000_000);
    const end = { type: 'end', delivery: delivery!, end: { state: 'succeeded', outputs: 0 } } as const;
    await write(store, worker, end);
    await write(store, worker, end);
    const told = await transitions(store);
    expect(Object.keys(told)).toEqual(['queued>running', 'running>succeeded', 'succeeded']);
    for (const [name, tenths] of [
      ['queued>running', 300_000],
      ['running>succeeded', 200_000],
      ['succeeded', 500_000],
    ] as const) {
      expect(told[name]![0]).toBe(1);
      expect(told[name]![1]).toBeGreaterThanOrEqual(tenths);
    }
    const { bounds, counts } = (await readTally(store, 'tiny')).ends[0]!;
    expect(counts).toHaveLength(bounds.length + 1);
    // Beyond the last bound.
    expect(counts.at(-1)).toBe(1);
    const ended = { succeeded: 1, failed: 0, canceled: 0, expired: 0 };
    expect(await countEnded(store, 'tiny', { minutes: 5, nowMs: Date.now() })).toEqual(ended);
  });

  it('a clock that was set back makes a time of zero', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await age(store, await seedRequest(store), -3_600_000);
    await dispatchNext(store);
    expect(await transitions(store)).toEqual({ 'queued>running': [1, 0] });
  });

  it('canceled and expired while waiting', async () => {
    const store = openTestStore();
    const canceled = await seedRequest(store);
    await cancelRequest(store, canceled.id);
    await cancelRequest(store, canceled.id);
    await age(store, await seedRequest(store), 600_000);
    await expireRequests(store, 'tiny');
    expect(await transitions(store)).toMatchObject({
      'queued>canceled': [1, expect.any(Number)],
      'queued>expired': [1, expect.any(Number)],
    });
  });

  it('given back by its worker: once stopping, once without its engine; asked again, counted once', async () => {
    const store = openTestStore();
    const { delivery: first } = await seedRunning(store);
    await write(store, worker, { type: 'give-back', delivery: first, reason: 'worker_stopped' });
    const [second] = await dispatchNext(store);
    await write(store, worker, { type: 'give-back', delivery: second!, reason: 'engine_failed' });
    await write(store, worker, { type: 'give-back', delivery: second!, reason: 'engine_failed' });
    const { requeues } = await readTally(store, 'tiny');
    expect(requeues).toEqual({ ...noRequeues, worker_stopped: 1, engine_failed: 1 });
    expect(await transitions(store)).toMatchObject({
      'queued>running': [2, expect.any(Number)],
      'running>queued': [2, expect.any(Number)],
    });
  });
});

describe('how things stand', () => {
  it('of a model that nothing is known of: zeros, also of what may come', async () => {
    const store = openTestStore();
    const { states, ends, requeues, buried } = await readTally(store, 'tiny');
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
    expect({ requeues, buried }).toEqual({ requeues: noRequeues, buried: 0 });
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

  it('workers, room, what waits and what runs', async () => {
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

  it('the oldest waiting request, whatever its owner, priority and place in the queue, also one that ran before', async () => {
    const store = openTestStore();
    const ran = testEnvelope();
    const { delivery } = await seedRunning(store, ran);
    const young = await seedRequest(store, { priority: 1 });
    const old = await seedRequest(store, { priority: 10, owner: 'bob' });
    await age(store, old, 60_000);
    await age(store, ran, 90_000);
    const oldest = async () => (await readStats(store, 'tiny')).oldestQueuedAtMs;
    const createdAt = async (id: string) =>
      Number(await store.redis.hget(store.keysOf('tiny').request(id), 'createdAtMs'));
    expect(await oldest()).toBe(await createdAt(old.id));
    await write(store, worker, { type: 'give-back', delivery, reason: 'worker_stopped' });
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
  it('gives keys of what is no more a TTL, removes those of workers that are no more, and leaves all others', async () => {
    const store = openTestStore();
    const { delivery } = await seedRunning(store);
    const ended = await seedRequest(store);
    await cancelRequest(store, ended.id);
    const keys = store.keysOf('tiny');
    const lost = testEnvelope().id;
    const leaks = [keys.events(ended.id), keys.input(lost), keys.output(lost, 0), keys.checkpoint(lost, 1)];
    await store.redis.persist(leaks[0]!);
    for (const key of leaks.slice(1)) await store.redis.set(key, 'x');
    await store.redis.set(keys.leases('nobody'), 'x');
    const found = await pass(new LeakSweeper(store));
    expect(found.repaired.toSorted()).toEqual(leaks.toSorted());
    expect(found.deleted).toEqual([keys.leases('nobody')]);
    for (const key of leaks) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
    expect(await store.redis.pttl(keys.input(delivery.id))).toBe(-1);
    expect(await pass(new LeakSweeper(store))).toMatchObject({ repaired: [], deleted: [] });
  });

  it.each(['a worker that comes back', 'a request that ends'])('%s while its keys are looked at', async (what) => {
    const store = openTestStore();
    const other = openTestStore({ prefix: store.prefix });
    const keys = store.keysOf('tiny');
    const { id } = await seedRequest(store);
    await store.redis.hset(keys.leases('w1'), 'x', 'y');
    const subject = what.startsWith('a worker') ? 'w1' : keys.input(id).slice(keys.input('').length);
    const redis = store.redis as unknown as { sendCommand: (command: Command) => Promise<unknown> };
    const send = redis.sendCommand.bind(redis);
    let asked = 0;
    // Between the first question about it and the next.
    const asking = vi.spyOn(redis, 'sendCommand').mockImplementation(async (command) => {
      if (command.name !== 'memory' && command.args.join(' ').includes(subject) && ++asked === 2)
        await (subject === 'w1' ? seedWorker(other) : cancelRequest(other, id));
      return send(command);
    });
    const { repaired } = await pass(new LeakSweeper(store));
    asking.mockRestore();
    expect(asked).toBeGreaterThan(0);
    expect(await other.redis.exists(keys.leases('w1'))).toBe(await other.redis.exists(keys.worker('w1')));
    expect(repaired).toEqual([]);
  });

  it('takes two round trips for a page of five hundred, and one more at the end of a pass', async () => {
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

  it('looks at a page at a time, however many keys there are, and says what those of each kind take', async () => {
    const store = openTestStore();
    const ids = [];
    for (let index = 0; index < 30; index++) ids.push((await seedRequest(store)).id);
    const { sizes, pages } = await pass(new LeakSweeper(store, { pageSize: 10 }));
    expect(pages).toBeGreaterThan(3);
    const bytes = await Promise.all(ids.map((id) => store.redis.memory('USAGE', store.keysOf('tiny').request(id))));
    const actual = bytes.reduce<number>((total, size) => total + (size ?? 0), 0);
    const { keys, bytes: estimated } = sizes.find(({ model, kind }) => model === 'tiny' && kind === 'request')!;
    // A scan may bring a key twice.
    expect(keys).toBeGreaterThanOrEqual(30);
    // 20 of them are asked; they differ by a few bytes.
    expect(estimated / keys / (actual / 30)).toBeCloseTo(1, 1);
  });
});

it("BullMQ's own metrics are those of deliveries", async () => {
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
