/** From an outbox event to a signed message at the receiver, with real Redis, queue and sockets. */
import { createLogger } from '@darkroom/service';
import {
  admitRequest,
  cancelRequest,
  createEventHub,
  listDeliveries,
  publishModel,
  readWebhookSecret,
  resendDelivery,
  type StoreConnection,
  takeOutbox,
} from '@darkroom/store';
import { openTestStore, testEnvelope } from '@darkroom/testing';
import { Webhook } from 'standardwebhooks';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createConnectionSlots } from './connection-slots.ts';
import { createRetrySchedule, retryDelaysMs } from './retry-schedule.ts';
import { type Received, startReceiver } from './testing/receiver.ts';
import { WebhookSender } from './webhook-sender.ts';

const pollOptions = { timeout: 10_000, interval: 10 };

interface Sender {
  lines: string[];
  sender: WebhookSender;
}

function createSender(
  store: StoreConnection,
  {
    retries = 3,
    allowPrivate = true,
    ...options
  }: { retries?: number; allowPrivate?: boolean; reclaimAfterMs?: number },
): Sender {
  const wakeups = createEventHub(store);
  const lines: string[] = [];
  const sender = new WebhookSender({
    store,
    wakeups,
    log: createLogger({ app: 'webhook-sender', stream: { write: (line) => void lines.push(line) } }),
    allowPrivate,
    stopGraceMs: 0,
    ...options,
    schedule: createRetrySchedule(Array.from({ length: retries }, () => 1)),
  });
  onTestFinished(async () => {
    await sender.stop();
    wakeups.close();
  });
  return { lines, sender };
}

async function startSender(store: StoreConnection, options: Parameters<typeof createSender>[1] = {}): Promise<Sender> {
  await publishModel(store, { id: 'tiny' } as never);
  const made = createSender(store, options);
  await made.sender.start();
  return made;
}

/** Cancels a request at once: its end is the only event. */
async function cancelOne(store: StoreConnection, url: string): Promise<string> {
  const webhook = { url, events: ['completed' as const], progressIntervalMs: 1000 };
  const envelope = testEnvelope({ owner: 'ann', webhook });
  await admitRequest(store, envelope, { queueMaxLength: 100, unserved: 'accept' });
  await cancelRequest(store, envelope.id, { owner: 'ann' });
  return envelope.id;
}

