/** The former against a real queue, with workers that are only registered: what is leased, to whom, and when. */
import type { BatchPolicy } from '@darkroom/batching';
import type { RequestEnvelope } from '@darkroom/core';
import {
  admitRequest,
  cancelRequest,
  createEventHub,
  type Delivery,
  dispatchRequests,
  heartbeatWorker,
  type InboxMessage,
  openInbox,
  publishModel,
  readRequest,
  readStats,
  registerWorker,
  type StoreConnection,
  sweepWorkers,
  writeBatch,
  type WriteOutcome,
} from '@darkroom/store';
import { type Costs, createCostMeter, openTestStore, silentLogger, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { BatchFormer } from '../../apps/batch-former/src/batch-former.ts';

const policy: BatchPolicy = { maxSize: 8, timeoutMs: 0, isBatching: true, maxAttempts: 3, lookahead: 0 };

function createFormer(
  store: StoreConnection,
  overrides: Partial<BatchPolicy> = {},
  // Nothing happens because time passed.
  slowTickMs = 3_600_000,
) {
  const wakeups = createEventHub(store);
  const former = new BatchFormer({
    store,
    wakeups,
    policy: { ...policy, ...overrides },
    slowTickMs,
    log: silentLogger(),
  });
  onTestFinished(async () => {
    await former.stop();
    wakeups.close();
  });
  return { former, wakeups, runOnce: () => former.runOnce('tiny') };
}

async function register(store: StoreConnection, workerId: string, capacity = 8): Promise<void> {
  const identity = { model: 'tiny', workerId, incarnation: workerId };
  await registerWorker(store, identity, { state: 'ready', capacity, info: {} });
}

async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<string> {
  const envelope = testEnvelope(overrides);
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

async function submitMany(store: StoreConnection, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(await submit(store));
  return ids;
}

let batch = 0;

/** As a worker says that a request has ended. */
async function end(store: StoreConnection, workerId: string, delivery: Delivery): Promise<WriteOutcome[]> {
  const identity = { model: 'tiny', workerId, incarnation: workerId };
  return writeBatch(store, identity, [{ type: 'end', delivery, end: { state: 'canceled' } }], { batch: ++batch });
}

async function inbox(store: StoreConnection, workerId: string): Promise<InboxMessage[]> {
  const entries = await store.redis.xrange(store.keysOf('tiny').inbox(workerId), '-', '+');
  return entries.map(([, [, message = '']]) => JSON.parse(message) as InboxMessage);
}

function idsOf(messages: InboxMessage[]): string[][] {
  return messages.map((message) => (message.type === 'run' ? message.requests.map(({ envelope }) => envelope.id) : []));
}

function deliveriesOf(messages: InboxMessage[]): Delivery[] {
  const requests = messages.flatMap((message) => (message.type === 'run' ? message.requests : []));
  return requests.map(({ token, envelope }) => ({ id: envelope.id, token }));
}

/** The next call of a script by this store: `around` is given the call itself. */
function intercept(store: StoreConnection, script: string, around: (call: () => Promise<unknown>) => Promise<unknown>) {
  const redis = store.redis as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
  const call = redis[script]!.bind(redis);
  vi.spyOn(redis, script).mockImplementationOnce((...values) => around(() => call(...values)));
}

it('leases one batch for each shape, in dispatch order', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  const small = [await submit(store), await submit(store)];
  const wide = await submit(store, { shapeKey: '256x128' });
  small.push(await submit(store));
  await createFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([small, [wide]]);
});

it('divides what waits among idle workers, by one call', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  await register(store, 'w2');
  await submitMany(store, 6);
  const calls = vi.spyOn(
    store.redis as unknown as Record<string, () => Promise<unknown>>,
    'dispatch/dispatch-requests',
  );
  await createFormer(store).runOnce();
  expect(calls).toHaveBeenCalledOnce();
  expect(idsOf(await inbox(store, 'w1')).flat()).toHaveLength(3);
  expect(idsOf(await inbox(store, 'w2')).flat()).toHaveLength(3);
});

it('asks Redis as much with 40 workers as with 300', async () => {
  const costs: Costs[] = [];
  for (const workers of [40, 300]) {
    const store = openTestStore();
    await Promise.all(Array.from({ length: workers }, (_value, worker) => register(store, `w${worker}`)));
    const former = createFormer(store);
    // The first time a script goes as its text.
    await submit(store);
    await former.runOnce();
    await submit(store);
    costs.push(await (await createCostMeter(store))(() => former.runOnce()));
  }
  const [few, many] = costs.map(({ sent, inScripts }) => ({ sent, inScripts: inScripts.toSorted() }));
  // It has not seen all of them, so it looks once more.
  expect(few!.sent).toEqual(['evalsha', 'evalsha', 'evalsha']);
  expect(many).toEqual(few);
});

