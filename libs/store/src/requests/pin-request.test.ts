/** Pinned requests: their keys, links and bytes stay for 30 days after their end. */
import { allKeys, openTestStore, seedRequest, seedRunning, testEnvelope, writeNow } from '@darkroom/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import { createRequestId } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { dropRequest } from '../dead/drop-request.ts';
import { admitRequest } from './admit-request.ts';
import { cancelRequest } from './cancel-request.ts';
import { listRequests } from './list-requests.ts';
import { pinRequest } from './pin-request.ts';
import { readRequest } from './read-request.ts';
import { readIdSecret } from './request-ids.ts';

const hourMs = 3_600_000;
const thirtyDaysMs = 30 * 24 * hourMs;
const owner = 'alice';
const options = { ownerMaxBytes: 1e9 };
let store: StoreConnection;

beforeEach(() => {
  store = openTestStore({ resultTtlMs: hourMs });
});

/** Runs a request with an attachment and two outputs to its end. */
async function succeed(): Promise<string> {
  const attachments = new Map([['image', Buffer.from('png')]]);
  const { worker, delivery } = await seedRunning(store, { owner, outputs: 2, options: { ...options, attachments } });
  for (const index of [0, 1]) {
    const info = { index, contentType: 'image/png', bytes: 1, chunks: 1 };
    await writeNow(store, worker, { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('x') });
  }
  await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 2 } });
  return delivery.id;
}

function pin(id: string, isPinned = true, by = owner) {
  return pinRequest(store, id, { owner: by, isPinned });
}

/** Returns the keys of a request and of its owner with their TTL, in hours, rounded up. */
async function ttls(id: string): Promise<Record<string, number>> {
  const keys = (await allKeys(store)).filter((key) => key.includes(id) || key.endsWith(`:${owner}`));
  const hours = keys.map(async (key) => {
    const name = key.replace(/^.*\}:/, '').replace(id, 'R');
    return [name, Math.ceil((await store.redis.pttl(key)) / hourMs)] as const;
  });
  return Object.fromEntries(await Promise.all(hours));
}

const requestKeys = ['events:R', 'input:R', 'inputs:R', 'output:R:0', 'output:R:1', 'request:R'];
const ownerKeys = ['bytes:alice', 'expiring:alice', 'listed:alice'];
const all = (hours: number) => Object.fromEntries([...requestKeys, ...ownerKeys].map((name) => [name, hours]));

async function bytesOf(): Promise<Record<string, string>> {
  return store.redis.hgetall(store.keysOf('tiny').bytes(owner));
}

describe('a pinned request', () => {
  it('and its results expire 30 days after its end, also if it is pinned twice', async () => {
    const id = await succeed();
    const found = await readRequest(store, id);
    const { endedAtMs } = (found as { request: { endedAtMs: number } }).request;
    const done = { status: 'done', expiresAtMs: endedAtMs + thirtyDaysMs };
    expect([await pin(id), await pin(id)]).toEqual([done, done]);
    const { expiresAtMs } = done;
    expect(await readRequest(store, id)).toMatchObject({ request: { isPinned: true, expiresAtMs } });
    expect((await listRequests(store, { owner, model: 'tiny', limit: 1 })).requests).toMatchObject([
      { id, isPinned: true, expiresAtMs },
    ]);
    expect(await ttls(id)).toEqual(all(720));
  });

  it('expires as before once it is unpinned', async () => {
    const id = await succeed();
    const before = await readRequest(store, id);
    await pin(id);
    await pin(id, false);
    expect(await readRequest(store, id)).toEqual(before);
    const found = await ttls(id);
    for (const name of requestKeys) expect([name, found[name]]).toEqual([name, 1]);
  });

  it('stays for another minute if its own time is over when it is unpinned', async () => {
    const id = await succeed();
    await pin(id);
    const request = store.keysOf('tiny').request(id);
    await store.redis.hincrby(request, 'endedAtMs', -3 * hourMs);
    const result = await pin(id, false);
    const ttlMs = await store.redis.pttl(request);
    expect([result.status, ttlMs > 0, ttlMs <= 60_000]).toEqual(['done', true, true]);
  });

  it('stays no longer than 30 days after its end if it is unpinned and pinned in turns', async () => {
    const id = await succeed();
    await pin(id);
    const request = store.keysOf('tiny').request(id);
    // Its 30 days end in 20 s.
    for (const field of ['endedAtMs', 'expiresAtMs']) await store.redis.hincrby(request, field, 20_000 - thirtyDaysMs);
    const expiresAtMs = Number(await store.redis.hget(request, 'expiresAtMs'));
    for (const isPinned of [false, true, false, true])
      expect(await pin(id, isPinned)).toEqual({ status: 'done', expiresAtMs });
  });

  it('remains listed and counted when later requests of its owner expire', async () => {
    const id = await succeed();
    const pinnedBytes = Number((await bytesOf())['total']);
    await pin(id);
    const later = await succeed();
    expect(await ttls(later)).toMatchObject({ 'request:R': 1, 'bytes:alice': 721, 'listed:alice': 720 });
    // The later request has expired.
    const fields = await bytesOf();
    const expiries = Object.keys(fields).filter((field) => field !== 'total');
    const [first, last] = expiries.toSorted() as [string, string];
    expect(expiries).toHaveLength(2);
    expect(Number(last) - Number(first)).toBeGreaterThan(20 * 24 * hourMs);
    await store.redis.hdel(store.keysOf('tiny').bytes(owner), first);
    await store.redis.hset(store.keysOf('tiny').bytes(owner), '1', fields[first]!);
    await seedRequest(store, { owner, options });
    const { total, [last]: pinned } = await bytesOf();
    expect([Number(pinned), Number(total) > pinnedBytes]).toEqual([pinnedBytes, true]);
    expect(Number(total)).toBeLessThan(2 * pinnedBytes);
  });

  it('counts towards the limit of its owner, and no longer once it is dropped', async () => {
    const id = await succeed();
    await pin(id);
    const { total } = await bytesOf();
    const limits = { queueMaxLength: 10, unserved: 'accept', ownerMaxBytes: Number(total) + 6100 } as const;
    const admit = () => admitRequest(store, testEnvelope({ owner, input: 'x'.repeat(200) }), limits);
    expect(await admit()).toEqual({ status: 'over-budget', bytes: Number(total) });
    await dropRequest(store, id, { only: ['succeeded'] });
    expect((await bytesOf())['total']).toBe('0');
    expect((await admit()).status).toBe('admitted');
  });
});

it('an open request, one of another owner and an expired one cannot be pinned', async () => {
  const secret = await readIdSecret(store);
  const id = createRequestId({ model: 'tiny', owner, secret, nowMs: Date.now() });
  await seedRequest(store, { id, owner });
  expect(await pin(id)).toEqual({ status: 'open', state: 'queued' });
  await cancelRequest(store, id);
  expect(await pin(id, true, 'bob')).toEqual({ status: 'unknown' });
  expect(await readRequest(store, id)).toMatchObject({ request: { isPinned: false } });
  await dropRequest(store, id, { only: ['canceled'] });
  expect(await pin(id)).toEqual({ status: 'gone' });
  expect(await pin('tiny')).toEqual({ status: 'unknown' });
});
