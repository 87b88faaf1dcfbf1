/** From the queue to a worker: what a former sees, and what of its decision holds. */
import {
  age,
  allKeys,
  dispatchNext,
  openTestStore,
  seedRequest,
  seedRunning,
  seedWorker,
  startPrivateRedis,
  testEnvelope,
  write,
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

it('wakes formers with what they would see of a first request, and for room only when something waits', async () => {
  const store = openTestStore();
  const worker = await seedWorker(store);
  const wakeups = createEventHub(store);
  onTestFinished(() => wakeups.close());
  const heard: (Dispatchable | undefined)[] = [];
  await wakeups.listen('tiny', (seen) => heard.push(seen));
  await seedRequest(store);
  const look = await readDispatchable(store, 'tiny', view);
  await seedRequest(store);
  const [first, second] = await dispatchNext(store, 2);
  const drop = { type: 'end', end: { state: 'canceled' } } as const;
  await write(store, worker, { ...drop, delivery: first! });
  await seedRequest(store);
  await write(store, worker, { ...drop, delivery: second! });
  await expect.poll(() => heard).toHaveLength(4);
  expect(heard).toEqual([{ ...look, nowMs: expect.any(Number) }, undefined, undefined, undefined]);
});

it.each<[string, (store: StoreConnection) => Promise<unknown>]>([
  ['a model that is paused', async (store) => pauseModel(store, 'tiny')],
  [
    'a worker that has just died',
    async (store) => store.redis.hset(store.keysOf('tiny').swept, { count: 100, patience: 1 }),
  ],
])('says only that there is a first request to %s', async (_what, turn) => {
  const store = openTestStore();
  await seedWorker(store);
  await turn(store);
  const wakeups = createEventHub(store);
  onTestFinished(() => wakeups.close());
  const heard: (Dispatchable | undefined)[] = [];
  await wakeups.listen('tiny', (seen) => heard.push(seen));
  await seedRequest(store);
  await expect.poll(() => heard).toEqual([undefined]);
});

it('wakes nobody for a request that finds no room', async () => {
  const store = openTestStore();
  await seedRunning(store, { slots: 8, outputs: 8 });
  const wakeups = createEventHub(store);
  onTestFinished(() => wakeups.close());
  const heard: (Dispatchable | undefined)[] = [];
  await wakeups.listen('tiny', (seen) => heard.push(seen));
  const { id } = await seedRequest(store);
  await cancelRequest(store, id);
  await seedWorker(store, { workerId: 'w2' });
  await seedRequest(store);
  await expect.poll(() => heard.at(-1)?.requests).toHaveLength(1);
  // That there is a worker, and the second request.
  expect(heard).toHaveLength(2);
});

it('tells the worker for how long somebody has followed a request that waited', async () => {
  const store = openTestStore();
  await seedWorker(store);
  const [followed, other] = [await seedRequest(store), await seedRequest(store)];
  await readEvents(store, followed.id, { after: 0, followMs: 60_000 });
  await readEvents(store, other.id, { after: 0 });
  await dispatchNext(store, 2);
  const inbox = openInbox(store, { model: 'tiny', workerId: 'w1' });
  onTestFinished(() => inbox.close());
  const [message] = await inbox.next(10);
  const toldOf = message?.type === 'run' ? message.requests.map(({ followedMs }) => followedMs) : [];
  expect(toldOf).toEqual([expect.closeTo(60_000, -4), undefined]);
});

it('tells a worker at once that somebody follows what it runs', async () => {
  const store = openTestStore();
  const { delivery } = await seedRunning(store);
  await readEvents(store, delivery.id, { after: 0, followMs: 60_000 });
  const inbox = openInbox(store, { model: 'tiny', workerId: 'w1' });
  onTestFinished(() => inbox.close());
  const messages = await inbox.next(10);
  expect(messages.at(-1)).toEqual({ type: 'follow', token: delivery.token, forMs: 60_000 });
});

it('lets all read what there is though Redis is full, and nobody follow', async () => {
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

describe('looking', () => {
  it('sees idle workers first, then the one with most room and sleeping ones last, with their shapes, and who is next', async () => {
    const store = openTestStore();
    await seedRunning(store, { shapeKey: 'a', outputs: 2, slots: 2, worker: { workerId: 'busy' } });
    await seedRunning(store, { shapeKey: 'b', worker: { workerId: 'roomy' } });
    await seedWorker(store, { workerId: 'loading', state: 'loading' });
    await seedWorker(store, { workerId: 'asleep', capacity: 4, state: 'asleep' });
    await seedWorker(store, { workerId: 'idle', capacity: 4 });
    await seedWorker(store, { workerId: 'waked', state: 'asleep' });
    const { id } = await seedRequest(store, { shapeKey: 'a' });
    expect(await statusesOf(store, 'waked', [id])).toEqual(['leased']);
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
        { id: 'waked', isIdle: false, isAsleep: true, free: 7, capacity: 8, shapes: ['a'] },
      ],
      requests: [
        { id: next.id, shapeKey: 'c', slots: 3, attempts: 0, waitingSinceMs: expect.any(Number) as number },
        { id: last.id, shapeKey: '128x128', slots: 1, attempts: 0, waitingSinceMs: expect.any(Number) as number },
      ],
    });
    expect(nowMs - seen.requests[0]!.waitingSinceMs).toBeLessThan(60_000);
  });

  it('sees a bounded part, and passes over workers that were not heard of lately', async () => {
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

  it('sees nothing while nothing is free, and asks no request', async () => {
    const store = openTestStore();
    await seedRunning(store, { slots: 8, outputs: 8 });
    await seedRequest(store);
    expect(await readDispatchable(store, 'tiny', view)).toMatchObject({ workers: [], requests: [] });
  });
});

describe('committing', () => {
  it('moves requests to the inboxes of any number of workers in one script', async () => {
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
    const inbox = openInbox(store, { model: 'tiny', workerId: 'w1' });
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

  it('a lost answer: sent again it says the same and does nothing', async () => {
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

  it('gives a request to one of two formers', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const { id } = await seedRequest(store);
    const both = await Promise.all([statusesOf(store, 'w1', [id]), statusesOf(store, 'w1', [id])]);
    expect(both.flat().toSorted()).toEqual(['leased', 'moved']);
  });

  it('leaves what finds no room waiting; the last one in may overhang', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const ids = [];
    for (const slots of [6, 6, 1]) ids.push((await seedRequest(store, { slots })).id);
    expect(await statusesOf(store, 'w1', ids)).toEqual(['leased', 'leased', 'waiting']);
    expect(await readStats(store, 'tiny')).toMatchObject({ freeSlots: 0, queued: 1 });
    expect(await statusesOf(store, 'nobody', [ids[2]!])).toEqual(['waiting']);
  });

  it('exclusive: only an idle worker, and nobody joins it', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const alone = (await seedRequest(store)).id;
    expect(await statusesOf(store, 'w1', [alone], true)).toEqual(['waiting']);
    await write(store, worker, { type: 'end', delivery, end: { state: 'canceled' } });
    expect(await statusesOf(store, 'w1', [alone], true)).toEqual(['leased']);
    const other = (await seedRequest(store)).id;
    expect(await statusesOf(store, 'w1', [other])).toEqual(['waiting']);
    expect((await readStats(store, 'tiny')).freeSlots).toBe(0);
  });

  it('a reserved worker gets no shared leases until what it is for has run', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const [alone, other] = [(await seedRequest(store)).id, (await seedRequest(store)).id];
    await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
    expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBe('w1');
    expect(await statusesOf(store, 'w1', [other])).toEqual(['waiting']);
    await write(store, worker, { type: 'end', delivery, end: { state: 'canceled' } });
    expect(await statusesOf(store, 'w1', [other])).toEqual(['waiting']);
    expect(await statusesOf(store, 'w1', [alone], true)).toEqual(['leased']);
    expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBeUndefined();
  });

  it('ends what is overdue instead of leasing it', async () => {
    const store = openTestStore();
    await seedWorker(store);
    const overdue = await seedRequest(store, { startTimeoutMs: 1000 });
    await age(store, overdue, 1000);
    expect(await statusesOf(store, 'w1', [overdue.id])).toEqual(['expired']);
    expect(await readRequest(store, overdue.id)).toMatchObject({ request: { state: 'expired' } });
    expect(await readStats(store, 'tiny')).toMatchObject({ workers: { idle: 1 }, freeSlots: 8 });
  });
});

it('gives no token twice, though a call is sent again after its worker was lost', async () => {
  const store = openTestStore();
  await seedWorker(store);
  const { id } = await seedRequest(store);
  const lease = [{ workerId: 'w1', isExclusive: false, ids: [id] }];
  const values = ['call', '', JSON.stringify(lease)];
  const commit = () => runScript(store, 'dispatch/dispatch-requests', store.keysOf('tiny'), values);
  const first = await commit();
  expect(first).toEqual([['leased', expect.stringMatching(/^call\.1\./), '']]);
  expect(await commit()).toEqual(first);
  // Another life of the worker: what the last one had goes back.
  await seedWorker(store, { incarnation: 'second' });
  const again = await commit();
  expect(again).toEqual([['leased', expect.stringMatching(/^call\.1\./), '']]);
  expect(again).not.toEqual(first);
});

it('reserves no worker that is gone', async () => {
  const store = openTestStore();
  await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'gone' });
  await seedWorker(store);
  expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBeUndefined();
  await dispatchRequests(store, 'tiny', [], { reserveWorkerId: 'w1' });
  expect((await readDispatchable(store, 'tiny', view)).reservedWorkerId).toBe('w1');
});

