/** Webhook deliveries in their queue: retries, lists per owner, resends. */
import { createRequestId } from '@darkroom/core';
import { openTestStore } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import {
  createWebhookId,
  enqueueWebhooks,
  listDeliveries,
  openWebhookWorker,
  readWebhookSecret,
  resendDelivery,
  type SendOutcome,
  type StoreConnection,
  type WebhookMessage,
} from '../index.ts';

const refused: SendOutcome = { status: 'failed', reason: 'HTTP 500', isFinal: false };
const gone: SendOutcome = { status: 'failed', reason: 'HTTP 410', isFinal: true };

function messageOf(owner: string, nowMs = Date.now()): WebhookMessage {
  const requestId = createRequestId({ model: 'tiny', nowMs, owner, secret: 'test' });
  const id = createWebhookId(requestId, 5, owner);
  return { id, owner, requestId, type: 'request.succeeded', url: 'https://example.com', payload: '{}' };
}

/** Starts a worker that returns the outcomes in order, then repeats the last one. */
function startWorker(
  store: StoreConnection,
  ...outcomes: SendOutcome[]
): { sent: [id: string, attempt: number][]; close: () => Promise<void> } {
  const sent: [string, number][] = [];
  const worker = openWebhookWorker(store, {
    concurrency: 4,
    retryDelayMs: () => 1,
    send: async ({ id }, attempt) => {
      sent.push([id, attempt]);
      return (outcomes.length > 1 ? outcomes.shift() : outcomes[0])!;
    },
    onError: () => {},
  });
  onTestFinished(() => worker.close());
  return { sent, close: () => worker.close() };
}

async function failed(store: StoreConnection, owner: string): Promise<string[]> {
  return (await listDeliveries(store, owner, { state: 'failed', limit: 10 })).map(({ id }) => id);
}

it('retries a delivery until it succeeds, then removes its job', async () => {
  const store = openTestStore();
  const message = messageOf('ann');
  await enqueueWebhooks(store, [message], { attempts: 5 });
  const { sent } = startWorker(store, refused, { status: 'postponed', delayMs: 1 }, refused, { status: 'delivered' });
  await vi.waitFor(() => expect(sent.map(([, attempt]) => attempt)).toEqual([1, 2, 2, 3]), 10_000);
  await vi.waitFor(async () => expect(await store.deliveries().getJob(message.id)).toBeUndefined(), 10_000);
  expect(await resendDelivery(store, 'ann', message.id)).toBe('unknown');
});

it('enqueues a message once, even if it is moved from the outbox again after its delivery', async () => {
  const store = openTestStore();
  const message = messageOf('ann');
  await enqueueWebhooks(store, [message, message], { attempts: 5 });
  await enqueueWebhooks(store, [message], { attempts: 5 });
  expect(await store.deliveries().getJobCountByTypes('wait')).toBe(1);
  const { sent } = startWorker(store, { status: 'delivered' });
  await vi.waitFor(async () => expect(await store.deliveries().getJob(message.id)).toBeUndefined(), 10_000);
  const after = messageOf('ann');
  await enqueueWebhooks(store, [message, after], { attempts: 5 });
  await vi.waitFor(() => expect(sent.map(([id]) => id)).toEqual([message.id, after.id]), 10_000);
});

