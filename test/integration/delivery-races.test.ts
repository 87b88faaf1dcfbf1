/** Races between scripts: lost replies, calls that are sent twice, processes that die in between. */
import type { RequestEnvelope } from '@darkroom/core';
import {
  admitRequest,
  cancelRequest,
  connectStore,
  type Delivery,
  dispatchRequests,
  heartbeatWorker,
  listDead,
  openInbox,
  publishModel,
  readDispatchable,
  readRequest,
  readStats,
  registerWorker,
  type RequestWrite,
  type StoreConnection,
  sweepWorkers,
  unregisterWorker,
  writeBatch,
} from '@darkroom/store';
import { dispatchNext, openRedisProxy, openTestStore, type RedisProxy, testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { submit, types } from './worker-bench.ts';

const identity = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };
const announcement = { state: 'ready', capacity: 8, info: {} } as const;
const admission = { queueMaxLength: 100, unserved: 'accept' } as const;

async function run(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<Delivery> {
  await registerWorker(store, identity, announcement);
  await submit(store, overrides);
  const [delivery] = await dispatchNext(store);
  return delivery!;
}

/** Opens a connection through a proxy. Run a script once before its reply is lost: Redis must have it cached. */
async function openBehindProxy(store: StoreConnection): Promise<{ proxy: RedisProxy; behindProxy: StoreConnection }> {
  const proxy = await openRedisProxy();
  const behindProxy = connectStore({ url: proxy.url, prefix: store.prefix });
  onTestFinished(() => behindProxy.close());
  return { proxy, behindProxy };
}

it('leases whose reply was lost are granted once', async () => {
  const store = openTestStore();
  const { proxy, behindProxy } = await openBehindProxy(store);
  const first = await run(behindProxy);
  const ids = [await submit(store), await submit(store)];
  proxy.loseNextAnswer();
  const lease = { workerId: 'w1', isExclusive: false, requestIds: ids };
  const outcomes = await dispatchRequests(behindProxy, 'tiny', [lease]);
  expect(proxy.lostAnswers).toBe(1);
  expect(outcomes.map(({ status }) => status)).toEqual(['leased', 'leased']);
  expect(await store.redis.xlen(store.keysOf('tiny').inbox('w1'))).toBe(2);
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 0, running: 3, freeSlots: 5 });
  for (const id of [first.id, ...ids]) {
    expect(await readRequest(store, id)).toMatchObject({ request: { attempts: 1 } });
    expect(await types(store, id)).toEqual(['queued', 'started']);
  }
  // The returned tokens are those that the worker received.
  const deliveries = outcomes.flatMap((outcome) => (outcome.status === 'leased' ? [outcome.delivery] : []));
  const writes = deliveries.map((delivery): RequestWrite => ({ type: 'reset', delivery, index: 0, offset: 0 }));
  expect(await writeBatch(store, identity, writes, { batch: 1 })).toEqual(['written', 'written']);
});

it('a submit whose reply was lost is admitted once, and another request with its id is a duplicate', async () => {
  const store = openTestStore();
  const { proxy, behindProxy } = await openBehindProxy(store);
  await admitRequest(behindProxy, testEnvelope(), admission);
  const envelope = testEnvelope();
  proxy.loseNextAnswer();
  expect(await admitRequest(behindProxy, envelope, admission)).toMatchObject({ status: 'admitted', position: 1 });
  expect(proxy.lostAnswers).toBe(1);
  expect(await admitRequest(store, { ...envelope, priority: 1 }, admission)).toEqual({ status: 'duplicate' });
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 2 });
});

it('a failed request whose reply was lost stays failed and is listed as dead once', async () => {
  const store = openTestStore();
  const { proxy, behindProxy } = await openBehindProxy(store);
  const delivery = await run(store);
  const error = { code: 'internal', message: 'no' };
  const steps: RequestWrite[] = [{ type: 'reset', delivery, index: 0, offset: 0 }];
  await writeBatch(behindProxy, identity, steps, { batch: 1 });
  proxy.loseNextAnswer();
  await writeBatch(behindProxy, identity, [{ type: 'end', delivery, end: { state: 'failed', error } }], { batch: 2 });
  expect(proxy.lostAnswers).toBe(1);
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'failed', error } });
  expect((await listDead(store, 'tiny', 10)).map(({ id }) => id)).toEqual([delivery.id]);
  expect((await types(store, delivery.id)).filter((type) => type === 'failed')).toEqual(['failed']);
  expect(await readStats(store, 'tiny')).toMatchObject({ running: 0, freeSlots: 8 });
});

it('a requeue whose reply was lost queues the request once and frees its slots once', async () => {
  const store = openTestStore();
  const { proxy, behindProxy } = await openBehindProxy(store);
  const delivery = await run(store, { outputs: 3 });
  await writeBatch(behindProxy, identity, [{ type: 'release', delivery, slots: 1 }], { batch: 1 });
  proxy.loseNextAnswer();
  await writeBatch(behindProxy, identity, [{ type: 'give-back', delivery, reason: 'worker_stopped' }], { batch: 2 });
  expect(proxy.lostAnswers).toBe(1);
  expect(await types(store, delivery.id)).toEqual(['queued', 'started', 'queued']);
  expect(await readStats(store, 'tiny')).toMatchObject({ queued: 1, running: 0, freeSlots: 8 });
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { attempts: 0 } });
});

