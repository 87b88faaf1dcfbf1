/** Lifecycle of a request in the store: one transition per test. */
import type { RequestEnvelope } from '@darkroom/core';
import {
  backdateRequest,
  allKeys,
  type Costs,
  createCostMeter,
  dispatchNext,
  openTestStore,
  seedRequest,
  seedRunning,
  seedWorker,
  startPrivateRedis,
  testEnvelope,
  writeNow,
} from '@darkroom/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  admitRequest,
  cancelRequest,
  connectStore,
  expireRequests,
  newRequestId,
  openInbox,
  readEvents,
  readRequest,
  readStats,
  type StoreConnection,
} from '../index.ts';
import { systemKeys } from '../connection/keys.ts';
import { runScript } from '../connection/scripts.ts';

const admission = { queueMaxLength: 100, unserved: 'accept' } as const;

async function stateOf(store: StoreConnection, id: string): Promise<string> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.state : result.status;
}

async function eventTypes(store: StoreConnection, id: string): Promise<string[]> {
  return (await readEvents(store, id, { after: 0 })).map(({ type }) => type);
}

async function messagesOf(store: StoreConnection, workerId = 'w1'): Promise<unknown[]> {
  const inbox = openInbox(store, () => ({ shard: 'tiny', workerId }));
  onTestFinished(() => inbox.close());
  return inbox.next(1);
}

describe('admitting', () => {
  it('queues a request with its position; its event log is created with the second event', async () => {
    const store = openTestStore();
    const first = testEnvelope();
    expect(await admitRequest(store, first, admission)).toEqual({
      status: 'admitted',
      position: 0,
      isPossible: false,
      costAhead: 0,
    });
    expect(await stateOf(store, first.id)).toBe('queued');
    const queued = { sequence: 1, type: 'queued', position: 0, attempt: 1, timestampMs: expect.any(Number) as number };
    expect(await readEvents(store, first.id, { after: 0 })).toEqual([queued]);
    expect(await readEvents(store, first.id, { after: 1 })).toEqual([]);
    expect(await store.redis.exists(store.keysOf('tiny').events(first.id))).toBe(0);
    await cancelRequest(store, first.id);
    expect(await readEvents(store, first.id, { after: 0 })).toMatchObject([queued, { sequence: 2, type: 'canceled' }]);
  });

  it('reports positions in dispatch order: priority first, then arrival', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const late = await seedRequest(store, { priority: 9 });
    const normal = await seedRequest(store, { priority: 5 });
    const urgent = await seedRequest(store, { priority: 1 });
    const second = await seedRequest(store, { priority: 5 });
    const order = [urgent, normal, second, late];
    for (const [position, { id }] of order.entries())
      expect(await readRequest(store, id)).toMatchObject({ request: { queuePosition: position } });
    expect((await dispatchNext(store, 4)).map(({ id }) => id)).toEqual(order.map(({ id }) => id));
  });

  it('refuses when the queue is full or no worker serves the model, and stores nothing', async () => {
    const store = openTestStore();
    const refuse = { queueMaxLength: 100, unserved: 'refuse' } as const;
    expect(await admitRequest(store, testEnvelope(), refuse)).toEqual({ status: 'unserved' });
    const full = { ...admission, queueMaxLength: 0 };
    expect(await admitRequest(store, testEnvelope(), full)).toEqual({ status: 'overloaded', waiting: 0, costAhead: 0 });
    expect(await allKeys(store)).toEqual([]);
    await seedWorker(store, { state: 'loading' });
    expect(await admitRequest(store, testEnvelope(), refuse)).toMatchObject({ status: 'admitted', isPossible: true });
  });

  it('never exceeds the queue limit under concurrent submits', async () => {
    const store = openTestStore();
    const results = await Promise.all(
      Array.from({ length: 40 }, () => admitRequest(store, testEnvelope(), { ...admission, queueMaxLength: 7 })),
    );
    expect(results.filter(({ status }) => status === 'admitted')).toHaveLength(7);
  });

  it('stores a resent call once after a lost reply, and reports another submit of its id as duplicate', async () => {
    const store = openTestStore();
    const envelope = testEnvelope();
    const { owner, cost, slots, outputs, shapeKey, priority, timeoutMs, startTimeoutMs } = envelope;
    const fields = [cost, slots, outputs, shapeKey, priority, timeoutMs, startTimeoutMs];
    const texts = [envelope.id, owner, JSON.stringify(envelope), '', '', '', '', 'this call'];
    const values = [...texts, 1, ...fields, 1000, '', '', '', '', 0, 3, 'image', ''];
    const send = () => runScript(store, 'requests/admit-request', store.keysOf('tiny'), values);
    const first = await send();
    const before = await allKeys(store);
    expect(await send()).toEqual(first);
    expect(await admitRequest(store, envelope, admission)).toEqual({ status: 'duplicate' });
    expect(await allKeys(store)).toEqual(before);
    expect((await readStats(store, 'tiny')).queued).toBe(1);
  });

  it('stores a queued request in at most 1.5 KB of Redis memory beside its envelope', async () => {
    const store = openTestStore();
    const envelopes: RequestEnvelope[] = [];
    const used = async (): Promise<number> => {
      const sizes = await Promise.all(
        (await allKeys(store)).map((key) => store.redis.memory('USAGE', key, 'SAMPLES', 0)),
      );
      return sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
    };
    for (let index = 0; index < 1000; index++)
      envelopes.push(await seedRequest(store, { owner: `owner-${index % 10}` }));
    const envelopeBytes = envelopes.reduce((sum, envelope) => sum + JSON.stringify(envelope).length, 0);
    expect(((await used()) - envelopeBytes) / envelopes.length).toBeLessThan(1500);
  });
});

