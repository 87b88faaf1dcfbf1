/** Writes of a worker while requests run: in order, fenced, applied once. */
import { createRequestId, type StoredEvent, textAfter, type StoredTextEvent } from '@darkroom/core';
import { dispatchNext, openTestStore, seedRequest, seedRunning, testEnvelope, writeNow } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createEventHub,
  type Delivery,
  readEvents,
  readOutput,
  readOutputChunk,
  readRequest,
  readResumePoint,
  readStats,
  type RequestWrite,
  splitOutput,
  type StoreConnection,
  writeBatch,
} from '../index.ts';

const of = { done: 1, total: 4 };

function progress(delivery: Delivery, done = 1): RequestWrite {
  return { type: 'progress', delivery, progress: { index: 0, done, total: 4 }, of: { done, total: 4 } };
}

function delta(delivery: Delivery, offset: number, text: string, index = 0): RequestWrite {
  return { type: 'delta', delivery, index, offset, text };
}

async function eventsOf(store: StoreConnection, id: string, after = 2) {
  return (await readEvents(store, id, { after })).map(({ timestampMs: _timestampMs, ...event }) => event);
}

describe('a batch', () => {
  it('writes events of several requests in one call, in order per request', async () => {
    const store = openTestStore();
    const { worker, delivery: one } = await seedRunning(store);
    await seedRequest(store);
    const [two] = await dispatchNext(store);
    const preview = { data: Buffer.from([0, 10, 255, 10]), contentType: 'image/webp' };
    const data = Buffer.from(Array.from({ length: 100 }, (_value, index) => index));
    const output = { index: 0, contentType: 'image/png', data, facts: { seed: 7 }, chunkBytes: 33 };
    const writes: RequestWrite[] = [
      progress(one),
      {
        type: 'preview',
        delivery: two!,
        progress: { index: 0, done: 2, total: 4 },
        of: { done: 2, total: 4 },
        ...preview,
      },
      progress(one, 2),
      ...splitOutput(two!, output),
    ];
    const outcomes = await writeBatch(store, worker, writes, { batch: 1_000_001 });
    expect(outcomes).toEqual(writes.map(() => 'written'));
    expect(await eventsOf(store, one.id)).toEqual([
      { sequence: 3, type: 'progress', index: 0, done: 1, total: 4 },
      { sequence: 4, type: 'progress', index: 0, done: 2, total: 4 },
    ]);
    const info = { index: 0, contentType: 'image/png', bytes: 100, chunks: 4, seed: 7 };
    expect(await eventsOf(store, two!.id)).toEqual([
      { sequence: 3, type: 'preview', index: 0, done: 2, total: 4, ...preview },
      ...[0, 1, 2, 3].map((chunkIndex) => ({ sequence: 4 + chunkIndex, type: 'output', output: info, chunkIndex })),
    ]);
    expect(await readOutput(store, two!.id, 0)).toEqual({ info, data });
    expect(await readRequest(store, two!.id)).toMatchObject({ request: { done: 2, total: 4, outputs: [info] } });
  });

  it('publishes the bytes of a small chunk, but not those of a large one', async () => {
    const store = openTestStore();
    const { delivery, worker } = await seedRunning(store);
    const hub = createEventHub(store);
    onTestFinished(() => hub.close());
    const published: StoredEvent[] = [];
    await hub.subscribe(delivery.id, (event) => published.push(event));
    const data = Buffer.alloc(65_537 + 3, 10);
    const chunks = splitOutput(delivery, { index: 0, contentType: 'image/png', data, facts: {}, chunkBytes: 65_538 });
    await writeNow(store, worker, ...chunks);
    await expect.poll(() => published).toHaveLength(2);
    const bytes = published.map((event) => (event.type === 'output' ? event.data?.length : event));
    expect(bytes).toEqual([undefined, 2]);
    for (const [chunkIndex, event] of published.entries()) {
      const read = event.type === 'output' && (await readOutputChunk(store, delivery.id, event));
      expect(read).toEqual(data.subarray(chunkIndex * 65_538, (chunkIndex + 1) * 65_538));
    }
    expect((await eventsOf(store, delivery.id)).map((event) => 'data' in event)).toEqual([false, false]);
  });

  it('is applied once however often it is sent, and releases slots once', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store, { outputs: 4, slots: 4 });
    const writes: RequestWrite[] = [{ type: 'release', delivery, slots: 1 }, progress(delivery)];
    for (let time = 0; time < 3; time++)
      expect(await writeBatch(store, worker, writes, { batch: 2_000_000 })).toEqual(['written', 'written']);
    expect((await readStats(store, 'tiny')).freeSlots).toBe(5);
    expect(await eventsOf(store, delivery.id)).toHaveLength(1);
  });

  it('of another incarnation of the worker is numbered independently', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const before = { ...worker, incarnation: 'zombie' };
    expect(await writeBatch(store, before, [progress({ ...delivery, token: 'stale' })], { batch: 9_000_000 })).toEqual([
      'lost',
    ]);
    expect(await writeBatch(store, worker, [progress(delivery)], { batch: 3_000_000 })).toEqual(['written']);
    expect(await eventsOf(store, delivery.id)).toHaveLength(1);
  });
});