it('a write with a stale token frees the slots of that delivery', async () => {
  const store = openTestStore();
  const delivery = await run(store, { outputs: 3 });
  await store.redis.hset(store.keysOf('tiny').request(delivery.id), 'token', 'another token');
  expect(await readStats(store, 'tiny')).toMatchObject({ freeSlots: 5 });
  const writes: RequestWrite[] = [{ type: 'give-back', delivery, reason: 'engine_failed' }];
  expect(await writeBatch(store, identity, writes, { batch: 1 })).toEqual(['lost']);
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1, busy: 0 }, freeSlots: 8 });
});

it('a worker that missed a few sweeps gets no leases until its next heartbeat', async () => {
  const store = openTestStore();
  await registerWorker(store, identity, announcement);
  const id = await submit(store);
  const { workers } = await readDispatchable(store, 'tiny', { maxWorkers: 8, maxRequests: 8 });
  expect(workers.map((worker) => worker.id)).toEqual(['w1']);
  for (let count = 0; count < 4; count++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 6 });
  expect(await dispatchNext(store)).toEqual([]);
  // This also holds for a worker that the snapshot contained.
  const lease = { workerId: 'w1', isExclusive: false, requestIds: [id] };
  expect(await dispatchRequests(store, 'tiny', [lease])).toEqual([{ status: 'waiting' }]);
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { silent: 1 } });
  expect(await heartbeatWorker(store, identity)).toBe('alive');
  expect(await dispatchRequests(store, 'tiny', [lease])).toMatchObject([{ status: 'leased' }]);
});

it('a requeued request has started in time, so its start deadline no longer applies', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  const keys = store.keysOf('tiny');
  await store.redis.hset(keys.request(delivery.id), 'startDeadlineMs', 1);
  await unregisterWorker(store, identity);
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued', attempts: 0 } });
  await registerWorker(store, { ...identity, incarnation: 'second' }, announcement);
  expect(await dispatchNext(store)).toMatchObject([{ id: delivery.id }]);
});

it('requeues requests of a worker that registers again under its name, and rejects its earlier writes', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  await registerWorker(store, { ...identity, incarnation: 'second' }, announcement);
  expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'queued', attempts: 1 } });
  const writes: RequestWrite[] = [{ type: 'end', delivery, end: { state: 'canceled' } }];
  expect(await writeBatch(store, identity, writes, { batch: 1 })).toEqual(['lost']);
  expect(await heartbeatWorker(store, identity)).toBe('reaped');
  expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, queued: 1, slots: 8, freeSlots: 8 });
});

it('cancels a canceling request when its worker is reaped', async () => {
  const store = openTestStore();
  await publishModel(store, { id: 'tiny' } as never);
  const { id } = await run(store);
  expect(await cancelRequest(store, id)).toEqual({ status: 'canceling' });
  for (let count = 0; count < 2; count++) await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 1 });
  expect(await readRequest(store, id)).toMatchObject({ request: { state: 'canceled' } });
});

it('an inbox read whose connection broke is repeated', async () => {
  const store = openTestStore();
  const { proxy, behindProxy } = await openBehindProxy(store);
  await registerWorker(store, identity, announcement);
  const inbox = openInbox(behindProxy, () => identity);
  onTestFinished(() => inbox.close());
  expect(await inbox.next(0.1)).toEqual([]);
  const id = await submit(store);
  const reading = inbox.next(10);
  proxy.loseNextAnswer();
  await dispatchNext(store);
  expect(await reading).toMatchObject([{ type: 'run', requests: [{ envelope: { id } }] }]);
  expect(proxy.lostAnswers).toBe(1);
  // Heartbeats trim only what the worker has read.
  await submit(store);
  await dispatchNext(store);
  await heartbeatWorker(store, identity, { lastRead: inbox.lastRead });
  expect(await inbox.next(10)).toHaveLength(1);
  await heartbeatWorker(store, identity, { lastRead: inbox.lastRead });
  expect(await store.redis.xlen(store.keysOf('tiny').inbox('w1'))).toBe(0);
});

it('reads an inbox over a new connection when the old one is silent', { timeout: 15_000 }, async () => {
  const store = openTestStore();
  const { proxy, behindProxy } = await openBehindProxy(store);
  // Fakes the timer that detects a silent connection: on real time, later messages would be lost with the connection.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const inbox = openInbox(behindProxy, () => identity);
  onTestFinished(() => inbox.close());
  expect(await inbox.next(0.1)).toEqual([]);
  // A firewall that drops a connection does the same: neither side notices.
  proxy.silence();
  const messages = inbox.next(0.1);
  await store.redis.xadd(store.keysOf('tiny').inbox('w1'), '*', 'message', '{"type":"drained"}');
  vi.advanceTimersByTime(5100);
  expect([...(await messages), ...(await inbox.next(1))]).toEqual([{ type: 'drained' }]);
});

it('sends commands again over a new connection when the old one is silent', { timeout: 15_000 }, async () => {
  const store = openTestStore();
  const proxy = await openRedisProxy();
  const behindProxy = connectStore({ url: proxy.url, prefix: store.prefix, silenceMs: 200 });
  onTestFinished(() => behindProxy.close());
  await registerWorker(behindProxy, identity, announcement);
  proxy.silence();
  expect(await heartbeatWorker(behindProxy, identity)).toBe('alive');
});
