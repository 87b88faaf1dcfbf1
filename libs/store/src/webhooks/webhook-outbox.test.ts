/** Outbox: what is written with the events of a request, and how senders take it. */
import type { RequestEnvelope, WebhookRequest } from '@darkroom/core';
import { backdateRequest, openTestStore, seedRequest, seedRunning, writeNow } from '@darkroom/testing';
import { expect, it } from 'vitest';
import {
  cancelRequest,
  type Delivery,
  dropOutboxEntries,
  expireRequests,
  LeakSweeper,
  type OutboxEntry,
  type StoreConnection,
  takeOutbox,
} from '../index.ts';

const webhook: WebhookRequest = {
  url: 'https://example.com/hook?token=1',
  events: ['started', 'progress', 'completed'],
  progressIntervalMs: 1000,
};
const nothingToReclaim = { limit: 100, reclaimAfterMs: 60_000 };

const worker = { shard: 'tiny', workerId: 'w1', incarnation: 'first' };

function submit(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<RequestEnvelope> {
  return seedRequest(store, { owner: 'ann', webhook, ...overrides });
}

async function run(store: StoreConnection, overrides: Partial<RequestEnvelope> = {}): Promise<Delivery> {
  return (await seedRunning(store, { owner: 'ann', webhook, ...overrides })).delivery;
}

async function progress(store: StoreConnection, delivery: Delivery, done: number): Promise<void> {
  const preview = { data: Buffer.from('the image so far'), contentType: 'image/webp' };
  const of = { done, total: 9 };
  await writeNow(store, worker, { type: 'preview', delivery, progress: { index: 0, ...of }, of, ...preview });
}

async function runToItsEnd(store: StoreConnection, events: WebhookRequest['events']): Promise<Delivery> {
  const delivery = await run(store, { webhook: { ...webhook, events } });
  await progress(store, delivery, 1);
  const info = { index: 0, contentType: 'image/png', bytes: 3, chunks: 1, seed: 7 };
  await writeNow(store, worker, { type: 'chunk', delivery, info, chunkIndex: 0, data: Buffer.from('png') });
  await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 1 } });
  return delivery;
}

async function typesOf(store: StoreConnection): Promise<string[]> {
  return (await takeOutbox(store, 'tiny', nothingToReclaim)).map(({ event }) => event.type);
}

it('writes no outbox entry for a request without a webhook', async () => {
  const store = openTestStore();
  await cancelRequest(store, (await seedRequest(store)).id);
  expect(await store.redis.exists(store.keysOf('tiny').webhooks)).toBe(0);
});

it('writes start, progress and end to the outbox with all that a message needs, but no prompt or preview', async () => {
  const store = openTestStore();
  const { id } = await runToItsEnd(store, webhook.events);
  const entries = await takeOutbox(store, 'tiny', nothingToReclaim);
  const common = { requestId: id, model: 'tiny', kind: 'image', owner: 'ann', url: webhook.url, attempt: 1 };
  expect(entries).toMatchObject([
    { ...common, event: { type: 'started', sequence: 2, attempt: 1 } },
    { ...common, event: { type: 'preview', sequence: 3, done: 1, total: 9 } },
    { ...common, event: { type: 'succeeded', sequence: 5, outputs: [{ index: 0, seed: 7 }] } },
  ]);
  expect(JSON.stringify(entries)).not.toContain('a test');
  expect(JSON.stringify(entries)).not.toContain('the image so far');
});

