/**
 * The batch-former against a real queue with workers that are only registered: what it leases, to which worker, when.
 */
import {
  admitRequest,
  cancelRequest,
  type Delivery,
  dispatchRequests,
  heartbeatWorker,
  type InboxMessage,
  openInbox,
  publishModel,
  readRequest,
  readStats,
  type StoreConnection,
  sweepWorkers,
  type WriteOutcome,
} from '@darkroom/store';
import { type Costs, createCostMeter, openTestStore, seedWorker, writeNow, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openFormer } from './open-former.ts';
import { submit } from './worker-bench.ts';

async function submitMany(store: StoreConnection, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) ids.push(await submit(store));
  return ids;
}

/** Ends a request, as its worker would. */
function end(store: StoreConnection, workerId: string, delivery: Delivery): Promise<WriteOutcome | undefined> {
  const identity = { shard: 'tiny', workerId, incarnation: 'first' };
  return writeNow(store, identity, { type: 'end', delivery, end: { state: 'canceled' } });
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

/** Intercepts the next call of a script by this store; `around` receives the call. */
function intercept(store: StoreConnection, script: string, around: (call: () => Promise<unknown>) => Promise<unknown>) {
  const redis = store.redis as unknown as Record<string, (...values: unknown[]) => Promise<unknown>>;
  const call = redis[script]!.bind(redis);
  vi.spyOn(redis, script).mockImplementationOnce((...values) => around(() => call(...values)));
}

it('leases one batch per shape, in dispatch order', async () => {
  const store = openTestStore();
  await seedWorker(store);
  const small = [await submit(store), await submit(store)];
  const wide = await submit(store, { shapeKey: '256x128' });
  small.push(await submit(store));
  await openFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([small, [wide]]);
});

it('divides queued requests among idle workers in one call', async () => {
  const store = openTestStore();
  await seedWorker(store);
  await seedWorker(store, { workerId: 'w2' });
  await submitMany(store, 6);
  const calls = vi.spyOn(
    store.redis as unknown as Record<string, () => Promise<unknown>>,
    'dispatch/dispatch-requests',
  );
  await openFormer(store).runOnce();
  expect(calls).toHaveBeenCalledOnce();
  expect(idsOf(await inbox(store, 'w1')).flat()).toHaveLength(3);
  expect(idsOf(await inbox(store, 'w2')).flat()).toHaveLength(3);
});

it('the number of Redis commands does not grow from 40 to 300 workers', async () => {
  const costs: Costs[] = [];
  for (const workers of [40, 300]) {
    const store = openTestStore();
    await Promise.all(
      Array.from({ length: workers }, (_value, worker) => seedWorker(store, { workerId: `w${worker}` })),
    );
    const former = openFormer(store);
    // The first call of a script sends its text (EVAL).
    await submit(store);
    await former.runOnce();
    await submit(store);
    costs.push(await (await createCostMeter(store))(() => former.runOnce()));
  }
  const [few, many] = costs.map(({ sent, inScripts }) => ({ sent, inScripts: inScripts.toSorted() }));
  // The snapshot did not hold all workers, so the batch-former reads once more.
  expect(few!.sent).toEqual(['evalsha', 'evalsha', 'evalsha']);
  expect(many).toEqual(few);
});

it('leases no more requests than workers have free slots', async () => {
  const store = openTestStore();
  await seedWorker(store, { workerId: 'w1', capacity: 2 });
  await submitMany(store, 5);
  const former = openFormer(store);
  await former.runOnce();
  await former.runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 3, running: 2, freeSlots: 0 });
  // Queued requests can still be overtaken by priority.
  const urgent = await submit(store, { priority: 1 });
  expect(await readRequest(store, urgent)).toMatchObject({ request: { queuePosition: 0 } });
});

it('leases no more multi-slot requests than free slots allow', async () => {
  const store = openTestStore();
  await seedWorker(store, { workerId: 'w1', capacity: 8 });
  for (let count = 0; count < 4; count++) await submit(store, { slots: 10 });
  await openFormer(store).runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 3, running: 1, freeSlots: 0 });
});

