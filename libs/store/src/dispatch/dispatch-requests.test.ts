/** Dispatch: what a batch-former reads, and which of its leases are committed. */
import {
  backdateRequest,
  allKeys,
  dispatchNext,
  openTestStore,
  seedRequest,
  seedRunning,
  seedWorker,
  startPrivateRedis,
  testEnvelope,
  writeNow,
} from '@darkroom/testing';
import type { Dispatchable } from '@darkroom/core';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  admitRequest,
  cancelRequest,
  connectStore,
  createEventHub,
  dispatchRequests,
  expireRequests,
  openInbox,
  pauseModel,
  readDispatchable,
  readEvents,
  readRequest,
  readStats,
  resumeModel,
  type StoreConnection,
  sweepWorkers,
} from '../index.ts';
import { runScript } from '../connection/scripts.ts';

const view = { maxWorkers: 32, maxRequests: 100 };

async function statusesOf(
  store: StoreConnection,
  workerId: string,
  ids: string[],
  isExclusive = false,
): Promise<string[]> {
  const outcomes = await dispatchRequests(store, 'tiny', [{ workerId, isExclusive, requestIds: ids }]);
  return outcomes.map(({ status }) => status);
}

it('publishes the dispatchable state with the first request, and free capacity only while requests wait', async () => {
  const store = openTestStore();
  const worker = await seedWorker(store);
  const hub = createEventHub(store);
  onTestFinished(() => hub.close());
  const wakeups: (Dispatchable | undefined)[] = [];
  await hub.listen('tiny', (dispatchable) => wakeups.push(dispatchable));
  await seedRequest(store);
  const dispatchable = await readDispatchable(store, 'tiny', view);
  await seedRequest(store);
  const [first, second] = await dispatchNext(store, 2);
  const drop = { type: 'end', end: { state: 'canceled' } } as const;
  await writeNow(store, worker, { ...drop, delivery: first! });
  await seedRequest(store);
  await writeNow(store, worker, { ...drop, delivery: second! });
  await expect.poll(() => wakeups).toHaveLength(4);
  expect(wakeups).toEqual([{ ...dispatchable, nowMs: expect.any(Number) }, undefined, undefined, undefined]);
});

it.each<[string, (store: StoreConnection) => Promise<unknown>]>([
  ['a model that is paused', async (store) => pauseModel(store, 'tiny')],
  [
    'a worker that missed heartbeats',
    async (store) => store.redis.hset(store.keysOf('tiny').swept, { count: 100, maxMissed: 1 }),
  ],
])('publishes a wake-up without the dispatchable state for %s', async (_title, arrange) => {
  const store = openTestStore();
  await seedWorker(store);
  await arrange(store);
  const hub = createEventHub(store);
  onTestFinished(() => hub.close());
  const wakeups: (Dispatchable | undefined)[] = [];
  await hub.listen('tiny', (dispatchable) => wakeups.push(dispatchable));
  await seedRequest(store);
  await expect.poll(() => wakeups).toEqual([undefined]);
});

it('publishes no wake-up for a request if no slot is free', async () => {
  const store = openTestStore();
  await seedRunning(store, { slots: 8, outputs: 8 });
  const hub = createEventHub(store);
  onTestFinished(() => hub.close());
  const wakeups: (Dispatchable | undefined)[] = [];
  await hub.listen('tiny', (dispatchable) => wakeups.push(dispatchable));
  const { id } = await seedRequest(store);
  await cancelRequest(store, id);
  await seedWorker(store, { workerId: 'w2' });
  await seedRequest(store);
  await expect.poll(() => wakeups.at(-1)?.requests).toHaveLength(1);
  // One for the new worker, one for the second request.
  expect(wakeups).toHaveLength(2);
});

it('sends the worker the remaining follow time of a request that was followed while queued', async () => {
  const store = openTestStore();
  await seedWorker(store);
  const [followed, other] = [await seedRequest(store), await seedRequest(store)];
  await readEvents(store, followed.id, { after: 0, followMs: 60_000 });
  await readEvents(store, other.id, { after: 0 });
  await dispatchNext(store, 2);
  const inbox = openInbox(store, () => ({ shard: 'tiny', workerId: 'w1' }));
  onTestFinished(() => inbox.close());
  const [message] = await inbox.next(10);
  const followedMs = message?.type === 'run' ? message.requests.map((request) => request.followedMs) : [];
  expect(followedMs).toEqual([expect.closeTo(60_000, -4), undefined]);
});