describe('a paused model', () => {
  it('gives nothing out, also not what was decided before, and goes on where it was', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const ids = [(await seedRequest(store)).id, (await seedRequest(store)).id];
    await pauseModel(store, 'tiny');
    ids.push((await seedRequest(store)).id);
    expect(await readDispatchable(store, 'tiny', view)).toMatchObject({ workers: [], requests: [] });
    expect(await statusesOf(store, 'w1', ids)).toEqual(['waiting', 'waiting', 'waiting']);
    expect(await readStats(store, 'tiny')).toMatchObject({ isPaused: true, queued: 3 });
    expect(await write(store, worker, { type: 'end', delivery, end: { state: 'canceled' } })).toBe('finished');
    await resumeModel(store, 'tiny');
    expect((await dispatchNext(store, 3)).map(({ id }) => id)).toEqual(ids);
  });

  it('counts as served by nobody, with positions and deadlines as they are', async () => {
    const store = openTestStore();
    await seedWorker(store);
    await seedRequest(store);
    const envelope = await seedRequest(store);
    await pauseModel(store, 'tiny');
    expect(await readRequest(store, envelope.id)).toMatchObject({ request: { isPossible: false, queuePosition: 1 } });
    const refuse = { queueMaxLength: 100, unserved: 'refuse' } as const;
    expect(await admitRequest(store, testEnvelope(), refuse)).toEqual({ status: 'unserved' });
    await age(store, envelope, 600_000);
    expect(await expireRequests(store, 'tiny')).toEqual([envelope.id]);
  });

  it('is said twice without a difference, leaves no key, and wakes formers when it is over', async () => {
    const store = openTestStore();
    await seedRequest(store);
    const before = await allKeys(store);
    const wakeups = createEventHub(store);
    onTestFinished(() => wakeups.close());
    let wakenings = 0;
    await wakeups.listen('tiny', () => (wakenings += 1));
    for (const change of [pauseModel, pauseModel, resumeModel, resumeModel]) await change(store, 'tiny');
    await expect.poll(() => wakenings).toBe(2);
    expect(await allKeys(store)).toEqual(before);
  });
});
