import { createWebhookId, enqueueWebhooks, openWebhookWorker, type StoreConnection, takeOutbox } from '@darkroom/store';
import { testEnvelope } from '@darkroom/testing';
import { expect, it, onTestFinished, vi } from 'vitest';
import { webhookDeliveryListSchema, webhookResentSchema, webhookSecretSchema } from './webhook-deliveries.ts';
import { createTestApi, openTestApi, type TestApi } from '../testing/test-api.ts';

const url = 'https://example.com/hook';

async function enqueue(store: StoreConnection, owner = ''): Promise<string> {
  const { id: requestId } = testEnvelope();
  const id = createWebhookId(requestId, 3, owner);
  const message = { id, owner, requestId, type: 'request.succeeded', url, payload: '{}' };
  await enqueueWebhooks(store, [message], { attempts: 1 });
  return id;
}

/** Fails all waiting deliveries permanently. */
async function failAll(store: StoreConnection, ids: string[]): Promise<void> {
  const failed = new Set<string>();
  const worker = openWebhookWorker(store, {
    concurrency: 1,
    retryDelayMs: () => 1,
    send: async ({ id }) => {
      failed.add(id);
      return { status: 'failed', reason: 'HTTP 503', isFinal: true };
    },
    onError: () => {},
  });
  onTestFinished(() => worker.close());
  await vi.waitFor(() => expect(failed).toEqual(new Set(ids)), 10_000);
  await worker.close();
}

async function list({ api }: TestApi, query = ''): Promise<{ id: string }[]> {
  const response = await api.request(`/v1/webhooks/deliveries${query}`);
  expect(response.status).toBe(200);
  return webhookDeliveryListSchema.parse(await response.json()).data;
}

function resend({ api }: TestApi, id: string): Promise<Response> {
  return Promise.resolve(api.request(`/v1/webhooks/deliveries/${id}/resend`, { method: 'POST' }));
}

async function errorOf(response: Response): Promise<[status: number, code: string, message: string]> {
  const { error } = (await response.json()) as { error: { code: string; message: string } };
  return [response.status, error.code, error.message];
}

it('lists a failed delivery with its error, and resends it', async () => {
  const app = await openTestApi();
  const id = await enqueue(app.store);
  expect(await list(app)).toEqual([]);
  expect(await list(app, '?status=pending')).toMatchObject([{ id, status: 'pending', attempts: 0, last_error: null }]);
  expect((await errorOf(await resend(app, id))).slice(0, 2)).toEqual([409, 'delivery_pending']);
  await failAll(app.store, [id]);
  expect(await list(app)).toMatchObject([
    { id, type: 'request.succeeded', url, status: 'failed', attempts: 1, last_error: 'HTTP 503' },
  ]);
  const response = await resend(app, id);
  expect(response.status).toBe(202);
  expect(webhookResentSchema.parse(await response.json())).toEqual({ id, status: 'pending' });
  expect(await list(app)).toEqual([]);
  expect(await list(app, '?status=pending')).toMatchObject([{ id }]);
});

it('lists the newest deliveries first, up to limit', async () => {
  const app = await openTestApi();
  const ids: string[] = [];
  for (let count = 0; count < 3; count++) {
    const id = await enqueue(app.store);
    ids.unshift(id);
    await failAll(app.store, [id]);
  }
  expect((await list(app)).map(({ id }) => id)).toEqual(ids);
  expect((await list(app, '?limit=2')).map(({ id }) => id)).toEqual(ids.slice(0, 2));
});

it('returns 404 for deliveries of another owner', async () => {
  const app = await openTestApi();
  const id = await enqueue(app.store, 'bob');
  await failAll(app.store, [id]);
  expect(await list(app)).toEqual([]);
  expect((await errorOf(await resend(app, id))).slice(0, 2)).toEqual([404, 'delivery_not_found']);
  expect((await errorOf(await resend(app, 'msg_1'))).slice(0, 2)).toEqual([404, 'delivery_not_found']);
});

it.each([
  ['?status=all', 'status is "all", expected failed or pending'],
  ['?limit=0', 'limit is "0", expected a whole number from 1 to 100'],
  ['?limit=101', 'limit is "101", expected a whole number from 1 to 100'],
])('rejects %s', async (query, message) => {
  const { api } = await openTestApi();
  expect(await errorOf(await api.request(`/v1/webhooks/deliveries${query}`))).toEqual([400, 'invalid_value', message]);
});

it('returns the same secret every time, uncached and unlogged', async () => {
  const app = await openTestApi();
  const response = await app.api.request('/v1/webhooks/secret');
  expect(response.headers.get('cache-control')).toBe('no-store');
  const { key } = webhookSecretSchema.parse(await response.json());
  expect(key).toMatch(/^whsec_/);
  expect(await (await app.replica().api.request('/v1/webhooks/secret')).json()).toEqual({ key });
  expect(app.lines.join('')).not.toContain(key);
});

it('delivers the events that a webhook subscribes to', async () => {
  const app = await openTestApi();
  const id = await app.submit({ webhook_url: url });
  await app.api.request(`/v1/predict/${id}`, { method: 'DELETE' });
  const [entry] = await takeOutbox(app.store, 'tiny', { limit: 10, reclaimAfterMs: 60_000 });
  expect(entry).toMatchObject({ requestId: id, url, owner: '', event: { type: 'canceled' } });
  const stored = await app.store.redis.hget(app.store.keysOf('tiny').request(id), 'webhook');
  expect(JSON.parse(stored ?? '')).toEqual({ kind: 'image', url, events: ['completed'], progressIntervalMs: 1000 });
});

it('rejects a webhook to a private address on submit, unless allowed', async () => {
  const app = await openTestApi();
  const body = { prompt: 'a fox', webhook_url: 'http://169.254.169.254/latest' };
  expect((await errorOf(await app.post(body)))[2]).toMatch(/^webhook_url is .*, expected a public host/);
  const trusting = createTestApi({ store: app.store, config: { webhookAllowPrivate: true } });
  expect((await trusting.post(body)).status).toBe(202);
});