describe('ids', () => {
  it('distinguish expired requests (gone) from unknown ones when nothing is stored', async () => {
    const store = openTestStore();
    const id = await newRequestId(store, { model: 'tiny', owner: 'alice', nowMs: Date.now() });
    expect(await readRequest(store, id, 'alice')).toEqual({ status: 'gone' });
    expect(await readRequest(store, id, 'bob')).toEqual({ status: 'unknown' });
    expect(await readRequest(store, id)).toEqual({ status: 'gone' });
    expect(await cancelRequest(store, id, { owner: 'alice' })).toEqual({ status: 'gone' });
    const guessed = testEnvelope({ owner: 'alice' }).id;
    expect(await readRequest(store, guessed, 'alice')).toEqual({ status: 'unknown' });
    expect(await cancelRequest(store, 'nonsense')).toEqual({ status: 'unknown' });
    expect(await allKeys(store)).toEqual([`${store.prefix}:id-secret`]);
  });

  it('are verified by all replicas', async () => {
    const store = openTestStore();
    const replica = openTestStore({ prefix: store.prefix });
    const [id] = await Promise.all([
      newRequestId(store, { model: 'tiny', owner: '', nowMs: 1 }),
      newRequestId(replica, { model: 'tiny', owner: '', nowMs: 1 }),
    ]);
    expect(await readRequest(replica, id, '')).toEqual({ status: 'gone' });
  });
});