describe('the fence', () => {
  it('refuses every write with a stale token', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const zombie = { id: delivery.id, token: 'stale' };
    const before = await store.redis.hgetall(store.keysOf('tiny').request(delivery.id));
    const info = { index: 0, contentType: 'image/png', bytes: 1, chunks: 1 };
    const writes: RequestWrite[] = [
      progress(zombie),
      delta(zombie, 0, 'text'),
      { type: 'snapshot', delivery: zombie, index: 0, offset: 0, text: 'text', isWhole: true },
      { type: 'reset', delivery: zombie, index: 0, offset: 0 },
      {
        type: 'preview',
        delivery: zombie,
        progress: { index: 0, done: 1 },
        of,
        data: Buffer.from('x'),
        contentType: 'image/webp',
      },
      { type: 'checkpoint', delivery: zombie, index: 0, done: 1, data: Buffer.from('x') },
      { type: 'chunk', delivery: zombie, info, chunkIndex: 0, data: Buffer.from('x') },
      { type: 'release', delivery: zombie, slots: 1 },
      { type: 'give-back', delivery: zombie, reason: 'worker_stopped' },
      { type: 'end', delivery: zombie, end: { state: 'succeeded', outputs: 0 } },
    ];
    for (const one of writes) expect(await writeNow(store, worker, one)).toBe('lost');
    expect(await store.redis.hgetall(store.keysOf('tiny').request(delivery.id))).toEqual(before);
    expect(await eventsOf(store, delivery.id)).toEqual([]);
    expect(await writeNow(store, worker, progress(delivery))).toBe('written');
  });

  it('does not end as succeeded while an output is missing', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store, { outputs: 2 });
    const end = (outputs: number): RequestWrite => ({ type: 'end', delivery, end: { state: 'succeeded', outputs } });
    const info = { index: 1, contentType: 'image/png', bytes: 1, chunks: 1 };
    await writeNow(store, worker, { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('x') });
    expect(await writeNow(store, worker, end(2))).toBe('incomplete');
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { state: 'running' } });
    await writeNow(store, worker, {
      type: 'chunk',
      delivery,
      info: { ...info, index: 0 },
      chunkIndex: 0,
      data: Buffer.from('x'),
    });
    expect(await writeNow(store, worker, end(2))).toBe('finished');
  });
});

