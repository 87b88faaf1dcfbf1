/** What the requests of an owner keep in Redis, and may come to. */
import { allKeys, dispatchNext, openTestStore, testEnvelope } from '@darkroom/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';
import { readEvents } from '../events/read-events.ts';
import { type RequestWrite, splitOutput, writeBatch } from '../events/write-batch.ts';
import { registerWorker } from '../workers/register-worker.ts';
import { admitRequest, type AdmitRequestResult } from './admit-request.ts';
import { cancelRequest } from './cancel-request.ts';
import { dropRequest } from './drop-request.ts';

const resultTtlMs = 80_000;
const worker = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
let store: StoreConnection;
let batch: number;

beforeEach(async () => {
  store = openTestStore({ resultTtlMs });
  batch = 0;
  await registerWorker(store, worker, { state: 'ready', capacity: 8, info: {} });
});

/** A request of alice's, who may keep 1,000 bytes. */
async function admit(bytes: number, owner = 'alice'): Promise<AdmitRequestResult & { id: string }> {
  const envelope = testEnvelope({ owner, bytes });
  const options = { queueMaxLength: 100, unserved: 'accept', ownerMaxBytes: 1000 } as const;
  return { id: envelope.id, ...(await admitRequest(store, envelope, options)) };
}

async function write(...writes: RequestWrite[]): Promise<void> {
  await writeBatch(store, worker, writes, { batch: ++batch });
}

function preview(delivery: Delivery, done: number): RequestWrite {
  const progress = { index: 0, done, total: 4 };
  return {
    type: 'preview',
    delivery,
    progress,
    of: { done, total: 4 },
    data: Buffer.alloc(300),
    contentType: 'image/webp',
  };
}

/** Has the next request run, which writes two previews of 300 bytes and a picture, of 100 unless it is said. */
async function runNext(bytes = 100): Promise<Delivery> {
  const [delivery] = await dispatchNext(store);
  const picture = { index: 0, contentType: 'image/png', data: Buffer.alloc(bytes), facts: {}, chunkBytes: 60 };
  await write(preview(delivery!, 1), preview(delivery!, 2), ...splitOutput(delivery!, picture));
  return delivery!;
}

async function finish(delivery: Delivery): Promise<void> {
  await write({ type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
}

describe('the budget of an owner', () => {
  it('refuses what could go over it, with the figures, and stores nothing', async () => {
    expect(await admit(600)).toMatchObject({ status: 'admitted' });
    const before = await allKeys(store);
    expect(await admit(401)).toMatchObject({ status: 'over-budget', bytes: 401, kept: 600 });
    expect(await allKeys(store)).toEqual(before);
    expect(await store.redis.hget(store.keysOf('tiny').open, 'alice')).toBe('1');
    expect(await admit(1000, 'bob')).toMatchObject({ status: 'admitted' });
    expect(await admit(400)).toMatchObject({ status: 'admitted' });
    expect(await admit(1)).toMatchObject({ status: 'over-budget', bytes: 1, kept: 1000 });
  });

  it('counts of a request that ended what it left, until the time of that is over', async () => {
    await admit(1000);
    const delivery = await runNext();
    expect(await admit(1)).toMatchObject({ status: 'over-budget', kept: 1000 });
    await finish(delivery);
    expect(await admit(901)).toMatchObject({ status: 'over-budget', bytes: 901, kept: 100 });
    const key = store.keysOf('tiny').bytes('alice');
    const { open, ...ended } = await store.redis.hgetall(key);
    const [[until, left] = ['', '']] = Object.entries(ended);
    expect([open, left, Object.keys(ended)]).toEqual(['0', '100', [until]]);
    const [seconds] = await store.redis.time();
    const restMs = Number(until) - Number(seconds) * 1000;
    expect(restMs).toBeGreaterThan(resultTtlMs - 60_000);
    expect(restMs).toBeLessThanOrEqual(resultTtlMs * (1 + 1 / 8) + 1000);
    // As if that time had come.
    await store.redis.multi().hdel(key, until).hset(key, '1', '100').exec();
    expect(await admit(1000)).toMatchObject({ status: 'admitted' });
    expect(await store.redis.hgetall(key)).toEqual({ open: '1000' });
  });

  it('counts an output once, whoever writes it again', async () => {
    await admit(1000);
    const lost = await runNext(110);
    await write({ type: 'give-back', delivery: lost, reason: 'engine_failed' });
    await finish(await runNext());
    expect(await admit(901)).toMatchObject({ status: 'over-budget', bytes: 901, kept: 100 });
  });

  it('counts nothing any more of one that was removed, however often', async () => {
    const { id } = await admit(500);
    await finish(await runNext());
    await admit(500);
    await finish(await runNext());
    expect(await admit(801)).toMatchObject({ status: 'over-budget', kept: 200 });
    const drops = await Promise.all([1, 2].map(() => dropRequest(store, id, { only: ['succeeded'] })));
    expect(drops).toContainEqual({ status: 'dropped' });
    expect(await admit(901)).toMatchObject({ status: 'over-budget', kept: 100 });
  });

  it('counts nothing of one that left nothing, and is forgotten with the last', async () => {
    const { id } = await admit(1000);
    const key = store.keysOf('tiny').bytes('alice');
    expect(await store.redis.pttl(key)).toBe(-1);
    await cancelRequest(store, id);
    expect(await store.redis.pttl(key)).toBeGreaterThan(0);
    expect(await admit(1000)).toMatchObject({ status: 'admitted' });
    expect(await store.redis.pttl(key)).toBe(-1);
  });
});

describe('previews', () => {
  it('go with the end of their request: the log says how far it was, and the picture is there', async () => {
    const { id } = await admit(1000);
    const delivery = await runNext();
    const previews = async () => (await readEvents(store, id, { after: 0 })).filter(({ type }) => type === 'preview');
    expect(await previews()).toMatchObject([{ done: 1, data: Buffer.alloc(300) }, { done: 2 }]);
    expect(await store.redis.hlen(store.keysOf('tiny').previews(id))).toBe(2);
    await finish(delivery);
    expect((await allKeys(store)).filter((key) => key.includes(id))).toEqual(
      [store.keysOf('tiny').events(id), store.keysOf('tiny').input(id), store.keysOf('tiny').output(id, 0)]
        .concat(store.keysOf('tiny').request(id))
        .toSorted(),
    );
    const ended = await previews();
    expect(ended).toMatchObject([
      { index: 0, done: 1, total: 4 },
      { index: 0, done: 2, total: 4 },
    ]);
    for (const event of ended) expect(event).not.toHaveProperty('data');
  });
});
