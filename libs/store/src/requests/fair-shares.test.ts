/** Fair queueing: owners with queued requests share by weight; requests of one owner go by priority, then arrival. */
import {
  backdateRequest,
  dispatchNext,
  openTestStore,
  seedRequest,
  type SeedRequest,
  seedRunning,
  seedWorker,
  testEnvelope,
  writeNow,
} from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { admitRequest, cancelRequest, expireRequests, readRequest, type StoreConnection } from '../index.ts';

const admission = { queueMaxLength: 10_000, unserved: 'accept' } as const;

/** Opens a store with one worker that never fills up. */
async function openServed(): Promise<StoreConnection> {
  const store = openTestStore();
  await seedWorker(store, { capacity: 100_000 });
  return store;
}

async function submit(
  store: StoreConnection,
  owner: string,
  { weight = 1, ...request }: SeedRequest & { weight?: number } = {},
) {
  return (await seedRequest(store, { ...request, owner, options: { weight } })).id;
}

async function submitMany(store: StoreConnection, owner: string, count: number, overrides = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index++) ids.push(await submit(store, owner, overrides));
  return ids;
}

async function take(store: StoreConnection, count: number): Promise<string[]> {
  return (await dispatchNext(store, count)).map(({ id }) => id);
}

/** Leases the next requests and returns the first letters of their owners. */
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
  it('serves the only request of one owner next to a thousand of another', async () => {
    const store = await openServed();
    await submitMany(store, 'alice', 1000);
    await take(store, 8);
    const one = await submit(store, 'bob');
    expect(await positionOf(store, one)).toBeLessThanOrEqual(1);
    expect(await served(store, 2)).toContain('b');
  });

  it('serves owners in proportion to their weights', async () => {
    const store = await openServed();
    await submitMany(store, 'alice', 20);
    await submitMany(store, 'bob', 20, { weight: 3 });
    const word = await served(store, 16);
    expect(word.match(/b/g)).toHaveLength(12);
    expect(word.slice(0, 8).match(/b/g)).toHaveLength(6);
  });

  it('shares cost, not the number of requests', async () => {
    const store = await openServed();
    await submitMany(store, 'alice', 20, { cost: 5 });
    await submitMany(store, 'bob', 20, { cost: 1 });
    expect((await served(store, 12)).match(/a/g)).toHaveLength(2);
  });

  it('gives an idle owner no credit for the time it was idle', async () => {
    const store = await openServed();
    await submitMany(store, 'alice', 50);
    await take(store, 30);
    await submitMany(store, 'bob', 20);
    // Half, plus one because of the service that is just ending.
    expect((await served(store, 10)).match(/b/g)!.length).toBeLessThanOrEqual(6);
  });

  it('gives an owner that submits one request at a time no more than its share', async () => {
    const store = await openServed();
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

  it('returns the share of canceled and expired requests to their owner', async () => {
    const store = await openServed();
    const dropped = await submitMany(store, 'alice', 10);
    const overdue = await submitMany(store, 'alice', 10, { timeoutMs: 600_000 });
    const last = await submit(store, 'alice');
    await submitMany(store, 'bob', 3);
    await Promise.all(dropped.map((id) => cancelRequest(store, id)));
    for (const id of overdue) await backdateRequest(store, testEnvelope({ id }), 600_000);
    expect(await expireRequests(store, 'tiny')).toHaveLength(overdue.length);
    expect(await positionOf(store, last)).toBe(0);
    // New requests are not charged for those that were never served.
    await take(store, 1);
    await submit(store, 'alice');
    expect((await served(store, 2)).match(/b/g)).toHaveLength(1);
  });
});

describe('requests of one owner', () => {
  it('are served by priority, then arrival, in the places of that owner', async () => {
    const store = await openServed();
    const [first, second] = await submitMany(store, 'alice', 2);
    const other = await submitMany(store, 'bob', 2);
    const urgent = await submit(store, 'alice', { priority: 1 });
    expect(await take(store, 5)).toEqual([urgent, other[0], first, other[1], second]);
  });

  it('of the highest priority take no share from another owner', async () => {
    const store = await openServed();
    await submitMany(store, 'alice', 10, { priority: 1 });
    await submitMany(store, 'bob', 10, { priority: 10 });
    expect((await served(store, 10)).match(/b/g)).toHaveLength(5);
  });
});