it('leases one request per worker with BATCH_MAX_SIZE=1', async () => {
  const store = openTestStore();
  await seedWorker(store, { capacity: 8 });
  const [first] = await submitMany(store, 2);
  await openFormer(store, { maxSize: 1 }).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([[first]]);
  expect((await readStats(store, 'tiny')).freeSlots).toBe(0);
});

it('leases more requests than one snapshot holds if there is capacity', async () => {
  const store = openTestStore();
  for (let worker = 0; worker < 4; worker++) await seedWorker(store, { workerId: `w${worker}`, capacity: 70 });
  const options = { queueMaxLength: 300, unserved: 'accept' } as const;
  await Promise.all(Array.from({ length: 280 }, () => admitRequest(store, testEnvelope(), options)));
  await openFormer(store, { maxSize: 300 }).runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 0, running: 280, freeSlots: 0 });
});

it('a request on its last attempt does not block others, and runs alone once a worker is idle', async () => {
  const store = openTestStore();
  for (let worker = 0; worker < 10; worker++) await seedWorker(store, { workerId: `w${worker}` });
  const busy = await submitMany(store, 10);
  const former = openFormer(store);
  await former.runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 0, busy: 10 }, freeSlots: 70 });
  const last = await submit(store, { priority: 1 });
  await store.redis.hset(store.keysOf('tiny').request(last), 'attempts', '2');
  const fresh = await submitMany(store, 20);
  await former.runOnce();
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1, running: 30 });
  expect(await readRequest(store, last)).toMatchObject({ request: { state: 'queued', queuePosition: 0 } });
  // One worker is reserved until it is idle: it has only its first request.
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
  expect(await end(store, emptied.workerId, emptied.deliveries[0]!)).toBe('finished');
  const company = await submit(store);
  await former.runOnce();
  expect(idsOf(await inbox(store, emptied.workerId))).toEqual([[emptied.deliveries[0]!.id], [last]]);
  expect(await readRequest(store, company)).toMatchObject({ request: { state: 'running' } });
  expect(await store.redis.hget(store.keysOf('tiny').worker(emptied.workerId), 'free')).toBe('-1');
});

it('reserves another worker for a request that must run alone when the reserved one dies', async () => {
  const store = openTestStore();
  for (const workerId of ['w1', 'w2']) await seedWorker(store, { workerId: workerId });
  const former = openFormer(store);
  await submitMany(store, 2);
  await former.runOnce();
  const last = await submit(store);
  await store.redis.hset(store.keysOf('tiny').request(last), 'attempts', '2');
  await former.runOnce();
  const { reserved } = store.keysOf('tiny');
  const [dying, other] = (await store.redis.get(reserved)) === 'w1' ? ['w1', 'w2'] : ['w2', 'w1'];
  await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  await heartbeatWorker(store, { shard: 'tiny', workerId: other, incarnation: 'first' });
  const { reaped } = await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(reaped.map(({ workerId }) => workerId)).toEqual([dying]);
  await former.runOnce();
  expect(await store.redis.get(reserved)).toBe(other);
});

it('skips requests that left the queue after the snapshot, and leases the next ones instead', async () => {
  const store = openTestStore();
  await seedWorker(store, { workerId: 'w1', capacity: 2 });
  const [canceled = '', elsewhere = '', next, last] = await submitMany(store, 4);
  intercept(store, 'dispatch/dispatch-requests', async (dispatch) => {
    await cancelRequest(store, canceled);
    await seedWorker(store, { workerId: 'w2', capacity: 1 });
    await dispatchRequests(store, 'tiny', [{ workerId: 'w2', isExclusive: false, requestIds: [elsewhere] }]);
    return dispatch();
  });
  await openFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([[next, last]]);
  expect(idsOf(await inbox(store, 'w2'))).toEqual([[elsewhere]]);
});

