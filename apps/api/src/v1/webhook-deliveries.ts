/** Routes of an owner's webhook deliveries and signing secret. */
import { isoTime } from '@darkroom/core';
import { listDeliveries, readWebhookSecret, resendDelivery, type WebhookDelivery } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { ApiError, checkField, invalidField } from '../http/api-error.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { noStore } from '../http/public-url.ts';
import { count, listSchema, requestId, time } from '../openapi/api-schemas.ts';

const status = z.enum(['failed', 'pending']).default('failed');
const limit = z
  .string()
  .regex(/^(?:[1-9]\d?|100)$/)
  .default('20');
const statusExpected = 'failed or pending';
const exampleId = 'msg_01kaj3v0q8f3zt6m0c9d7p2xwe_17_e3b0c442';

const webhookDeliverySchema = z
  .strictObject({
    id: z.string().openapi({
      description: 'The `webhook-id` of the message.',
      example: exampleId,
    }),
    request_id: requestId,
    type: z.string().openapi({ example: 'request.succeeded' }),
    url: z.string(),
    status: z.enum(['failed', 'pending']),
    attempts: count,
    last_error: z.string().nullable().openapi({ example: 'HTTP 503' }),
    created_at: time,
    failed_at: time.nullable().openapi({ description: 'Null while it is pending.' }),
  })
  .openapi('WebhookDelivery');
export const webhookDeliveryListSchema = listSchema('WebhookDeliveryList', webhookDeliverySchema);

export const webhookResentSchema = z
  .strictObject({ id: z.string(), status: z.literal('pending') })
  .openapi('WebhookResent');

export const webhookSecretSchema = z
  .strictObject({ key: z.string().openapi({ example: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwMfKQ9r8GKYo=' }) })
  .openapi('WebhookSecret');

export const deliveriesRoute: Route = {
  method: 'get',
  path: '/v1/webhooks/deliveries',
  operationId: 'listFailedWebhooks',
  tag: 'Webhooks',
  summary: 'List webhooks that were not delivered',
  description: `Newest first. A failed delivery has used up its attempts, or its receiver answered 410; it is stored for a week. A
pending one waits for its next attempt. Successful deliveries are not stored.`,
  request: {
    query: z.object({
      status: status.openapi({ description: '`failed` (permanently) or `pending`.' }),
      limit: limit.openapi({ description: '1 to 100.' }),
    }),
  },
  responses: {
    ...commonErrors,
    200: jsonAnswer('Deliveries of your key.', webhookDeliveryListSchema),
    400: describeErrorAnswer('The query is invalid.', invalidField('status', 'all', statusExpected)),
  },
  async handle(c, { withStore }) {
    const state = checkField(status, 'status', c.req.query('status'), statusExpected);
    const maxCount = Number(checkField(limit, 'limit', c.req.query('limit'), 'a whole number from 1 to 100'));
    const deliveries = await withStore((store) => listDeliveries(store, c.get('owner'), { state, limit: maxCount }));
    return c.json({ object: 'list', data: deliveries.map(deliveryView) }, 200);
  },
};

export const resendRoute: Route = {
  method: 'post',
  path: '/v1/webhooks/deliveries/{id}/resend',
  operationId: 'resendWebhook',
  tag: 'Webhooks',
  summary: 'Send a failed webhook again',
  description: 'Restarts its attempts. The message stays the same: same `webhook-id`, same body.',
  params: { id: z.string().openapi({ example: exampleId }) },
  responses: {
    ...commonErrors,
    202: jsonAnswer('The delivery is queued.', webhookResentSchema),
    404: describeErrorAnswer('No such delivery.', deliveryNotFound()),
    409: describeErrorAnswer('The delivery has not failed.', deliveryPending(exampleId)),
  },
  async handle(c, { withStore }) {
    const id = c.req.param('id') ?? '';
    switch (await withStore((store) => resendDelivery(store, c.get('owner'), id))) {
      case 'resent':
        return c.json({ id, status: 'pending' }, 202);
      case 'pending':
        throw deliveryPending(id);
      case 'unknown':
        throw deliveryNotFound();
    }
  },
};

export const webhookSecretRoute: Route = {
  method: 'get',
  path: '/v1/webhooks/secret',
  operationId: 'getWebhookSecret',
  tag: 'Webhooks',
  summary: 'Get the secret that your webhooks are signed with',
  description: `For a library of [Standard Webhooks](https://www.standardwebhooks.com), which uses it to verify that a message came from
this server and is not replayed.`,
  responses: { ...commonErrors, 200: jsonAnswer('The secret of your key.', webhookSecretSchema) },
  async handle(c, { withStore }) {
    return c.json({ key: await withStore((store) => readWebhookSecret(store, c.get('owner'))) }, 200, noStore);
  },
};

function deliveryView(delivery: WebhookDelivery): z.infer<typeof webhookDeliverySchema> {
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
  return new ApiError(409, 'delivery_pending', `Delivery ${id} has not failed: it is still pending.`);
}

function deliveryNotFound(): ApiError {
  return new ApiError(404, 'delivery_not_found', 'There is no such delivery; successful ones are not stored.');
}