it('sends a follow message to the worker when a client follows a running request', async () => {
  const store = openTestStore();
  const { delivery } = await seedRunning(store);
  await readEvents(store, delivery.id, { after: 0, followMs: 60_000 });
  const inbox = openInbox(store, () => ({ shard: 'tiny', workerId: 'w1' }));
  onTestFinished(() => inbox.close());
  const messages = await inbox.next(10);
  expect(messages.at(-1)).toEqual({ type: 'follow', token: delivery.token, forMs: 60_000 });
});

it('returns events but does not record followers while Redis is out of memory', async () => {
  const redis = await startPrivateRedis();
  onTestFinished(() => redis.stop());
  const store = connectStore({ url: redis.url, prefix: 'full' });
  onTestFinished(() => store.close());
  const { delivery } = await seedRunning(store);
  await store.redis.config('SET', 'maxmemory', '1');
  const events = await readEvents(store, delivery.id, { after: 0, followMs: 60_000 });
  expect(events.map(({ type }) => type)).toEqual(['queued', 'started']);
  expect(await store.redis.hexists(store.keysOf('tiny').request(delivery.id), 'followedUntilMs')).toBe(0);
});

describe('reading the dispatchable state', () => {
  it('lists idle workers, then busy ones by free slots, then sleeping ones, and the next requests', async () => {
    const store = openTestStore();
    await seedRunning(store, { shapeKey: 'a', outputs: 2, slots: 2, worker: { workerId: 'busy' } });
    await seedRunning(store, { shapeKey: 'b', worker: { workerId: 'roomy' } });
    await seedWorker(store, { workerId: 'loading', state: 'loading' });
    await seedWorker(store, { workerId: 'asleep', capacity: 4, state: 'asleep' });
    await seedWorker(store, { workerId: 'idle', capacity: 4 });
    await seedWorker(store, { workerId: 'waking', state: 'asleep' });
    const { id } = await seedRequest(store, { shapeKey: 'a' });
    expect(await statusesOf(store, 'waking', [id])).toEqual(['leased']);
    const next = await seedRequest(store, { priority: 1, outputs: 3, slots: 3, shapeKey: 'c' });
    const last = await seedRequest(store);
    const { nowMs, ...seen } = await readDispatchable(store, 'tiny', view);
    expect(seen).toEqual({
      reservedWorkerId: undefined,
      workers: [
        { id: 'idle', isIdle: true, isAsleep: false, free: 4, capacity: 4, shapes: [] },
        { id: 'roomy', isIdle: false, isAsleep: false, free: 7, capacity: 8, shapes: ['b'] },
        { id: 'busy', isIdle: false, isAsleep: false, free: 6, capacity: 8, shapes: ['a'] },
        { id: 'asleep', isIdle: false, isAsleep: true, free: 4, capacity: 4, shapes: [] },
        { id: 'waking', isIdle: false, isAsleep: true, free: 7, capacity: 8, shapes: ['a'] },
      ],
      requests: [
        { id: next.id, shapeKey: 'c', slots: 3, attemptsLeft: 3, waitingSinceMs: expect.any(Number) as number },
        { id: last.id, shapeKey: '128x128', slots: 1, attemptsLeft: 3, waitingSinceMs: expect.any(Number) as number },
      ],
    });
    expect(nowMs - seen.requests[0]!.waitingSinceMs).toBeLessThan(60_000);
  });

  it('is bounded, and skips workers that missed heartbeats', async () => {
    const store = openTestStore();
    for (let index = 0; index < 6; index++) await seedWorker(store, { workerId: `silent-${index}` });
    await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 2 });
    await sweepWorkers(store, 'tiny', { intervalMs: 0, missedSweeps: 2 });
    for (let index = 0; index < 3; index++) await seedWorker(store, { workerId: `alive-${index}` });
    for (let index = 0; index < 5; index++) await seedRequest(store);
    const seen = await readDispatchable(store, 'tiny', { maxWorkers: 2, maxRequests: 3 });
    expect(seen.workers.map(({ id }) => id)).toEqual(['alive-0', 'alive-1']);
    expect(seen.requests).toHaveLength(3);
  });

  it('returns no workers and no requests while no slot is free', async () => {
    const store = openTestStore();
    await seedRunning(store, { slots: 8, outputs: 8 });
    await seedRequest(store);
    expect(await readDispatchable(store, 'tiny', view)).toMatchObject({ workers: [], requests: [] });
  });
});