async function verify(store: StoreConnection, { body, headers }: Received): Promise<unknown> {
  const secret = await readWebhookSecret(store, 'ann');
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

async function failedOf(store: StoreConnection): Promise<(string | undefined)[]> {
  const deliveries = await listDeliveries(store, 'ann', { state: 'failed', limit: 10 });
  return deliveries.map(({ lastError }) => lastError);
}

it('retries the same message with a new valid signature after the receiver fails', async () => {
  const store = openTestStore();
  const { lines } = await startSender(store);
  const { url, received } = await startReceiver((_response, count) => (count < 3 ? 503 : 200));
  const id = await cancelOne(store, `${url}/hook?token=s3cret`);
  await vi.waitFor(() => expect(received).toHaveLength(3), pollOptions);
  expect(new Set(received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  for (const message of received)
    expect(await verify(store, message)).toEqual({
      type: 'request.canceled',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/) as string,
      data: { request_id: id, model: 'tiny', status: 'canceled', attempt: 0 },
    });
  await vi.waitFor(
    async () => expect(await listDeliveries(store, 'ann', { state: 'pending', limit: 10 })).toEqual([]),
    pollOptions,
  );
  const secret = await readWebhookSecret(store, 'ann');
  expect(lines.join('')).not.toContain('s3cret');
  expect(lines.join('')).not.toContain(secret);
});

it('fails a delivery to a private address at once and sends nothing', async () => {
  const store = openTestStore();
  await startSender(store, { allowPrivate: false });
  const { url, received } = await startReceiver();
  await cancelOne(store, url);
  await vi.waitFor(async () => expect(await failedOf(store)).toEqual(['the address is not public']), pollOptions);
  expect(received).toEqual([]);
});

it('treats a redirect as a failure and does not follow it', async () => {
  const store = openTestStore();
  await startSender(store, { retries: 1 });
  const inside = await startReceiver();
  const { url, received } = await startReceiver(
    (response) => void response.writeHead(307, { location: inside.url }).end(),
  );
  await cancelOne(store, url);
  await vi.waitFor(
    async () => expect(await failedOf(store)).toEqual(['HTTP 307: redirects are not followed']),
    pollOptions,
  );
  expect([received.length, inside.received.length]).toEqual([2, 0]);
});

it('ends a delivery on 410 Gone, and resends the same message on request', async () => {
  const store = openTestStore();
  await startSender(store);
  const { url, received } = await startReceiver((_response, count) => (count === 1 ? 410 : 200));
  await cancelOne(store, url);
  await vi.waitFor(async () => expect(await failedOf(store)).toEqual(['HTTP 410']), pollOptions);
  const [delivery] = await listDeliveries(store, 'ann', { state: 'failed', limit: 1 });
  expect(await resendDelivery(store, 'ann', delivery!.id)).toBe('resent');
  await vi.waitFor(() => expect(received).toHaveLength(2), pollOptions);
  expect(received.map(({ headers }) => headers['webhook-id'])).toEqual([delivery!.id, delivery!.id]);
});

it('delivers once what a dead sender had taken or enqueued without dropping', async () => {
  const store = openTestStore();
  const { url, received } = await startReceiver();
  await cancelOne(store, url);
  // Died after taking the entry.
  expect(await takeOutbox(store, 'tiny', { limit: 10, reclaimAfterMs: 0 })).toHaveLength(1);
  const drop = vi.spyOn(store.redis, 'multi').mockImplementationOnce(() => {
    throw new Error('died after enqueueing');
  });
  const { sender } = createSender(store, { reclaimAfterMs: 0 });
  await expect(sender.moveOnce('tiny')).rejects.toThrow('died');
  drop.mockRestore();
  await sender.moveOnce('tiny');
  expect(await store.redis.xlen(store.keysOf('tiny').webhooks)).toBe(0);
  await startSender(store);
  const second = await cancelOne(store, `${url}/second`);
  await vi.waitFor(() => expect(received.some(({ body }) => body.includes(second))).toBe(true), pollOptions);
  expect(received).toHaveLength(2);
});

it('postpones deliveries in progress on a stop without counting an attempt', async () => {
  const store = openTestStore();
  const { sender } = await startSender(store);
  const { url, received } = await startReceiver((_response, count) => (count === 1 ? undefined : 204));
  await cancelOne(store, url);
  await vi.waitFor(() => expect(received).toHaveLength(1), pollOptions);
  await sender.stop();
  expect(await listDeliveries(store, 'ann', { state: 'pending', limit: 10 })).toMatchObject([
    { attempts: 0, lastError: undefined },
  ]);
  await startSender(store);
  await vi.waitFor(() => expect(received).toHaveLength(2), pollOptions);
  expect(received[1]?.headers['webhook-id']).toBe(received[0]?.headers['webhook-id']);
});

it('limits the connections to a host that never answers, over all its ports', async () => {
  const store = openTestStore();
  await startSender(store);
  const stuck = await Promise.all(Array.from({ length: 4 }, () => startReceiver(() => undefined)));
  const receivedCount = (): number => stuck.reduce((sum, { received }) => sum + received.length, 0);
  const prompt = await startReceiver();
  for (let count = 0; count < 80; count++) await cancelOne(store, stuck[count % 4]!.url);
  await vi.waitFor(() => expect(receivedCount()).toBe(16), pollOptions);
  await cancelOne(store, `http://localhost:${prompt.port}`);
  await vi.waitFor(() => expect(prompt.received).toHaveLength(1), pollOptions);
  expect(receivedCount()).toBe(16);
});

it('limits connections per owner and per host', () => {
  const acquireSlot = createConnectionSlots({ perOwner: 2, perHost: 2 });
  const take = (owner: string, url: string): (() => void) | undefined => acquireSlot({ owner, url });
  const release = take('ann', 'http://a.example:1/');
  expect(take('ann', 'http://A.example.:2/x')).toBeDefined();
  for (const [owner, url] of [
    ['ann', 'http://b.example/'],
    ['bob', 'http://a.example:3/'],
  ] as const)
    expect([owner, take(owner, url)]).toEqual([owner, undefined]);
  expect(take('bob', 'http://b.example/')).toBeDefined();
  release?.();
  expect(take('ann', 'http://b.example/')).toBeDefined();
  expect(take('bob', 'http://a.example:3/')).toBeDefined();
});

it('retries for about ten hours, with growing pauses and jitter', () => {
  const hours = retryDelaysMs.reduce((sum, delayMs) => sum + delayMs, 0) / 3_600_000;
  expect(hours).toBeCloseTo(10.24, 1);
  const [early, late] = [createRetrySchedule(undefined, () => 0), createRetrySchedule(undefined, () => 1)];
  expect([early.attempts, early.delayMs(1), late.delayMs(1), early.delayMs(9)]).toEqual([10, 4000, 6000, 14_400_000]);
});