describe('text', () => {
  it('updates the progress of all outputs with its deltas, if they report it', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store, { outputs: 2, slots: 2 });
    const of = { done: 3, total: 40 };
    await writeNow(store, worker, { type: 'delta', delivery, index: 0, offset: 0, text: 'a fox', done: 3, of });
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: of });
    expect(await eventsOf(store, delivery.id)).toMatchObject([{ type: 'delta', text: 'a fox', done: 3 }]);
    await writeNow(store, worker, delta(delivery, 5, ' runs'));
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: of });
  });

  it('is a log of deltas that a full snapshot compacts, without changing the text', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store, { outputs: 2, slots: 2 });
    await writeNow(
      store,
      worker,
      delta(delivery, 0, 'a '),
      delta(delivery, 2, 'fox'),
      delta(delivery, 0, 'else', 1),
      progress(delivery),
    );
    const snapshot: RequestWrite = { type: 'snapshot', delivery, index: 0, offset: 0, text: 'a fox', isWhole: true };
    await writeNow(store, worker, snapshot, delta(delivery, 5, ' sat'));
    expect(await eventsOf(store, delivery.id)).toEqual([
      { sequence: 5, type: 'delta', index: 1, offset: 0, text: 'else' },
      { sequence: 6, type: 'progress', index: 0, done: 1, total: 4 },
      { sequence: 7, type: 'snapshot', index: 0, offset: 0, text: 'a fox', isWhole: true },
      { sequence: 8, type: 'delta', index: 0, offset: 5, text: ' sat' },
    ]);
    await writeNow(store, worker, { ...snapshot, text: 'a fox sat' }, { type: 'reset', delivery, index: 0, offset: 2 });
    expect((await eventsOf(store, delivery.id)).map(({ sequence, type }) => `${sequence} ${type}`)).toEqual([
      '5 delta',
      '6 progress',
      '9 snapshot',
      '10 reset',
    ]);
  });

  it('is not published again by a full snapshot: live readers have it', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const hub = createEventHub(store);
    onTestFinished(() => hub.close());
    const published: StoredEvent[] = [];
    await hub.subscribe(delivery.id, (event) => void published.push(event));
    const snapshot = {
      type: 'snapshot',
      delivery,
      index: 0,
      offset: 0,
      text: 'a fox',
      done: 2,
      isWhole: true,
    } as const;
    await writeNow(
      store,
      worker,
      delta(delivery, 0, 'a fox'),
      { ...snapshot, facts: { ids: '1,2,' } },
      delta(delivery, 5, '!'),
    );
    await expect.poll(() => published.length).toBe(3);
    expect(published).toMatchObject([{ sequence: 3 }, { sequence: 4, offset: 5, text: '', done: 2 }, { sequence: 5 }]);
    expect(published[1]).not.toHaveProperty('facts');
    expect(published.reduce((text, event) => textAfter(text, event as StoredTextEvent), '')).toBe('a fox!');
    expect(await eventsOf(store, delivery.id)).toMatchObject([
      { text: 'a fox', facts: { ids: '1,2,' } },
      { text: '!' },
    ]);
  });

  it('is compacted together with its progress events', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    const step = (done: number): RequestWrite[] => [
      { ...progress(delivery, done), isOfText: true } as RequestWrite,
      delta(delivery, done - 1, String(done)),
    ];
    const snapshot: RequestWrite = { type: 'snapshot', delivery, index: 0, offset: 0, text: '12', isWhole: true };
    await writeNow(store, worker, progress(delivery), ...step(1), ...step(2), snapshot, ...step(3));
    expect((await eventsOf(store, delivery.id)).map(({ sequence, type }) => `${sequence} ${type}`)).toEqual([
      '3 progress',
      '8 snapshot',
      '9 progress',
      '10 delta',
    ]);
    expect(await readRequest(store, delivery.id)).toMatchObject({ request: { done: 3, total: 4 } });
  });

  it('of ten thousand deltas is read in a few entries by a late reader', async () => {
    const store = openTestStore();
    const { worker, delivery } = await seedRunning(store);
    let text = '';
    for (let round = 0; round < 40; round++) {
      const writes: RequestWrite[] = [];
      for (let count = 0; count < 250; count++) {
        writes.push(delta(delivery, text.length, 'word '));
        text += 'word ';
      }
      writes.push({ type: 'snapshot', delivery, index: 0, offset: 0, text, isWhole: true });
      await writeNow(store, worker, ...writes);
    }
    const events = await eventsOf(store, delivery.id, 4);
    expect(events).toEqual([{ sequence: 10_042, type: 'snapshot', index: 0, offset: 0, text, isWhole: true }]);
  });
});

it.each(['tiny', 'tiny~1'])('returns outputs, checkpoints and texts for a resumed request in %s', async (shard) => {
  const store = openTestStore();
  const id = createRequestId({ model: shard, owner: '', nowMs: Date.now(), secret: 'test' });
  const envelope = testEnvelope({ id, outputs: 3, slots: 3 });
  const { worker, delivery } = await seedRunning(store, { ...envelope, worker: { model: shard } });
  const info = { index: 1, contentType: 'image/png', bytes: 1, chunks: 1 };
  await writeNow(store, worker, { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('x') });
  await writeNow(store, worker, {
    type: 'checkpoint',
    delivery,
    index: 2,
    done: 5,
    data: Buffer.from([0, 255]),
    origin: 'fine',
  });
  expect(await readResumePoint(store, envelope)).toEqual({
    finished: new Set([1]),
    checkpoints: new Map([[2, { data: Buffer.from([0, 255]), origin: 'fine' }]]),
    texts: new Map(),
  });
  await writeNow(
    store,
    worker,
    delta(delivery, 0, 'a fox', 2),
    delta(delivery, 5, ' sat', 2),
    delta(delivery, 0, '', 0),
  );
  const { texts: said } = await readResumePoint(store, envelope);
  expect([...said].map(([index, events]) => [index, events.reduce(textAfter, '')])).toEqual([
    [0, ''],
    [2, 'a fox sat'],
  ]);
});
