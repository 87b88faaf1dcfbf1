/** Lists of an owner's requests: order, pages, filters, cost, and what is left of them. */
import { createRequestId, type RequestEnvelope } from '@darkroom/core';
import { allKeys, createCostMeter, openTestStore, seedRequest, type SeedRequest } from '@darkroom/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { publishModel, setShardCount } from '../models/model-registry.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { dropRequest } from '../dead/drop-request.ts';
import { cancelRequest } from './cancel-request.ts';
import { listRequests, type ListRequestsOptions } from './list-requests.ts';

let store: StoreConnection;

beforeEach(async () => {
  store = openTestStore();
  for (const id of ['tiny', 'small']) await publishModel(store, { id } as never);
});

async function submitMany(count: number, request: SeedRequest = {}): Promise<RequestEnvelope[]> {
  const envelopes: RequestEnvelope[] = [];
  for (let index = 0; index < count; index++)
    envelopes.push(await seedRequest(store, { owner: 'alice', startTimeoutMs: 1e9, timeoutMs: 1e9, ...request }));
  return envelopes;
}

function list(options: Partial<ListRequestsOptions> = {}) {
  return listRequests(store, { owner: 'alice', limit: 10, ...options });
}

/** Reads all pages and returns the ids of each. */
async function pagesOf(options: Partial<ListRequestsOptions> = {}): Promise<string[][]> {
  const pages: string[][] = [];
  let cursor: ListRequestsOptions['cursor'];
  do {
    const page = await list({ ...options, cursor });
    pages.push(page.requests.map(({ id }) => id));
    cursor = page.next;
  } while (cursor !== undefined);
  return pages;
}

async function idsOf(options: Partial<ListRequestsOptions>): Promise<string[]> {
  return (await pagesOf({ limit: 1, ...options })).flat();
}

async function listKeys(): Promise<string[]> {
  return (await allKeys(store)).filter((key) => /:(?:listed|expiring):/.test(key));
}

/** Gives all requests of a model the same time of admission. */
async function admitAtOnce(model: string): Promise<void> {
  const { listed } = store.keysOf(model);
  for (const id of await store.redis.zrange(listed('alice'), '0', '-1'))
    await store.redis.zadd(listed('alice'), '1000', id);
}

describe('a list of requests', () => {
  it('has the requests of all models and shards, newest first, each once over all pages', async () => {
    await setShardCount(store, 'small', { count: 2, known: ['small'] });
    const ids: string[] = [];
    for (let round = 0; round < 5; round++) {
      for (const shard of ['tiny', 'small', 'small~1']) {
        const id = createRequestId({ model: shard, owner: 'alice', secret: 'test', nowMs: Date.now() });
        const [{ id: seeded }] = (await submitMany(1, { id, model: shard.split('~')[0]! })) as [RequestEnvelope];
        ids.push(seeded);
      }
    }
    const pages = await pagesOf({ limit: 4 });
    expect(pages.map((page) => page.length)).toEqual([4, 4, 4, 3]);
    const times = (await list({ limit: 100 })).requests.map(({ createdAtMs }) => createdAtMs);
    expect(times).toEqual(times.toSorted((left, right) => right - left));
    expect(pages.flat().toSorted()).toEqual(ids.toSorted());
    expect((await pagesOf({ model: 'tiny' })).flat()).toEqual(ids.filter((id) => id.startsWith('tiny')).toReversed());
  });

  it('has each request once if many were admitted in the same millisecond', async () => {
    const submitted = [...(await submitMany(150)), ...(await submitMany(150, { model: 'small' }))];
    for (const model of ['tiny', 'small']) await admitAtOnce(model);
    const pages = await pagesOf({ limit: 7 });
    expect(pages.flat()).toEqual(
      submitted
        .map(({ id }) => id)
        .toSorted()
        .toReversed(),
    );
  });

  it('has no requests of other owners, and shows what a list needs of each', async () => {
    await submitMany(1, { owner: 'bob' });
    const [{ id }] = (await submitMany(1, { outputs: 2, options: { excerpt: 'a fox' } })) as [RequestEnvelope];
    await cancelRequest(store, id);
    const { requests } = await list();
    expect(requests).toEqual([
      expect.objectContaining({
        id,
        model: 'tiny',
        kind: 'image',
        state: 'canceled',
        outputCount: 2,
        excerpt: 'a fox',
      }),
    ]);
    expect((await list({ owner: 'bob' })).requests).toHaveLength(1);
    expect((await list({ owner: '' })).requests).toEqual([]);
  });

  it('can be limited to states and times', async () => {
    const [first, second, third] = (await submitMany(3)) as [RequestEnvelope, RequestEnvelope, RequestEnvelope];
    await cancelRequest(store, second.id);
    for (const [at, { id }] of [first, second, third].entries())
      await store.redis.zadd(store.keysOf('tiny').listed('alice'), String(1000 + at), id);
    expect(await idsOf({ states: ['queued'] })).toEqual([third.id, first.id]);
    expect(await idsOf({ states: ['running', 'canceled'] })).toEqual([second.id]);
    expect(await idsOf({ fromMs: 1001 })).toEqual([third.id, second.id]);
    expect(await idsOf({ untilMs: 1002 })).toEqual([second.id, first.id]);
    expect(await idsOf({ fromMs: 1001, untilMs: 1002 })).toEqual([second.id]);
  });

  it('examines at most 500 requests per page, and goes on from there', async () => {
    const [oldest] = (await submitMany(1)) as [RequestEnvelope];
    await cancelRequest(store, oldest.id);
    await submitMany(1000);
    const pages = await pagesOf({ states: ['canceled'] });
    expect(pages).toEqual([[], [], [oldest.id]]);
  });
});