describe('committing', () => {
  it('moves requests to the inboxes of several workers in one script', async () => {
    const store = openTestStore();
    await seedWorker(store, { workerId: 'w1' });
    await seedWorker(store, { workerId: 'w2' });
    const [one, two, three] = [
      await seedRequest(store),
      await seedRequest(store, { slots: 3 }),
      await seedRequest(store),
    ];
    const outcomes = await dispatchRequests(store, 'tiny', [
      { workerId: 'w1', isExclusive: false, requestIds: [one.id, two.id] },
      { workerId: 'w2', isExclusive: false, requestIds: [three.id] },
    ]);
    const tokens = outcomes.map((outcome) => (outcome.status === 'leased' ? outcome.delivery.token : ''));
    expect(new Set(tokens).size).toBe(3);
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 0, busy: 2 }, slots: 16, freeSlots: 11 });
    const inbox = openInbox(store, () => ({ shard: 'tiny', workerId: 'w1' }));
    onTestFinished(() => inbox.close());
    const facts = { attempt: 1, isResumed: false, remainingMs: expect.any(Number) as number };
    expect(await inbox.next(1)).toEqual([
      {
        type: 'run',
        requests: [
          { token: tokens[0], slots: 1, envelope: one, ...facts },
          { token: tokens[1], slots: 3, envelope: two, ...facts },
        ],
      },
    ]);
    expect((await readEvents(store, one.id, { after: 0 })).map(({ type }) => type)).toEqual(['queued', 'started']);
    expect(await readRequest(store, one.id)).toMatchObject({ request: { state: 'running', attempts: 1 } });
  });

  it('returns the same outcomes without effect when resent after a lost reply', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const { id } = await seedRequest(store);
    const values = ['token', '', JSON.stringify([{ workerId: 'w1', isExclusive: false, ids: [id] }])];
    const commit = () => runScript(store, 'dispatch/dispatch-requests', store.keysOf('tiny'), values);
    const first = await commit();
    const before = await readStats(store, 'tiny');
    expect(await commit()).toEqual(first);
    expect(await readStats(store, 'tiny')).toEqual(before);
    expect(await store.redis.xlen(store.keysOf('tiny').inbox('w1'))).toBe(1);
  });

  it('leases a request once when two formers compete', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const { id } = await seedRequest(store);
    const both = await Promise.all([statusesOf(store, 'w1', [id]), statusesOf(store, 'w1', [id])]);
    expect(both.flat().toSorted()).toEqual(['leased', 'moved']);
  });

  it('leaves requests queued that find no free slot; the last lease may exceed the capacity', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const ids = [];
    for (const slots of [6, 6, 1]) ids.push((await seedRequest(store, { slots })).id);
    expect(await statusesOf(store, 'w1', ids)).toEqual(['leased', 'leased', 'waiting']);
    expect(await readStats(store, 'tiny')).toMatchObject({ freeSlots: 0, queued: 1 });
    expect(await statusesOf(store, 'missing', [ids[2]!])).toEqual(['waiting']);
  });

  it('grants an exclusive lease only on an idle worker, and no further lease on it', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const alone = (await seedRequest(store)).id;
    expect(await statusesOf(store, 'w1', [alone], true)).toEqual(['waiting']);
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } });
    expect(await statusesOf(store, 'w1', [alone], true)).toEqual(['leased']);
    const other = (await seedRequest(store)).id;
    expect(await statusesOf(store, 'w1', [other])).toEqual(['waiting']);
    expect((await readStats(store, 'tiny')).freeSlots).toBe(0);
  });

  it('grants no shared leases on a reserved worker until the exclusive request has run', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const [alone, other] = [(await seedRequest(store)).id, (await seedRequest(store)).id];
    await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
    expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBe('w1');
    expect(await statusesOf(store, 'w1', [other])).toEqual(['waiting']);
    await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } });
    expect(await statusesOf(store, 'w1', [other])).toEqual(['waiting']);
    expect(await statusesOf(store, 'w1', [alone], true)).toEqual(['leased']);
    expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBeUndefined();
  });

  it('expires a request past its start deadline instead of leasing it', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const overdue = await seedRequest(store, { startTimeoutMs: 1000 });
    await backdateRequest(store, overdue, 1000);
    expect(await statusesOf(store, 'w1', [overdue.id])).toEqual(['expired']);
    expect(await readRequest(store, overdue.id)).toMatchObject({ request: { state: 'expired' } });
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, freeSlots: 8 });
  });
});