it('queue positions equal the dispatch order after random submits, cancels and requeues', async () => {
  const store = await openServed();
  const worker = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };
  const ids: string[] = [];
  let seed = 7;
  const draw = (below: number): number => (seed = (seed * 48_271) % 2_147_483_647) % below;
  for (let index = 0; index < 200; index++) {
    const options = { priority: 1 + draw(10), cost: 1 + draw(9) };
    const owner = ['alice', 'bob', 'carol'][draw(3)]!;
    ids.push(await submit(store, owner, { ...options, weight: owner === 'bob' ? 2 : 1 }));
    if (draw(5) === 0) await cancelRequest(store, ids[draw(ids.length)]!);
    if (draw(10) > 0) continue;
    const [delivery] = await dispatchNext(store);
    if (draw(2) === 0)
      await writeNow(store, worker, { type: 'give-back', delivery: delivery!, reason: 'worker_stopped' });
  }
  const waiting: [string, number][] = [];
  for (const id of ids) {
    const result = await readRequest(store, id);
    if (result.status !== 'found' || result.request.state !== 'queued') continue;
    waiting.push([id, result.request.queuePosition!]);
  }
  const expected = waiting.toSorted(([, left], [, right]) => left - right).map(([id]) => id);
  expect(expected.length).toBeGreaterThan(60);
  expect(waiting.map(([, position]) => position).toSorted((left, right) => left - right)).toEqual(
    waiting.map((_entry, index) => index),
  );
  expect(await take(store, expected.length)).toEqual(expected);
  const keys = store.keysOf('tiny');
  expect(await store.redis.exists(keys.places, keys.front, keys.waiting)).toBe(0);
});

it('dispatches requeued requests before all that never ran', async () => {
  const store = openTestStore();
  const { worker, delivery } = await seedRunning(store, { owner: 'alice' });
  await submit(store, 'bob');
  await submit(store, 'alice', { priority: 1 });
  await writeNow(store, worker, { type: 'give-back', delivery, reason: 'worker_stopped' });
  expect(await positionOf(store, delivery.id)).toBe(0);
  expect(await take(store, 1)).toEqual([delivery.id]);
});

it('reports the cost of the requests ahead in the queue', async () => {
  const store = await openServed();
  await submitMany(store, 'alice', 4, { cost: 3 });
  const last = await seedRequest(store, { owner: 'alice', cost: 3 });
  const result = await readRequest(store, last.id);
  expect(result).toMatchObject({ request: { queuePosition: 4, costAhead: 12 } });
  await take(store, 4);
  expect(await readRequest(store, last.id)).toMatchObject({ request: { queuePosition: 0, costAhead: 0 } });
});

describe('a full queue', () => {
  it('refuses the owner that filled it, and admits an equal share of others', async () => {
    const store = await openServed();
    const few = { ...admission, queueMaxLength: 10 };
    const more = (owner: string) => admitRequest(store, testEnvelope({ owner }), few);
    for (let index = 0; index < 10; index++) expect(await more('alice')).toMatchObject({ status: 'admitted' });
    const { cost } = testEnvelope();
    expect(await more('alice')).toEqual({ status: 'overloaded', waiting: 10, costAhead: 10 * cost });
    for (let index = 0; index < 5; index++) expect(await more('bob')).toMatchObject({ status: 'admitted' });
    expect(await more('bob')).toEqual({ status: 'overloaded', waiting: 15, costAhead: 15 * cost });
    await take(store, 3);
    expect(await more('alice')).toMatchObject({ status: 'overloaded' });
  });
});

it('refuses an owner at its limit of open requests over all models, until one ends', async () => {
  const store = openTestStore();
  const limited = { ...admission, openRequestsMax: 3, otherShards: ['small'] };
  const first = testEnvelope({ owner: 'alice' });
  await admitRequest(store, first, limited);
  await admitRequest(store, testEnvelope({ owner: 'alice' }), limited);
  await admitRequest(store, testEnvelope({ owner: 'alice', model: 'small' }), { ...limited, otherShards: ['tiny'] });
  expect(await admitRequest(store, testEnvelope({ owner: 'alice' }), limited)).toEqual({ status: 'limited', open: 3 });
  expect(await admitRequest(store, testEnvelope({ owner: 'bob' }), limited)).toMatchObject({ status: 'admitted' });
  await cancelRequest(store, first.id);
  expect(await admitRequest(store, testEnvelope({ owner: 'alice' }), limited)).toMatchObject({ status: 'admitted' });
});
