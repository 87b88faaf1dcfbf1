/** What is written to the outbox with a request's events, and how senders take it. */
import type { RequestEnvelope, WebhookRequest } from '@darkroom/core';
import { openTestStore, testEnvelope } from '@darkroom/testing';
import { expect, it } from 'vitest';
import {
  admitRequest,
  appendProgress,
  cancelRequest,
  type Delivery,
  dropOutboxEntries,
  expireRequests,
  finishRequest,
  leaseBatch,
  openJobTaker,
  type OutboxEntry,
  registerWorker,
  type StoreConnection,
  sweepLeaks,
  takeOutbox,
  writeOutput,
} from './index.ts';

const webhook: WebhookRequest = {
  url: 'https://example.com/hook?token=1',
  events: ['started', 'progress', 'completed'],
  progressIntervalMs: 1000,
};
const nothingToReclaim = { limit: 100, reclaimAfterMs: 60_000 };

async function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<string> {
  const envelope = testEnvelope({ owner: 'ann', webhook, ...overrides });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  return envelope.id;
}

async function run(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<Delivery> {
  const identity = { model: 'tiny', workerId: 'w1', incarnation: 'first' };
  await registerWorker(store, identity, { state: 'ready', capacity: 8, ttlMs: 60_000, info: {} });
  await submit(store, overrides);
  const taker = openJobTaker(store, 'tiny', { lockMs: 60_000, stalledCheckMs: 1 });
  const [delivery] = await taker.take(1);
  await taker.close();
  await leaseBatch(store, 'tiny', [delivery!], { mode: 'shared', maxRows: 8, maxAttempts: 3 });
  return delivery!;
}

function progress(store: StoreConnection, delivery: Delivery, done: number, timestampMs: number): Promise<unknown> {
  const steps = { index: 0, done, total: 9, requestDone: done, requestTotal: 9, timestampMs };
  return appendProgress(store, 'tiny', delivery, {
    ...steps,
    preview: { data: Buffer.from('preview'), contentType: 'image/webp' },
  });
}

async function runToItsEnd(store: StoreConnection, events: WebhookRequest['events']): Promise<Delivery> {
  const delivery = await run(store, { webhook: { ...webhook, events } });
  await progress(store, delivery, 1, 5000);
  const picture = {
    index: 0,
    contentType: 'image/png',
    data: Buffer.from('png'),
    facts: { seed: 7 },
    chunkBytes: 3,
    timestampMs: 1,
  };
  await writeOutput(store, 'tiny', delivery, picture);
  await finishRequest(store, 'tiny', 'w1', delivery, { state: 'succeeded', outputs: 1 });
  return delivery;
}

async function typesOf(store: StoreConnection): Promise<string[]> {
  return (await takeOutbox(store, 'tiny', nothingToReclaim)).map(({ event }) => event.type);
}

it('a request without a webhook leaves nothing in the outbox', async () => {
  const store = openTestStore();
  const envelope = testEnvelope();
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  await cancelRequest(store, envelope.id);
  expect(await store.redis.exists(store.keysOf('tiny').webhooks)).toBe(0);
});

it('start, progress and end stand in the outbox with all that it takes to tell of them', async () => {
  const store = openTestStore();
  const { id } = await runToItsEnd(store, webhook.events);
  const entries = await takeOutbox(store, 'tiny', nothingToReclaim);
  const common = { requestId: id, model: 'tiny', kind: 'picture', owner: 'ann', url: webhook.url, attempt: 1 };
  expect(entries).toMatchObject([
    { ...common, event: { type: 'started', sequence: 2, attempt: 1 } },
    { ...common, event: { type: 'progress', sequence: 3, done: 1, total: 9 } },
    { ...common, event: { type: 'succeeded', sequence: 5, outputs: [{ index: 0, seed: 7 }] } },
  ]);
  expect(JSON.stringify(entries)).not.toContain('a test');
  expect(JSON.stringify(entries)).not.toContain('preview"');
});

it.each([
  [['started'] as const, ['started']],
  [['progress'] as const, ['progress']],
  [['completed'] as const, ['succeeded']],
])('only what was asked for: %j', async (events, types) => {
  const store = openTestStore();
  await runToItsEnd(store, events);
  expect(await typesOf(store)).toEqual(types);
});

it('progress comes once an interval, whichever way the clocks of workers differ', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  for (const [index, timestampMs] of [5000, 5001, 5999, 6000, 6500, 2000, 2001].entries())
    await progress(store, delivery, index + 1, timestampMs);
  const entries = await takeOutbox(store, 'tiny', nothingToReclaim);
  const steps = entries.map(({ event }) => (event.type === 'progress' ? event.done : event.type));
  expect(steps).toEqual(['started', 1, 4, 6]);
});

it('every kind of end is told of once', async () => {
  const store = openTestStore();
  const nowMs = Date.now();
  const failed = await run(store);
  const failure = { state: 'failed', error: { code: 'engine_failed', message: 'It broke.' } } as const;
  await finishRequest(store, 'tiny', 'w1', failed, failure);
  await finishRequest(store, 'tiny', 'w1', failed, failure);
  const canceled = await submit(store);
  await cancelRequest(store, canceled);
  await cancelRequest(store, canceled);
  await submit(store, { createdAtMs: nowMs, startDeadlineMs: nowMs + 1 });
  await expireRequests(store, 'tiny', nowMs + 2);
  await expireRequests(store, 'tiny', nowMs + 2);
  expect(await typesOf(store)).toEqual(['started', 'failed', 'canceled', 'expired']);
});

it('an entry goes to one sender, and to another when that one dies before it drops it', async () => {
  const store = openTestStore();
  await cancelRequest(store, await submit(store));
  const first = await takeOutbox(store, 'tiny', nothingToReclaim);
  expect(first).toHaveLength(1);
  expect(await takeOutbox(store, 'tiny', nothingToReclaim)).toEqual([]);
  const again = await takeOutbox(store, 'tiny', { limit: 100, reclaimAfterMs: 0 });
  expect(again).toEqual(first);
  await dropOutboxEntries(store, 'tiny', entryIds(again));
  await dropOutboxEntries(store, 'tiny', entryIds(first));
  expect(await takeOutbox(store, 'tiny', { limit: 100, reclaimAfterMs: 0 })).toEqual([]);
  expect(await store.redis.xlen(store.keysOf('tiny').webhooks)).toBe(0);
});

it('two senders that begin at once share what is there', async () => {
  const store = openTestStore();
  for (let count = 0; count < 4; count++) await cancelRequest(store, await submit(store));
  const options = { limit: 2, reclaimAfterMs: 60_000 };
  const shares = await Promise.all([takeOutbox(store, 'tiny', options), takeOutbox(store, 'tiny', options)]);
  expect(new Set(shares.flat().map(({ requestId }) => requestId)).size).toBe(4);
});

it('the sweep for leaks leaves the outbox as it is', async () => {
  const store = openTestStore();
  await cancelRequest(store, await submit(store));
  expect(await sweepLeaks(store, 'tiny')).toMatchObject({ repaired: [], deleted: [] });
  expect(await store.redis.pttl(store.keysOf('tiny').webhooks)).toBe(-1);
});

function entryIds(entries: readonly OutboxEntry[]): string[] {
  return entries.map(({ entryId }) => entryId);
}