it('takes no more out of the queue than workers have room for', async () => {
  const store = openTestStore();
  await register(store, 'w1', 2);
  await submitMany(store, 5);
  const former = createFormer(store);
  await former.runOnce();
  await former.runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 3, running: 2, freeSlots: 0 });
  // What waits can still be overtaken.
  const urgent = await submit(store, { priority: 1 });
  expect(await readRequest(store, urgent)).toMatchObject({ request: { queuePosition: 0 } });
});

it('takes no more requests of many slots than find room', async () => {
  const store = openTestStore();
  await register(store, 'w1', 8);
  for (let count = 0; count < 4; count++) await submit(store, { slots: 10 });
  await createFormer(store).runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 3, running: 1, freeSlots: 0 });
});

it('gives every request a worker of its own without batching', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  const [first] = await submitMany(store, 2);
  await createFormer(store, { isBatching: false }).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([[first]]);
  expect((await readStats(store, 'tiny')).freeSlots).toBe(0);
});

it('leases more than it looks at, if there is room', async () => {
  const store = openTestStore();
  for (let worker = 0; worker < 4; worker++) await register(store, `w${worker}`, 70);
  const options = { queueMaxLength: 300, unserved: 'accept' } as const;
  await Promise.all(Array.from({ length: 280 }, () => admitRequest(store, testEnvelope(), options)));
  await createFormer(store, { maxSize: 300 }).runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 0, running: 280, freeSlots: 0 });
});

it('a request on its last attempt stops nobody else, and runs alone once a worker is idle', async () => {
  const store = openTestStore();
  for (let worker = 0; worker < 10; worker++) await register(store, `w${worker}`);
  const busy = await submitMany(store, 10);
  const former = createFormer(store);
  await former.runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 0, busy: 10 }, freeSlots: 70 });
  const last = await submit(store, { priority: 1 });
  await store.redis.hset(store.keysOf('tiny').request(last), 'attempts', '2');
  const fresh = await submitMany(store, 20);
  await former.runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1, running: 30 });
  expect(await readRequest(store, last)).toMatchObject({ request: { state: 'queued', queuePosition: 0 } });
  // One worker is left alone until it is idle: the first of the ten has nothing but what it had.
  const workers = await Promise.all(
    Array.from({ length: 10 }, async (_value, worker) => {
      const workerId = `w${worker}`;
      return { workerId, deliveries: deliveriesOf(await inbox(store, workerId)) };
    }),
  );
  const reserved = await store.redis.get(store.keysOf('tiny').reserved);
  const emptied = workers.find(({ workerId }) => workerId === reserved)!;
  expect(emptied.deliveries.map(({ id }) => id)).toEqual([expect.toBeOneOf(busy)]);
  const others = workers.filter((worker) => worker !== emptied).flatMap(({ deliveries }) => deliveries);
  expect(others.map(({ id }) => id)).toEqual(expect.arrayContaining(fresh));
  expect(await end(store, emptied.workerId, emptied.deliveries[0]!)).toEqual(['finished']);
  const company = await submit(store);
  await former.runOnce();
  expect(idsOf(await inbox(store, emptied.workerId))).toEqual([[emptied.deliveries[0]!.id], [last]]);
  expect(await readRequest(store, company)).toMatchObject({ request: { state: 'running' } });
  expect(await store.redis.hget(store.keysOf('tiny').worker(emptied.workerId), 'free')).toBe('-1');
});

it('another worker is emptied for a request that must run alone when the first one dies', async () => {
  const store = openTestStore();
  for (const workerId of ['w1', 'w2']) await register(store, workerId);
  const former = createFormer(store);
  await submitMany(store, 2);
  await former.runOnce();
  const last = await submit(store);
  await store.redis.hset(store.keysOf('tiny').request(last), 'attempts', '2');
  await former.runOnce();
  const { reserved } = store.keysOf('tiny');
  const [dying, other] = (await store.redis.get(reserved)) === 'w1' ? ['w1', 'w2'] : ['w2', 'w1'];
  await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  await heartbeatWorker(store, { model: 'tiny', workerId: other, incarnation: other });
  const buried = await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(buried.map(({ workerId }) => workerId)).toEqual([dying]);
  await former.runOnce();
  expect(await store.redis.get(reserved)).toBe(other);
});

