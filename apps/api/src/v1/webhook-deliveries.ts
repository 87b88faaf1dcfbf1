import { invalidValue, isoTime } from '@darkroom/core';
import { listDeliveries, readWebhookSecret, resendDelivery, type WebhookDelivery } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { ApiError, invalidFields } from '../http/api-error.ts';
import { addRoute, type Api, commonErrors, errorAnswer } from '../http/api-route.ts';
import type { AskStore } from '../server/store-guard.ts';
import { webhookDeliveryListSchema, webhookResentSchema, webhookSecretSchema } from './api-schemas.ts';

type DeliveryView = z.infer<typeof webhookDeliveryListSchema>['data'][number];

const status = z.enum(['failed', 'pending']).default('failed');
const limit = z
  .string()
  .regex(/^(?:[1-9]\d?|100)$/)
  .default('20');

/** What came of the owner's webhooks, and the secret they are signed with. */
export function addWebhookRoutes(api: Api, { askStore }: { askStore: AskStore }): void {
  addRoute(api, listRoute, async (c) => {
    const state = status.safeParse(c.req.query('status'));
    if (!state.success) throw invalidFields([invalidValue('status', c.req.query('status'), 'failed or pending')]);
    const count = limit.safeParse(c.req.query('limit'));
    if (!count.success)
      throw invalidFields([invalidValue('limit', c.req.query('limit'), 'a whole number from 1 to 100')]);
    const options = { state: state.data, limit: Number(count.data) };
    const deliveries = await askStore((store) => listDeliveries(store, c.get('owner'), options));
    return c.json({ object: 'list', data: deliveries.map(deliveryView) }, 200);
  });
  addRoute(api, resendRoute, async (c) => {
    const id = c.req.param('id') ?? '';
    const result = await askStore((store) => resendDelivery(store, c.get('owner'), id));
    switch (result) {
      case 'resent':
        return c.json({ id, status: 'pending' }, 202);
      case 'pending':
        throw deliveryPending(id);
      case 'unknown':
        throw deliveryNotFound();
    }
  });
  addRoute(api, secretRoute, async (c) => {
    const key = await askStore((store) => readWebhookSecret(store, c.get('owner')));
    return c.json({ key }, 200, { 'Cache-Control': 'no-store' });
  });
}

function deliveryView(delivery: WebhookDelivery): DeliveryView {
  return {
    id: delivery.id,
    request_id: delivery.requestId,
    type: delivery.type,
    url: delivery.url,
    status: delivery.state,
    attempts: delivery.attempts,
    last_error: delivery.lastError ?? null,
    created_at: isoTime(delivery.createdAtMs),
    failed_at: isoTime(delivery.failedAtMs),
  };
}

function deliveryPending(id: string): ApiError {
  const message = `Delivery ${id} has not failed: it is still being tried.`;
  return new ApiError({ status: 409, code: 'delivery_pending', message });
}

function deliveryNotFound(): ApiError {
  const message = 'There is no such delivery; those that succeeded are not kept.';
  return new ApiError({ status: 404, code: 'delivery_not_found', message });
}

const exampleId = 'msg_01kaj3v0q8f3zt6m0c9d7p2xwe_17_e3b0c442';

const listRoute = {
  method: 'get' as const,
  path: '/v1/webhooks/deliveries',
  summary: 'Webhooks that were not delivered',
  description: `Newest first. A failed delivery has used up its attempts, or its receiver answered 410; it is kept for a week. A
pending one waits for its first attempt or its next. One that succeeded leaves nothing behind.`,
  request: {
    query: z.object({
      status: status.openapi({ description: '`failed` for good, or `pending`.' }),
      limit: limit.openapi({ description: '1 to 100.' }),
    }),
  },
  responses: {
    ...commonErrors,
    200: { description: 'Your own.', content: { 'application/json': { schema: webhookDeliveryListSchema } } },
    400: errorAnswer('The query is wrong.', {
      message: 'status is "all", expected failed or pending',
      code: 'invalid_value',
      param: 'status',
    }),
  },
};

const resendRoute = {
  method: 'post' as const,
  path: '/v1/webhooks/deliveries/{id}/resend',
  summary: 'Send a failed webhook again',
  description: 'With all its attempts anew. The message is the same: same `webhook-id`, same body.',
  request: { params: z.object({ id: z.string().openapi({ example: exampleId }) }) },
  responses: {
    ...commonErrors,
    202: { description: 'To be sent now.', content: { 'application/json': { schema: webhookResentSchema } } },
    404: errorAnswer('No such delivery.', {
      message: 'There is no such delivery; those that succeeded are not kept.',
      code: 'delivery_not_found',
    }),
    409: errorAnswer('It has not failed.', {
      message: `Delivery ${exampleId} has not failed: it is still being tried.`,
      code: 'delivery_pending',
    }),
  },
};

const secretRoute = {
  method: 'get' as const,
  path: '/v1/webhooks/secret',
  summary: 'The secret that your webhooks are signed with',
  description: `For a library of [Standard Webhooks](https://www.standardwebhooks.com), which checks with it that a message came from
this server and is not an old one sent again.`,
  responses: {
    ...commonErrors,
    200: { description: 'Yours.', content: { 'application/json': { schema: webhookSecretSchema } } },
  },
};
