/** What the admin's routes answer. */
import { z } from '@hono/zod-openapi';
import { noAdminKey } from '../auth/admin-access.ts';
import { errorAnswer, exampleId } from '../http/api-route.ts';

export const modelPauseSchema = z.strictObject({ model: z.string(), is_paused: z.boolean() }).openapi('ModelPause');

export const workerDrainSchema = z
  .strictObject({ model: z.string(), worker: z.string(), draining: z.boolean() })
  .openapi('WorkerDrain');

export const deadRequestListSchema = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(
      z
        .strictObject({
          request_id: z.string().openapi({ example: exampleId }),
          model: z.string(),
          owner: z.string().nullable().openapi({ description: 'The name of the key; null when its time is over.' }),
          failed_at: z.iso.datetime(),
          attempts: z.int().min(0).nullable().openapi({ description: 'Deliveries to a worker.' }),
          code: z.string().nullable(),
          reason: z.string(),
          is_retryable: z.boolean().openapi({ description: 'What it asked for is still stored.' }),
        })
        .openapi('DeadRequest'),
    ),
  })
  .openapi('DeadRequestList');

export const retriedSchema = z
  .strictObject({
    request_id: z.string().openapi({ description: 'Of the new request.', example: exampleId }),
    retry_of: z.string(),
    is_new: z.boolean().openapi({ description: 'False when it was retried before: the request is that one.' }),
  })
  .openapi('Retried');

export const droppedSchema = z
  .strictObject({ request_id: z.string(), status: z.literal('dropped') })
  .openapi('Dropped');

export const notAnAdmin = errorAnswer('The key is not one of an admin.', noAdminKey());