it('what has gone between the look and the lease is passed over, and its place is another one’s', async () => {
  const store = openTestStore();
  await register(store, 'w1', 2);
  const [canceled = '', elsewhere = '', next, last] = await submitMany(store, 4);
  intercept(store, 'dispatch/dispatch-requests', async (dispatch) => {
    await cancelRequest(store, canceled);
    await register(store, 'w2', 1);
    await dispatchRequests(store, 'tiny', [{ workerId: 'w2', isExclusive: false, requestIds: [elsewhere] }]);
    return dispatch();
  });
  await createFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([[next, last]]);
  expect(idsOf(await inbox(store, 'w2'))).toEqual([[elsewhere]]);
});

it('a former whose one call fails leaves nothing to wait out: the next leases at once', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  const ids = await submitMany(store, 3);
  for (const script of ['dispatch/read-dispatchable', 'dispatch/dispatch-requests']) {
    intercept(store, script, () => Promise.reject(new Error('no connection')));
    await expect(createFormer(store).runOnce()).rejects.toThrow('no connection');
  }
  await createFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([ids]);
});

it('reacts to requests and to freed slots by itself, for models it has just heard of', async () => {
  const store = openTestStore();
  const { former } = createFormer(store);
  await former.start();
  await publishModel(store, { id: 'tiny' } as never);
  await register(store, 'w1', 1);
  const mailbox = openInbox(store, { model: 'tiny', workerId: 'w1' });
  onTestFinished(() => mailbox.close());
  for (let count = 0; count < 3; count++) {
    for (const id of [await submit(store), await submit(store)]) {
      const messages = await mailbox.next(10);
      expect(idsOf(messages)).toEqual([[id]]);
      await end(store, 'w1', deliveriesOf(messages)[0]!);
    }
  }
});

it('a request that comes to an idle worker is leased without a look', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  await publishModel(store, { id: 'tiny' } as never);
  const looks = vi.spyOn(
    store.redis as unknown as Record<string, () => Promise<unknown>>,
    'dispatch/read-dispatchable',
  );
  const { former } = createFormer(store);
  await former.start();
  await expect.poll(() => looks.mock.settledResults.map(({ type }) => type)).toEqual(['fulfilled']);
  const mailbox = openInbox(store, { model: 'tiny', workerId: 'w1' });
  onTestFinished(() => mailbox.close());
  const first = await submit(store);
  const messages = await mailbox.next(10);
  expect([idsOf(messages), looks.mock.calls.length]).toEqual([[[first]], 1]);
  // Where that fails, the next turn does it, and does not wait for its time.
  await end(store, 'w1', deliveriesOf(messages)[0]!);
  intercept(store, 'dispatch/dispatch-requests', () => Promise.reject(new Error('no connection')));
  const second = await submit(store);
  expect(idsOf(await mailbox.next(10))).toEqual([[second]]);
  expect(looks).toHaveBeenCalledTimes(2);
});

it('what waits for company goes when its time is over, though nothing else happens', async () => {
  const store = openTestStore();
  await register(store, 'w1');
  await submit(store);
  await publishModel(store, { id: 'tiny' } as never);
  const { former } = createFormer(store, { timeoutMs: 50 });
  await former.start();
  await expect.poll(async () => idsOf(await inbox(store, 'w1'))).toHaveLength(1);
  const id = await submit(store);
  await expect.poll(async () => idsOf(await inbox(store, 'w1')).slice(1)).toEqual([[id]]);
});

it('tries a model again that it could not listen for', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  await publishModel(store, { id: 'other' } as never);
  const { former, wakeups } = createFormer(store, {}, 100);
  const listen = vi.spyOn(wakeups, 'listen').mockRejectedValueOnce(new Error('NOPERM'));
  await former.start();
  await expect.poll(() => listen, { timeout: 3000 }).toHaveBeenCalledTimes(3);
});

it('many formers lease each request once', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  for (let worker = 0; worker < 4; worker++) await register(store, `w${worker}`, 5);
  const ids = await submitMany(store, 40);
  const formers = Array.from({ length: 3 }, () => createFormer(store));
  for (let turn = 0; turn < 3; turn++) await Promise.all(formers.map((former) => former.runOnce()));
  const leased: string[] = [];
  for (let worker = 0; worker < 4; worker++) leased.push(...idsOf(await inbox(store, `w${worker}`)).flat());
  expect(leased.toSorted()).toEqual(ids.slice(0, 20).toSorted());
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 20, running: 20, freeSlots: 0 });
});