it.each([
  ['in full', 16_384, { 0: 'ä'.repeat(4096), 1: '😀'.repeat(2048) }],
  ['unless together they are too long', 16_385, {}],
])('includes the texts of a successful request, %s', async (_title, length, expected) => {
  const store = openTestStore();
  const delivery = await run(store, { webhook: { ...webhook, events: ['completed'] }, outputs: 2 });
  const texts = [Buffer.from('ä'.repeat(4096)), Buffer.from('😀'.repeat(2048) + 'x'.repeat(length - 16_384))];
  for (const [index, text] of texts.entries()) {
    const info = { index, contentType: 'text/plain; charset=utf-8', bytes: text.length, chunks: 2 };
    // Split within a character.
    for (const [chunkIndex, data] of [text.subarray(0, 4095), text.subarray(4095)].entries())
      await writeNow(store, worker, { type: 'chunk', delivery, info, chunkIndex, data });
  }
  await writeNow(store, worker, { type: 'end', delivery, end: { state: 'succeeded', outputs: 2 } });
  const [entry] = await takeOutbox(store, 'tiny', nothingToReclaim);
  expect(Object.fromEntries(entry!.texts)).toEqual(expected);
  expect(entry!.event).toMatchObject({ type: 'succeeded', outputs: [{ index: 0 }, { index: 1 }] });
});

it.each([
  [['started'] as const, ['started']],
  [['progress'] as const, ['preview']],
  [['completed'] as const, ['succeeded']],
])('writes only the subscribed events: %j', async (events, types) => {
  const store = openTestStore();
  await runToItsEnd(store, events);
  expect(await typesOf(store)).toEqual(types);
});

it('writes progress once per interval, also after the clock was set back', async () => {
  const store = openTestStore();
  const delivery = await run(store, { webhook: { ...webhook, progressIntervalMs: 3_600_000 } });
  const shiftLastProgress = (ms: number) =>
    store.redis.hincrby(store.keysOf('tiny').request(delivery.id), 'webhookProgressAtMs', ms);
  await progress(store, delivery, 1);
  await progress(store, delivery, 2);
  await shiftLastProgress(-3_600_000);
  await progress(store, delivery, 3);
  await shiftLastProgress(7_200_000);
  await progress(store, delivery, 4);
  const entries = await takeOutbox(store, 'tiny', nothingToReclaim);
  expect(entries.map(({ event }) => (event.type === 'preview' ? event.done : event.type))).toEqual([
    'started',
    1,
    3,
    4,
  ]);
});

it('logs an event with half a surrogate pair, and still applies the other writes of the batch', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  await writeNow(
    store,
    worker,
    { type: 'delta', delivery, index: 0, offset: 0, text: '\ud83e' },
    { type: 'end', delivery, end: { state: 'canceled' } },
  );
  expect(await typesOf(store)).toEqual(['started', 'canceled']);
});

it('writes every terminal event once', async () => {
  const store = openTestStore();
  const delivery = await run(store);
  const end = { state: 'failed', error: { code: 'engine_failed', message: 'It broke.' } } as const;
  await writeNow(store, worker, { type: 'end', delivery, end });
  await writeNow(store, worker, { type: 'end', delivery, end });
  const canceled = await submit(store);
  await cancelRequest(store, canceled.id);
  await cancelRequest(store, canceled.id);
  await backdateRequest(store, await submit(store), 600_000);
  await expireRequests(store, 'tiny');
  await expireRequests(store, 'tiny');
  expect(await typesOf(store)).toEqual(['started', 'failed', 'canceled', 'expired']);
});

it('gives an entry to one sender, and to another if the first dies before it drops the entry', async () => {
  const store = openTestStore();
  await cancelRequest(store, (await submit(store)).id);
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

it('splits the entries between two senders that start at once', async () => {
  const store = openTestStore();
  for (let count = 0; count < 4; count++) await cancelRequest(store, (await submit(store)).id);
  const options = { limit: 2, reclaimAfterMs: 60_000 };
  const shares = await Promise.all([takeOutbox(store, 'tiny', options), takeOutbox(store, 'tiny', options)]);
  expect(new Set(shares.flat().map(({ requestId }) => requestId)).size).toBe(4);
});

it('is not touched by the leak sweep', async () => {
  const store = openTestStore();
  await cancelRequest(store, (await submit(store)).id);
  expect(await new LeakSweeper(store).sweepPage()).toMatchObject({ repaired: [], deleted: [] });
  expect(await store.redis.pttl(store.keysOf('tiny').webhooks)).toBe(-1);
});

function entryIds(entries: readonly OutboxEntry[]): string[] {
  return entries.map(({ entryId }) => entryId);
}
