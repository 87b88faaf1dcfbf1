/** Who is served next: owners with waiting work by weight, an owner's own requests by priority and arrival. */
import { createRequestId, type RequestEnvelope } from '@darkroom/core';
import { allKeys, openTestStore, testEnvelope } from '@darkroom/testing';
import { Worker } from 'bullmq';
import { describe, expect, it } from 'vitest';
import {
  admitRequest,
  type AdmitRequestOptions,
  cancelRequest,
  expireRequests,
  giveBackJob,
  leaseBatch,
  openJobTaker,
  readPool,
  readRequest,
  registerWorker,
  type StoreConnection,
  sweepLeaks,
} from './index.ts';
import { queueName } from './keys.ts';
import { runScript } from './scripts.ts';

const admission = { queueMaxLength: 10_000, unserved: 'accept' } as const;
let arrivals = 0;

async function submit(
  store: StoreConnection,
  owner: string,
  overrides: Partial<RequestEnvelope & AdmitRequestOptions> = {},
): Promise<string> {
  const { weight = 1, queueMaxLength = 10_000, ...fields } = overrides;
  // Ids in the order of arrival: tags that are equal go by id.
  const id = createRequestId({ model: 'tiny', nowMs: 1_700_000_000_000 + arrivals++ });
  const envelope = testEnvelope({ id, owner, ...fields });
  const result = await admitRequest(store, envelope, { ...admission, weight, queueMaxLength });
  expect(result.status).toBe('admitted');
  return id;
}

async function submitMany(store: StoreConnection, owner: string, count: number, overrides = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) ids.push(await submit(store, owner, overrides));
  return ids;
}

async function take(store: StoreConnection, count: number): Promise<string[]> {
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  const jobs = await taker.take(count);
  await taker.close();
  return jobs.map(({ id }) => id);
}

/** The owners of what comes out next, as a word of their first letters. */
async function served(store: StoreConnection, count: number): Promise<string> {
  const owners = await Promise.all(
    (await take(store, count)).map((id) => store.redis.hget(store.keysOf('tiny').request(id), 'owner')),
  );
  return owners.map((owner) => owner![0]).join('');
}

async function positionOf(store: StoreConnection, id: string): Promise<number | undefined> {
  const result = await readRequest(store, id);
  return result.status === 'found' ? result.request.queuePosition : undefined;
}

describe('sharing', () => {
  it('one owner with a thousand requests does not make the one of another wait', async () => {
    const store = openTestStore();
    await submitMany(store, 'alice', 1000);
    await take(store, 8);
    const one = await submit(store, 'bob');
    // Beside the eight that were taken before it came.
    expect(await positionOf(store, one)).toBeLessThanOrEqual(9);
    expect(await served(store, 2)).toContain('b');
  });

  it('owners with waiting work take turns, and by their weights', async () => {
    const store = openTestStore();
    await submitMany(store, 'alice', 20);
    await submitMany(store, 'bob', 20, { weight: 3 });
    const word = await served(store, 16);
    expect(word.match(/b/g)).toHaveLength(12);
    expect(word.slice(0, 8).match(/b/g)).toHaveLength(6);
  });

  it('shares what requests cost, not their number', async () => {
    const store = openTestStore();
    await submitMany(store, 'alice', 20, { cost: 5 });
    await submitMany(store, 'bob', 20, { cost: 1 });
    const word = await served(store, 12);
    expect(word.match(/a/g)).toHaveLength(2);
  });

  it('an owner who was away has saved nothing up', async () => {
    const store = openTestStore();
    await submitMany(store, 'alice', 50);
    await take(store, 30);
    await submitMany(store, 'bob', 20);
    expect((await served(store, 10)).match(/b/g)).toHaveLength(5);
  });

  it('an owner who sends one at a time gets no more than its share', async () => {
    const store = openTestStore();
    await submitMany(store, 'alice', 20);
    await submit(store, 'bob', { cost: 5 });
    let word = '';
    for (let turn = 0; turn < 12; turn++) {
      const owner = await served(store, 1);
      word += owner;
      if (owner === 'b') await submit(store, 'bob', { cost: 5 });
    }
    expect(word.match(/b/g)).toHaveLength(2);
  });

  it('cancelled and expired requests give their share back', async () => {
    const store = openTestStore();
    const now = Date.now();
    const dropped = await submitMany(store, 'alice', 10);
    const overdue = await submitMany(store, 'alice', 10, {
      createdAtMs: now - 1000,
      deadlineMs: now,
      startDeadlineMs: now,
    });
    const last = await submit(store, 'alice');
    await submitMany(store, 'bob', 3);
    await Promise.all(dropped.map((id) => cancelRequest(store, id)));
    expect(await expireRequests(store, 'tiny', now)).toHaveLength(overdue.length);
    expect(await positionOf(store, last)).toBe(0);
  });
});