it('a page takes the same Redis commands with 100 stored requests as with 10,000', async () => {
  const costOf = await createCostMeter(store);
  const costs: unknown[] = [];
  for (const stored of [100, 9900]) {
    await Promise.all(Array.from({ length: 100 }, () => submitMany(stored / 100)));
    // The first call of a script sends its source.
    const { next } = await list({ limit: 20 });
    for (const options of [{}, { cursor: next }, { states: ['queued' as const] }, { model: 'tiny' }]) {
      const { sent, inScripts } = await costOf(() => list({ limit: 20, ...options }));
      costs.push([sent.toSorted(), inScripts]);
    }
  }
  expect(costs.slice(4)).toEqual(costs.slice(0, 4));
  expect(costs[0]).toEqual([
    [...Array.from({ length: 2 }, () => 'evalsha'), ...Array.from({ length: 20 }, () => 'hgetall'), 'hkeys'],
    expect.objectContaining({ length: 22 }),
  ]);
}, 60_000);

describe('the keys of a list', () => {
  it('expire with its last request, also if none ends', async () => {
    store = openTestStore({ resultTtlMs: 500_000 });
    await submitMany(1, { startTimeoutMs: 100_000, timeoutMs: 200_000 });
    const ttls = async () => Promise.all((await listKeys()).map((key) => store.redis.pttl(key)));
    for (const ttl of await ttls()) expect([ttl > 600_000, ttl <= 700_000]).toEqual([true, true]);
    const [{ id }] = (await submitMany(1, { startTimeoutMs: 1000, timeoutMs: 6_000_000 })) as [RequestEnvelope];
    for (const ttl of await ttls()) expect([ttl > 6_000_000, ttl <= 6_500_000]).toEqual([true, true]);
    await cancelRequest(store, id);
    expect(await listKeys()).toHaveLength(2);
    for (const ttl of await ttls()) expect([ttl > 400_000, ttl <= 700_000]).toEqual([true, true]);
  });

  it('lose the requests that have expired, with the next submit or end of the owner', async () => {
    store = openTestStore({ resultTtlMs: 1 });
    // Its deadline is far away, so the keys do not expire.
    const [open] = (await submitMany(1)) as [RequestEnvelope];
    const ended = await submitMany(25);
    for (const { id } of ended) await cancelRequest(store, id);
    // The last ones may expire after the last end.
    await expect.poll(() => store.redis.exists(...ended.map(({ id }) => store.keysOf('tiny').request(id)))).toBe(0);
    const { listed, expiring } = store.keysOf('tiny');
    const [{ id }] = (await submitMany(1)) as [RequestEnvelope];
    for (const key of [listed('alice'), expiring('alice')])
      expect(await store.redis.zrange(key, '0', '-1')).toEqual([open.id, id]);
  });

  it('lose a failed request that an operator drops', async () => {
    const [{ id }] = (await submitMany(1)) as [RequestEnvelope];
    await cancelRequest(store, id);
    await dropRequest(store, id, { only: ['canceled'] });
    expect(await listKeys()).toEqual([]);
  });
});
