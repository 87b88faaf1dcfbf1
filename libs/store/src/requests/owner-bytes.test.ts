/** Bytes that the requests of an owner store: counted exactly, and limited. */
import { allKeys, dispatchNext, openTestStore, seedWorker, testEnvelope, writeNow } from '@darkroom/testing';
import { beforeEach, describe, expect, it } from 'vitest';
import type { StoreConnection } from '../connection/store-connection.ts';
import type { Delivery } from '../dispatch/dispatch-requests.ts';
import { readEvents } from '../events/read-events.ts';
import { type RequestWrite, splitOutput } from '../events/write-batch.ts';
import type { WorkerIdentity } from '../workers/register-worker.ts';
import { openInbox } from '../workers/worker-inbox.ts';
import { admitRequest, type AdmitRequestOptions } from './admit-request.ts';
import { cancelRequest } from './cancel-request.ts';
import { dropRequest } from '../dead/drop-request.ts';
import { readRequest } from './read-request.ts';
import { retryRequest } from '../dead/retry-request.ts';

const resultTtlMs = 80_000;
const limit = 30_000;
/** Fields and keys of each request. */
const own = 6000;
let store: StoreConnection;
let worker: WorkerIdentity;

beforeEach(async () => {
  store = openTestStore({ resultTtlMs });
  worker = await seedWorker(store);
});

/** Submits a request whose envelope has `bytes` bytes, by default of alice. */
async function admit(
  bytes: number,
  { owner = 'alice', ...options }: Partial<AdmitRequestOptions> & { owner?: string } = {},
) {
  const empty = testEnvelope({ owner, outputs: 2, input: '' });
  const envelope = { ...empty, input: 'x'.repeat(bytes - JSON.stringify(empty).length) };
  const limits = { queueMaxLength: 100, unserved: 'accept', ownerMaxBytes: limit } as const;
  return { id: envelope.id, ...(await admitRequest(store, envelope, { ...limits, ...options })) };
}

function write(...writes: RequestWrite[]) {
  return writeNow(store, worker, ...writes);
}

const of = { done: 1, total: 4 };

function preview(delivery: Delivery, bytes = 300): RequestWrite {
  const progress = { index: 0, ...of };
  return { type: 'preview', delivery, progress, of, data: Buffer.alloc(bytes), contentType: 'image/webp' };
}

function output(delivery: Delivery, bytes: number, index = 0): RequestWrite[] {
  return splitOutput(delivery, {
    index,
    contentType: 'image/png',
    data: Buffer.alloc(bytes),
    facts: {},
    chunkBytes: 60,
  });
}