it('formers that choose before either has taken get what is next, both of them', async () => {
  const store = openTestStore();
  await submitMany(store, 'alice', 3);
  const [first] = await submitMany(store, 'bob', 3);
  const { base } = store.keysOf('tiny');
  // The second is sent again, because the reply got lost with the connection. All in one go: a choice stands for a second.
  const names = ['one', 'other', 'other'];
  await Promise.all(names.map((name) => runScript(store.redis, 'choose-next', base, 1, name)));
  const wait = await store.queueOf('tiny').getWaiting();
  expect(wait).toHaveLength(2);
  expect(wait.map(({ id }) => id)).toContain(first);
});

it('what was chosen by a former that died is what the next one takes', async () => {
  const store = openTestStore();
  await submitMany(store, 'alice', 3);
  const { base, takings } = store.keysOf('tiny');
  await runScript(store.redis, 'choose-next', base, 2, 'dead');
  await store.redis.pexpire(takings, 0);
  expect(await take(store, 1)).toHaveLength(1);
  expect(await store.queueOf('tiny').getWaitingCount()).toBe(1);
});

describe('inside an owner', () => {
  it('serves by priority, then arrival, in the places that the owner has', async () => {
    const store = openTestStore();
    const [first, second] = await submitMany(store, 'alice', 2);
    const other = await submitMany(store, 'bob', 2);
    const urgent = await submit(store, 'alice', { priority: 1 });
    // Of equal tags the older request goes first.
    expect(await take(store, 5)).toEqual([other[0], urgent, first, other[1], second]);
  });

  it('a request of the highest priority takes nothing from another owner', async () => {
    const store = openTestStore();
    await submitMany(store, 'alice', 10, { priority: 1 });
    await submitMany(store, 'bob', 10, { priority: 10 });
    expect((await served(store, 10)).match(/b/g)).toHaveLength(5);
  });
});

it('positions are the order in which requests come out, whatever was sent, cancelled and given back', async () => {
  const store = openTestStore();
  const ids: string[] = [];
  let seed = 7;
  const draw = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let index = 0; index < 120; index++) {
    const options = { priority: 1 + draw(10), cost: 1 + draw(9) };
    const owner = ['alice', 'bob', 'carol'][draw(3)]!;
    ids.push(await submit(store, owner, { ...options, weight: owner === 'bob' ? 2 : 1 }));
    if (draw(5) === 0) await cancelRequest(store, ids[draw(ids.length)]!);
    if (draw(20) === 0) await take(store, 1);
  }
  const waiting: [string, number][] = [];
  for (const id of ids) {
    const result = await readRequest(store, id);
    if (result.status !== 'found' || result.request.state !== 'queued') continue;
    waiting.push([id, result.request.queuePosition!]);
  }
  const held = waiting.length - (await readPool(store, 'tiny')).takeable;
  const expected = waiting.toSorted(([, left], [, right]) => left - right).map(([id]) => id);
  expect(expected.length).toBeGreaterThan(40);
  expect(await take(store, expected.length)).toEqual(expected.slice(held));
});

it('what a former gives back goes before everything that has not been chosen', async () => {
  const store = openTestStore();
  const [first] = await submitMany(store, 'alice', 3);
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  const [job] = await taker.take(1);
  await taker.close();
  await submit(store, 'alice', { priority: 1 });
  await giveBackJob(store, 'tiny', job!);
  expect(await take(store, 1)).toEqual([first]);
});