it('fails a delivery after the last attempt or at once on HTTP 410, and resends it with all attempts', async () => {
  const store = openTestStore();
  const [exhausted, final] = [messageOf('ann', 1000), messageOf('ann', 2000)];
  const first = startWorker(store, refused, refused, gone);
  await enqueueWebhooks(store, [exhausted], { attempts: 2 });
  await vi.waitFor(async () => expect(await failed(store, 'ann')).toEqual([exhausted.id]), 10_000);
  await enqueueWebhooks(store, [final], { attempts: 2 });
  await vi.waitFor(async () => expect(await failed(store, 'ann')).toEqual([final.id, exhausted.id]), 10_000);
  await first.close();
  expect(await listDeliveries(store, 'ann', { state: 'failed', limit: 10 })).toMatchObject([
    { id: final.id, state: 'failed', attempts: 1, lastError: 'HTTP 410', failedAtMs: expect.any(Number) as number },
    { id: exhausted.id, requestId: exhausted.requestId, attempts: 2, lastError: 'HTTP 500' },
  ]);

  expect(await resendDelivery(store, 'ann', exhausted.id)).toBe('resent');
  expect(await resendDelivery(store, 'ann', exhausted.id)).toBe('pending');
  expect(await failed(store, 'ann')).toEqual([final.id]);
  const { sent } = startWorker(store, refused, { status: 'delivered' });
  await vi.waitFor(
    () =>
      expect(sent).toEqual([
        [exhausted.id, 1],
        [exhausted.id, 2],
      ]),
    10_000,
  );
});

it('shows the last error of a pending delivery', async () => {
  const store = openTestStore();
  const [older, newer] = [messageOf('ann', 1000), messageOf('ann', 2000)];
  await enqueueWebhooks(store, [newer, older], { attempts: 2 });
  const worker = openWebhookWorker(store, {
    concurrency: 1,
    retryDelayMs: () => 3_600_000,
    send: async () => refused,
    onError: () => {},
  });
  onTestFinished(() => worker.close());
  const list = () => listDeliveries(store, 'ann', { state: 'pending', limit: 10 });
  await vi.waitFor(async () => expect((await list()).map(({ attempts }) => attempts)).toEqual([1, 1]), 10_000);
  expect(await list()).toMatchObject([
    { id: newer.id, state: 'pending', lastError: 'HTTP 500', failedAtMs: undefined },
    { id: older.id },
  ]);
  expect((await listDeliveries(store, 'ann', { state: 'pending', limit: 1 })).map(({ id }) => id)).toEqual([newer.id]);
});

it('reports deliveries of another owner as unknown', async () => {
  const store = openTestStore();
  const message = messageOf('ann');
  await enqueueWebhooks(store, [message], { attempts: 1 });
  startWorker(store, refused);
  await vi.waitFor(async () => expect(await failed(store, 'ann')).toEqual([message.id]), 10_000);
  expect(await failed(store, 'bob')).toEqual([]);
  expect(await failed(store, '')).toEqual([]);
  expect(await resendDelivery(store, 'bob', message.id)).toBe('unknown');
  expect(await resendDelivery(store, 'ann', 'msg_1')).toBe('unknown');
});

it('separates the deliveries of two owners whose tags collide', async () => {
  const store = openTestStore();
  const message = messageOf('key-8337');
  expect(message.id.slice(-8)).toBe(messageOf('key-15029').id.slice(-8));
  await enqueueWebhooks(store, [message], { attempts: 1 });
  const pending = (owner: string) => listDeliveries(store, owner, { state: 'pending', limit: 10 });
  expect([await pending('key-8337'), await pending('key-15029')]).toMatchObject([[{ id: message.id }], []]);
  expect(await resendDelivery(store, 'key-15029', message.id)).toBe('unknown');
});

it('creates webhook ids without dots, the same for the same event', () => {
  const requestId = createRequestId({ model: 'sd-1.5', nowMs: 1000, owner: 'ann', secret: 'test' });
  const id = createWebhookId(requestId, 5, 'ann');
  expect(id).toMatch(/^msg_[0-9a-z]{26}_5_[0-9a-f]{8}$/);
  expect(createWebhookId(requestId, 5, 'ann')).toBe(id);
  expect(createWebhookId(requestId, 6, 'ann')).not.toBe(id);
});

it('creates one secret per owner under concurrent calls', async () => {
  const store = openTestStore();
  const secrets = await Promise.all([1, 2, 3].map(() => readWebhookSecret(store, 'ann')));
  expect(new Set(secrets).size).toBe(1);
  expect(secrets[0]).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(await readWebhookSecret(store, 'bob')).not.toBe(secrets[0]);
});