it('never reuses a token, even if a call is resent after its worker was lost', async () => {
  const store = openTestStore();
  await seedWorker(store);
  const { id } = await seedRequest(store);
  const lease = [{ workerId: 'w1', isExclusive: false, ids: [id] }];
  const values = ['call', '', JSON.stringify(lease)];
  const commit = () => runScript(store, 'dispatch/dispatch-requests', store.keysOf('tiny'), values);
  const first = await commit();
  expect(first).toEqual([['leased', expect.stringMatching(/^call\.1\./), '']]);
  expect(await commit()).toEqual(first);
  // Another incarnation of the worker: leases of the last one are requeued.
  await seedWorker(store, { incarnation: 'second' });
  const again = await commit();
  expect(again).toEqual([['leased', expect.stringMatching(/^call\.1\./), '']]);
  expect(again).not.toEqual(first);
});

it('ignores a reservation of a worker that is not registered', async () => {
  const store = openTestStore();
  await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'gone' });
  await seedWorker(store);
  expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBeUndefined();
  await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
  expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBe('w1');
});

describe('a paused model', () => {
  it('commits no leases, not even planned ones, and resumes in the same order', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const ids = [(await seedRequest(store)).id, (await seedRequest(store)).id];
    await pauseModel(store, 'tiny');
    ids.push((await seedRequest(store)).id);
    expect(await readDispatchable(store, 'tiny', view)).toMatchObject({ workers: [], requests: [] });
    expect(await statusesOf(store, 'w1', ids)).toEqual(['waiting', 'waiting', 'waiting']);
    expect(await readStats(store, 'tiny')).toMatchObject({ isPaused: true, queued: 3 });
    expect(await writeNow(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('finished');
    await resumeModel(store, 'tiny');
    expect((await dispatchNext(store, 3)).map(({ id }) => id)).toEqual(ids);
  });

  it('counts as unserved, while positions and deadlines stay', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await seedRequest(store);
    const envelope = await seedRequest(store);
    await pauseModel(store, 'tiny');
    expect(await readRequest(store, envelope.id)).toMatchObject({ request: { isPossible: false, queuePosition: 1 } });
    const refuse = { queueMaxLength: 100, unserved: 'refuse' } as const;
    expect(await admitRequest(store, testEnvelope(), refuse)).toEqual({ status: 'unserved' });
    await backdateRequest(store, envelope, 600_000);
    expect(await expireRequests(store, 'tiny')).toEqual([envelope.id]);
  });

  it('can be paused and resumed twice, leaves no key, and wakes formers on resume', async () => {
    const store = openTestStore();
    await seedRequest(store);
    const before = await allKeys(store);
    const hub = createEventHub(store);
    onTestFinished(() => hub.close());
    let wakeups = 0;
    await hub.listen('tiny', () => (wakeups += 1));
    for (const change of [pauseModel, pauseModel, resumeModel, resumeModel]) await change(store, 'tiny');
    await expect.poll(() => wakeups).toBe(2);
    expect(await allKeys(store)).toEqual(before);
  });
});