it('the pool tells the rows of the next requests in the fair order', async () => {
  const store = openTestStore();
  const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 4, ttlMs: 60_000, info: {} });
  await submit(store, 'alice', { slots: 1 });
  await submit(store, 'alice', { slots: 2 });
  await submit(store, 'bob', { slots: 3 });
  expect(await readPool(store, 'tiny')).toMatchObject({ takeable: 3, nextRows: [1, 3, 2] });
});

it('what came out before its turn moves nobody who comes new behind the others', async () => {
  const store = openTestStore();
  const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 4, ttlMs: 60_000, info: {} });
  await submitMany(store, 'alice', 2, { weight: 0.001 });
  await submitMany(store, 'bob', 5);
  // BullMQ's order is that of arrival.
  const worker = new Worker(queueName, null, {
    connection: store.redis,
    prefix: store.keysOf('tiny').base,
    autorun: false,
  });
  const taken = [];
  for (const token of ['a', 'b']) taken.push({ id: (await worker.getNextJob(token, { block: false })).id!, token });
  await worker.close();
  const options = { mode: 'shared', maxRows: 4, maxAttempts: 3 } as const;
  expect((await leaseBatch(store, 'tiny', taken, options)).outcomes).toEqual(['leased', 'leased']);
  expect(await positionOf(store, await submit(store, 'carol'))).toBeLessThanOrEqual(1);
});

describe('a full queue', () => {
  it('is full for the owner who filled it, and has places for others', async () => {
    const store = openTestStore();
    const few = { queueMaxLength: 10 };
    await submitMany(store, 'alice', 10, few);
    const more = (owner: string) => admitRequest(store, testEnvelope({ owner }), { ...admission, ...few });
    expect(await more('alice')).toEqual({ status: 'overloaded', waiting: 10 });
    await submitMany(store, 'bob', 5, few);
    expect(await more('bob')).toEqual({ status: 'overloaded', waiting: 15 });
    await take(store, 3);
    expect(await more('alice')).toMatchObject({ status: 'overloaded' });
  });
});

it('an owner at its limit of open requests is refused, over all models, until one ends', async () => {
  const store = openTestStore();
  const limited = { ...admission, openRequestsMax: 3, otherModels: ['small'] };
  const first = testEnvelope({ owner: 'alice' });
  await admitRequest(store, first, limited);
  await admitRequest(store, testEnvelope({ owner: 'alice' }), limited);
  await admitRequest(store, testEnvelope({ owner: 'alice', model: 'small' }), { ...limited, otherModels: ['tiny'] });
  expect(await admitRequest(store, testEnvelope({ owner: 'alice' }), limited)).toEqual({ status: 'limited', open: 3 });
  expect(await admitRequest(store, testEnvelope({ owner: 'bob' }), limited)).toMatchObject({ status: 'admitted' });
  await cancelRequest(store, first.id);
  expect(await admitRequest(store, testEnvelope({ owner: 'alice' }), limited)).toMatchObject({ status: 'admitted' });
});

it('a sweep forgets requests that are no more, so that they count against nobody', async () => {
  const store = openTestStore();
  const lost = await submitMany(store, 'alice', 2);
  const kept = await submit(store, 'bob');
  await store.redis.del(...lost.map((id) => store.keysOf('tiny').request(id)));
  expect((await sweepLeaks(store, 'tiny')).orphans.toSorted()).toEqual(lost.toSorted());
  const keys = store.keysOf('tiny');
  expect(await store.redis.zrange(keys.queued, '0', '-1')).toEqual([kept]);
  const found = await allKeys(store);
  expect(found).not.toContain(keys.line('alice'));
  expect(found).not.toContain(keys.open('alice'));
  expect(await store.redis.smembers(keys.lines)).toEqual(['bob']);
});

it.each(['', 'alice'])(
  "a request of %j that is no more holds nobody up, and its place is nobody else's",
  async (owner) => {
    const store = openTestStore();
    const [lost, next] = await submitMany(store, owner, 2);
    await store.redis.del(store.keysOf('tiny').request(lost!));
    expect(await take(store, 1)).toEqual([next]);
    const other = await submit(store, 'bob');
    const later = await submit(store, owner);
    expect(await take(store, 3)).toEqual([other, later, lost]);
  },
);