describe('ending', () => {
  it('ends once: frees slots, sets a TTL on all keys, deletes previews and checkpoints', async () => {
    const store = openTestStore({ resultTtlMs: 50_000 });
    const { worker, delivery } = await seedRunning(store);
    const progress = { index: 0, done: 1, total: 4 };
    const preview = { data: Buffer.from([0, 10, 255, 10]), contentType: 'image/webp' };
    await writeNow(store, worker, { type: 'preview', delivery, progress, of: { done: 1, total: 4 }, ...preview });
    await writeNow(store, worker, { type: 'checkpoint', delivery, index: 0, done: 1, data: Buffer.from('state') });
    expect(await readEvents(store, delivery.id, { after: 2 })).toMatchObject([{ type: 'preview', ...preview }]);
    const end = { type: 'end', delivery, end: { state: 'canceled' } } as const;
    expect(await writeNow(store, worker, end)).toBe('finished');
    expect(await writeNow(store, worker, end)).toBe('ended');
    expect(await eventTypes(store, delivery.id)).toEqual(['queued', 'started', 'preview', 'canceled']);
    expect((await readEvents(store, delivery.id, { after: 2 }))[0]).not.toHaveProperty('data');
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1, busy: 0 }, freeSlots: 8, running: 0 });
    const keys = store.keysOf('tiny');
    const own = (await allKeys(store)).filter((key) => key.includes(delivery.id));
    expect(own).toEqual([keys.events(delivery.id), keys.input(delivery.id), keys.request(delivery.id)]);
    for (const key of own) expect(await store.redis.pttl(key)).toBeGreaterThan(0);
    expect(await store.redis.zcard(keys.deadlines)).toBe(0);
    expect(await store.redis.exists(keys.open, keys.waiting, keys.places, keys.queued(''))).toBe(0);
  });

  it('deletes private fields at the end if prompts must not be retained', async () => {
    const store = openTestStore();
    const envelope = testEnvelope();
    await admitRequest(store, envelope, { ...admission, promptless: { ...envelope, input: {} } });
    expect(await readRequest(store, envelope.id)).toMatchObject({ request: { input: { prompt: 'a test' } } });
    await cancelRequest(store, envelope.id);
    expect(await readRequest(store, envelope.id)).toMatchObject({ request: { input: {} } });
    const values = await Promise.all((await allKeys(store)).map((key) => store.redis.dump(key)));
    expect(values.join()).not.toContain('a test');
  });

  it('cancels a queued request at once', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const { id } = await seedRequest(store);
    expect(await cancelRequest(store, id)).toEqual({ status: 'canceled' });
    expect(await cancelRequest(store, id)).toEqual({ status: 'ended', state: 'canceled' });
    expect(await dispatchNext(store)).toEqual([]);
    expect(await eventTypes(store, id)).toEqual(['queued', 'canceled']);
  });

  it('sends a cancel message for a running request, and returns `canceling` to its worker’s next write', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const { id } = delivery;
    expect(await cancelRequest(store, id)).toEqual({ status: 'canceling' });
    expect(await cancelRequest(store, id)).toEqual({ status: 'canceling' });
    expect(await messagesOf(store)).toEqual([
      expect.objectContaining({ type: 'run' }),
      { type: 'cancel', ...delivery },
    ]);
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'running', isCanceling: true } });
    const progress = { index: 0, done: 1, total: 4 };
    expect(await writeNow(store, worker, { type: 'progress', delivery, progress, of: { done: 1, total: 4 } })).toBe(
      'canceling',
    );
    expect(await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('finished');
    expect(await stateOf(store, id)).toBe('canceled');
  });

  it('expires queued requests at their start deadline, and all at their deadline', async () => {
    const store = openTestStore();
    const times = { startTimeoutMs: 60_000, timeoutMs: 90_000 };
    const running = testEnvelope(times);
    const { worker, delivery } = await seedRunning(store, running);
    const waiting = await seedRequest(store, times);
    expect(await expireRequests(store, 'tiny')).toEqual([]);
    for (const envelope of [running, waiting]) await backdateRequest(store, envelope, 60_000);
    expect(await expireRequests(store, 'tiny')).toEqual([waiting.id]);
    // Leased between the janitor's read and its script: it has started in time.
    await store.redis.zadd(store.keysOf('tiny').deadlines, 0, running.id);
    expect(await expireRequests(store, 'tiny')).toEqual([]);
    expect(await stateOf(store, running.id)).toBe('running');
    await backdateRequest(store, running, 30_000);
    expect(await expireRequests(store, 'tiny')).toEqual([running.id]);
    expect(await expireRequests(store, 'tiny')).toEqual([]);
    // Its worker gets a cancel message and releases the slots.
    expect(await messagesOf(store)).toContainEqual({ type: 'cancel', ...delivery });
    expect(await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('ended');
    expect(await eventTypes(store, running.id)).toEqual(['queued', 'started', 'expired']);
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, freeSlots: 8 });
  });

  it('expires requests in batches of a hundred', async () => {
    const store = openTestStore();
    const overdue = [];
    for (let index = 0; index < 250; index++) overdue.push(await seedRequest(store));
    const open = await seedRequest(store);
    for (const envelope of overdue) await backdateRequest(store, envelope, 600_000);
    const calls = vi.spyOn(
      store.redis as unknown as Record<string, () => Promise<unknown>>,
      'requests/expire-requests',
    );
    expect((await expireRequests(store, 'tiny')).toSorted()).toEqual(overdue.map(({ id }) => id).toSorted());
    expect(calls).toHaveBeenCalledTimes(3);
    expect(await readRequest(store, open.id)).toMatchObject({ request: { queuePosition: 0 } });
  });

  it('costs the same for any number of queued requests of the owner, and reads none of them', async () => {
    const costs: Costs[][] = [];
    for (const behind of [10, 2000]) {
      const store = openTestStore();
      const [canceled, overdue] = [await seedRequest(store), await seedRequest(store)];
      await Promise.all(Array.from({ length: behind }, () => seedRequest(store)));
      await backdateRequest(store, overdue, 600_000);
      const costOf = await createCostMeter(store);
      costs.push([
        await costOf(() => cancelRequest(store, canceled.id)),
        await costOf(() => expireRequests(store, 'tiny')),
      ]);
      expect(await stateOf(store, canceled.id)).toBe('canceled');
      expect(await stateOf(store, overdue.id)).toBe('expired');
    }
    const [few, many] = costs.map((ofBoth) => ofBoth.map(({ inScripts }) => inScripts));
    expect(many).toEqual(few);
    const reads = costs
      .flat()
      .flatMap(({ commands }) => commands.filter(([name]) => /range|all$|keys|vals/.test(name!)));
    for (const read of reads) expect(read.join(' ')).toMatch(/ LIMIT 0 \d+$| -1 -1 WITHSCORES$/);
  });
});