it('a batch-former that fails in mid-tick leaves no lock: the next one leases at once', async () => {
  const store = openTestStore();
  await seedWorker(store);
  const ids = await submitMany(store, 3);
  for (const script of ['dispatch/read-dispatchable', 'dispatch/dispatch-requests']) {
    intercept(store, script, () => Promise.reject(new Error('no connection')));
    await expect(openFormer(store).runOnce()).rejects.toThrow('no connection');
  }
  await openFormer(store).runOnce();
  expect(idsOf(await inbox(store, 'w1'))).toEqual([ids]);
});

it('leases on new requests and freed slots without polling, also for models published after its start', async () => {
  const store = openTestStore();
  const { former } = openFormer(store);
  await former.start();
  await publishModel(store, { id: 'tiny' } as never);
  await seedWorker(store, { workerId: 'w1', capacity: 1 });
  const mailbox = openInbox(store, () => ({ shard: 'tiny', workerId: 'w1' }));
  onTestFinished(() => mailbox.close());
  for (let count = 0; count < 3; count++) {
    for (const id of [await submit(store), await submit(store)]) {
      const messages = await mailbox.next(10);
      expect(idsOf(messages)).toEqual([[id]]);
      await end(store, 'w1', deliveriesOf(messages)[0]!);
    }
  }
});

it('leases a request for an idle worker without reading a snapshot', async () => {
  const store = openTestStore();
  await seedWorker(store);
  await publishModel(store, { id: 'tiny' } as never);
  const looks = vi.spyOn(
    store.redis as unknown as Record<string, () => Promise<unknown>>,
    'dispatch/read-dispatchable',
  );
  const { former } = openFormer(store);
  await former.start();
  await expect.poll(() => looks.mock.settledResults.map(({ type }) => type)).toEqual(['fulfilled']);
  const mailbox = openInbox(store, () => ({ shard: 'tiny', workerId: 'w1' }));
  onTestFinished(() => mailbox.close());
  const first = await submit(store);
  const messages = await mailbox.next(10);
  expect([idsOf(messages), looks.mock.calls.length]).toEqual([[[first]], 1]);
  // If that fails, the next tick leases it without delay.
  await end(store, 'w1', deliveriesOf(messages)[0]!);
  intercept(store, 'dispatch/dispatch-requests', () => Promise.reject(new Error('no connection')));
  const second = await submit(store);
  expect(idsOf(await mailbox.next(10))).toEqual([[second]]);
  expect(looks).toHaveBeenCalledTimes(2);
});

it('leases an incomplete batch when its timeout expires, without another event', async () => {
  const store = openTestStore();
  await seedWorker(store);
  await submit(store);
  await publishModel(store, { id: 'tiny' } as never);
  const { former } = openFormer(store, { timeoutMs: 50 });
  await former.start();
  await expect.poll(async () => idsOf(await inbox(store, 'w1'))).toHaveLength(1);
  const id = await submit(store);
  await expect.poll(async () => idsOf(await inbox(store, 'w1')).slice(1)).toEqual([[id]]);
});

it('retries a subscription that failed for a model', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  await publishModel(store, { id: 'other' } as never);
  const { former, wakeups } = openFormer(store, { slowTickMs: 100 });
  const listen = vi.spyOn(wakeups, 'listen').mockRejectedValueOnce(new Error('NOPERM'));
  await former.start();
  await expect.poll(() => listen, { timeout: 3000 }).toHaveBeenCalledTimes(3);
});

it('several batch-formers lease each request once', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  for (let worker = 0; worker < 4; worker++) await seedWorker(store, { workerId: `w${worker}`, capacity: 5 });
  const ids = await submitMany(store, 40);
  const formers = Array.from({ length: 3 }, () => openFormer(store));
  for (let tick = 0; tick < 3; tick++) await Promise.all(formers.map((former) => former.runOnce()));
  const leased: string[] = [];
  for (let worker = 0; worker < 4; worker++) leased.push(...idsOf(await inbox(store, `w${worker}`)).flat());
  expect(leased.toSorted()).toEqual(ids.slice(0, 20).toSorted());
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 20, running: 20, freeSlots: 0 });
});