function finish(delivery: Delivery) {
  return write({ type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
}

/** Runs the next request: two previews of 300 bytes and one image. */
async function runNext(imageBytes = 100): Promise<Delivery> {
  const [delivery] = await dispatchNext(store);
  await write(preview(delivery!), preview(delivery!), ...output(delivery!, imageBytes));
  return delivery!;
}

async function totalOf(owner = 'alice'): Promise<number> {
  return Number((await store.redis.hget(store.keysOf('tiny').bytes(owner), 'total')) ?? 0);
}

/** Returns the bytes that the keys of a request hold: its input, attachments, previews, checkpoints, outputs, texts. */
async function storedBytes(id: string): Promise<number> {
  const { redis } = store;
  const sizes = await Promise.all(
    (await allKeys(store)).map(async (key) => {
      const kind = /:(?<kind>input|promptless|checkpoint|inputs|previews|output|events):/.exec(key)?.groups?.['kind'];
      if (!key.includes(id) || kind === undefined) return 0;
      if (kind === 'events') {
        const texts = (await redis.xrange(key, '-', '+')).filter(([, fields]) => fields[2] === 'span');
        return texts.reduce((sum, [, fields]) => sum + Buffer.byteLength(fields[1]!), 0);
      }
      if (['input', 'promptless', 'checkpoint'].includes(kind)) return redis.strlen(key);
      const { info: _info, ...values } = await redis.hgetall(key);
      return Object.values(values).reduce((sum, value) => sum + Buffer.byteLength(value), 0);
    }),
  );
  return sizes.reduce((sum, size) => sum + size, own);
}

describe('the stored bytes of an owner', () => {
  it('are counted exactly through the life of an image request', async () => {
    const attachments = new Map([['image', Buffer.alloc(700)]]);
    const { id } = await admit(1000, { attachments });
    const expectExact = async (): Promise<void> => expect(await totalOf()).toBe(await storedBytes(id));
    await expectExact();
    const lost = await runNext(250);
    for (const bytes of [500, 200])
      await write({ type: 'checkpoint', delivery: lost, index: 1, done: 1, data: Buffer.alloc(bytes) });
    await expectExact();
    expect(await totalOf()).toBe(own + 1000 + 700 + 600 + 250 + 200);
    await write({ type: 'give-back', delivery: lost, reason: 'engine_failed' });
    const delivery = await runNext(290);
    await write(...output(delivery, 50, 1));
    await expectExact();
    expect(await totalOf()).toBe(own + 1000 + 700 + 1200 + 290 + 50 + 200);
    await finish(delivery);
    await expectExact();
    expect(await totalOf()).toBe(own + 1000 + 700 + 290 + 50);
  });

  it('are counted exactly through the life of a text request, without the prompt if it is not retained', async () => {
    const attachments = new Map([['image', Buffer.alloc(700)]]);
    const { id } = await admit(1000, { attachments, promptless: testEnvelope() });
    const expectExact = async (): Promise<void> => expect(await totalOf()).toBe(await storedBytes(id));
    await expectExact();
    const [delivery] = await dispatchNext(store);
    const text = { delivery: delivery!, index: 1, text: 'wörter' };
    for (const offset of [0, 6]) {
      await write({ type: 'delta', offset, ...text });
      await expectExact();
    }
    const before = await totalOf();
    await write({ type: 'snapshot', isWhole: true, ...text, offset: 0 });
    expect(await totalOf()).toBeLessThan(before);
    await write({ type: 'delta', offset: 6, ...text }, ...output(delivery!, 90), ...output(delivery!, 90, 1));
    await expectExact();
    await finish(delivery!);
    await expectExact();
    expect(await totalOf()).toBeLessThan(own + 1000);
  });

  it('include the memory that Redis takes for a small request beside its values', async () => {
    const { id } = await admit(500);
    const delivery = await runNext(100);
    await finish(delivery);
    const keys = (await allKeys(store)).filter((key) => key.includes(id));
    const usages = await Promise.all(keys.map((key) => store.redis.memory('USAGE', key)));
    const memory = usages.reduce<number>((sum, usage) => sum + usage!, 0);
    expect(memory).toBeGreaterThan((await totalOf()) / 2);
    expect(memory).toBeLessThan(await totalOf());
  });

  it('are counted until the results expire', async () => {
    await admit(1000);
    await finish(await runNext());
    expect(await totalOf()).toBe(own + 1100);
    const key = store.keysOf('tiny').bytes('alice');
    const { total: _total, ...ended } = await store.redis.hgetall(key);
    const [[until, left] = ['', '']] = Object.entries(ended);
    expect([left, Object.keys(ended)]).toEqual([`${own + 1100}`, [until]]);
    const [seconds] = await store.redis.time();
    const restMs = Number(until) - Number(seconds) * 1000;
    expect(restMs).toBeGreaterThan(resultTtlMs - 60_000);
    expect(restMs).toBeLessThanOrEqual(resultTtlMs * (1 + 1 / 8) + 1000);
    // Simulate the expiry.
    await store.redis
      .multi()
      .hdel(key, until)
      .hset(key, '1', `${own + 1100}`)
      .exec();
    expect(await admit(limit - own)).toMatchObject({ status: 'admitted' });
    expect(await store.redis.hgetall(key)).toEqual({ total: `${limit}` });
  });

  it('no longer include a dropped request, which is subtracted once', async () => {
    const { id } = await admit(500);
    await finish(await runNext());
    await admit(500);
    await finish(await runNext());
    expect(await totalOf()).toBe(2 * (own + 600));
    const drops = await Promise.all([1, 2].map(() => dropRequest(store, id, { only: ['succeeded'] })));
    expect(drops).toContainEqual({ status: 'dropped' });
    expect(await totalOf()).toBe(own + 600);
  });

  it('have a TTL after the last open request', async () => {
    const { id } = await admit(1000);
    const key = store.keysOf('tiny').bytes('alice');
    expect(await store.redis.pttl(key)).toBe(-1);
    await cancelRequest(store, id);
    expect(await store.redis.pttl(key)).toBeGreaterThan(0);
    expect(await admit(1000)).toMatchObject({ status: 'admitted' });
    expect(await store.redis.pttl(key)).toBe(-1);
    // Also if the last open request was admitted without a limit.
    const unlimited = await admit(1000, { ownerMaxBytes: undefined });
    await finish(await runNext());
    await cancelRequest(store, unlimited.id);
    expect(await store.redis.pttl(key)).toBeGreaterThan(0);
  });

  it.each(['\0at 0 99999999999999999999 x', '\0at 999999999999 0 x', `\0at 0 0 ${'x'.repeat(2000)}`])(
    'count a text as long as it is, although it looks like a reference to the byte store: %j',
    async (text) => {
      await admit(1000);
      const [delivery] = await dispatchNext(store);
      const data = Buffer.from(text);
      const split = { index: 0, contentType: 'text/plain', data, facts: {}, chunkBytes: 3000 };
      expect(await write(...splitOutput(delivery!, split))).toBe('written');
      expect(await totalOf()).toBe(own + 1000 + data.length);
      expect(await finish(delivery!)).toBe('finished');
    },
  );

  it('are not counted without a limit', async () => {
    await admit(1000, { ownerMaxBytes: undefined });
    await finish(await runNext());
    expect(await store.redis.exists(store.keysOf('tiny').bytes('alice'))).toBe(0);
  });
});

describe('an owner over its limit of bytes', () => {
  const error = {
    code: 'too_many_bytes',
    message: `The requests of this key store more than ${limit} bytes, which is its limit; wait for results to expire.`,
  };

  it('gets no new request, and nothing is stored', async () => {
    await admit(600);
    const before = await allKeys(store);
    expect(await admit(limit - 2 * own - 599)).toMatchObject({ status: 'over-budget', bytes: own + 600 });
    expect(await allKeys(store)).toEqual(before);
    expect(await store.redis.hget(store.keysOf('tiny').open, 'alice')).toBe('1');
    expect(await admit(limit - own, { owner: 'bob' })).toMatchObject({ status: 'admitted' });
    expect(await admit(limit - 2 * own - 600)).toMatchObject({ status: 'admitted' });
  });

  it('has its running request fail at the next write that stores bytes, and its worker cancels it', async () => {
    const { id } = await admit(1000);
    const [delivery] = await dispatchNext(store);
    expect(await write(preview(delivery!, limit - own - 1000))).toBe('written');
    const progress = { type: 'progress', delivery: delivery!, progress: { index: 0, ...of }, of } as const;
    expect(await write(progress)).toBe('written');
    await write(...output(delivery!, 100));
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'failed', error } });
    expect(await totalOf()).toBe(own + 1100);
    expect(await write(progress)).toBe('ended');
    const inbox = openInbox(store, () => worker);
    expect((await inbox.next(1)).map(({ type }) => type)).toEqual(['run', 'cancel']);
    inbox.close();
    expect(await finish(delivery!)).toBe('ended');
    expect(await store.redis.exists(store.keysOf('tiny').leases('w1'))).toBe(0);
  });

  it('may finish a request whose last write crosses the limit', async () => {
    const { id } = await admit(1000);
    const [delivery] = await dispatchNext(store);
    const end = { type: 'end', delivery: delivery!, end: { state: 'succeeded', outputs: 1 } } as const;
    expect(await write(...output(delivery!, limit), end)).toBe('finished');
    expect(await totalOf()).toBe(own + 1000 + limit);
    expect(await readRequest(store, id)).toMatchObject({ request: { state: 'succeeded' } });
  });

  it('has its queued requests fail when they would start, a retry too', async () => {
    const failed = await admit(1000);
    const queued = await admit(1000);
    const [first] = await dispatchNext(store, 1);
    await write({ type: 'end', delivery: first!, end: { state: 'failed', error } });
    await store.redis.hset(store.keysOf('tiny').bytes('alice'), 'total', limit + 1);
    expect(await retryRequest(store, failed.id)).toMatchObject({ status: 'retried' });
    expect(await dispatchNext(store, 2)).toEqual([]);
    expect(await readRequest(store, queued.id)).toMatchObject({ request: { state: 'failed', error } });
    expect(await store.redis.zcard(store.keysOf('tiny').waiting)).toBe(0);
  });
});

describe('previews', () => {
  it('are deleted when their request ends; their events and the image remain', async () => {
    const { id } = await admit(1000);
    const delivery = await runNext();
    const previews = async () => (await readEvents(store, id, { after: 0 })).filter(({ type }) => type === 'preview');
    expect(await previews()).toMatchObject([{ done: 1, data: Buffer.alloc(300) }, { done: 1 }]);
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
      { index: 0, done: 1, total: 4 },
    ]);
    for (const event of ended) expect(event).not.toHaveProperty('data');
  });
});