it('scripts work after SCRIPT FLUSH', async () => {
  // A private Redis: other tests count round trips on the shared one.
  const redis = await startPrivateRedis();
  const store = connectStore({ url: redis.url });
  onTestFinished(async () => {
    await store.close();
    await redis.stop();
  });
  await seedRequest(store);
  await store.redis.script('FLUSH');
  await seedRequest(store);
  expect((await readStats(store, 'tiny')).queued).toBe(2);
});

it('restores the id secret when Redis has lost it', async () => {
  const store = openTestStore();
  const id = await newRequestId(store, { model: 'tiny', owner: 'ann', nowMs: Date.now() });
  await store.redis.del(systemKeys(store.prefix).idSecret);
  const later = performance.now() + 60_000;
  const clock = vi.spyOn(performance, 'now').mockReturnValue(later);
  onTestFinished(() => clock.mockRestore());
  expect(await readRequest(store, id, 'ann')).toEqual({ status: 'gone' });
  await expect.poll(() => store.redis.exists(systemKeys(store.prefix).idSecret)).toBe(1);
  const replica = openTestStore({ prefix: store.prefix });
  expect(await readRequest(replica, id, 'ann')).toEqual({ status: 'gone' });
});

it('a poll sends its commands to Redis in one packet', async () => {
  const redis = await startPrivateRedis();
  onTestFinished(() => redis.stop());
  const store = connectStore({ url: redis.url, prefix: 'polled' });
  onTestFinished(() => store.close());
  const { delivery } = await seedRunning(store);
  const readsOf = async (): Promise<number> =>
    Number(/^total_reads_processed:(\d+)/m.exec(await store.redis.info('stats'))![1]);
  const before = await readsOf();
  const between = await readsOf();
  expect(await stateOf(store, delivery.id)).toBe('running');
  expect((await readsOf()) - between).toBe(between - before + 1);
});
