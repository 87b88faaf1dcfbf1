/** What the API takes and answers, for the OpenAPI document and for the tests that hold the answers against it. */
import { requestStates } from '@darkroom/core';
import {
  imageShape,
  pictureModelShape,
  pictureRequestShape,
  pictureSchema,
  promptCutShape,
  textModelShape,
  textRequestShape,
  textResultShape,
  textSchema,
} from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { exampleId } from '../http/api-route.ts';
import { requestUrls } from '../http/urls.ts';

export const time = z.iso.datetime().openapi({ example: '2026-11-21T01:40:46.000Z' });
export const count = z.int().min(0);
export const requestId = z.string().openapi({ example: exampleId });

/** All of something, under its name in the document. */
export function listSchema<Item extends z.ZodType>(name: string, item: Item) {
  return z.strictObject({ object: z.literal('list'), data: z.array(item) }).openapi(name);
}

/** The schemas that check requests, under their names in the document. Cloned: they were made before zod learned `openapi`. */
export const pictureBodySchema = pictureSchema.clone().openapi('PictureRequest');
/** A file of a form, as the document shows it. */
export const fileSchema = z.any().openapi({ type: 'string', format: 'binary' });
export const pictureFormSchema = z
  .strictObject({ ...pictureSchema.shape, image: fileSchema.optional(), mask: fileSchema.optional() })
  .openapi('PictureForm', { description: 'As `PictureRequest`; `image` and `mask` may be files or text.' });
export const textBodySchema = textSchema.clone().openapi('TextRequest');
/** What a body has to be depends on the kind of its model. */
export const bodySchema = z.union([pictureBodySchema, textBodySchema]);

export const urlsSchema = z.strictObject({ self: z.string(), events: z.string(), cancel: z.string() });

const etaSchema = z.strictObject({ min: z.number().min(0), max: z.number().min(0) }).openapi({
  description: 'Seconds until the end, as a range from measured step times; left out when nothing is known.',
  example: { min: 1.2, max: 2.5 },
});

export const acceptedSchema = z
  .strictObject({
    request_id: requestId,
    status: z.enum(requestStates).openapi({ description: '`queued`, unless an Idempotency-Key found an earlier one.' }),
    queue_position: count
      .nullable()
      .openapi({ description: 'Requests that will be dispatched before this one; null once it runs.', example: 0 }),
    eta_seconds: etaSchema.optional(),
    is_possible: z.boolean().openapi({ description: 'Whether a live worker serves the model right now.' }),
    urls: urlsSchema.openapi({ example: requestUrls(exampleId) }),
  })
  .openapi('Accepted');

export const imageSchema = z.strictObject(imageShape).openapi('Image');

const failureSchema = z
  .strictObject({ code: z.string(), message: z.string() })
  .openapi('Failure', { example: { code: 'worker_lost', message: 'The workers that ran this request were lost.' } });

/** Of a request of any kind. */
const requestShape = {
  request_id: requestId,
  status: z.enum(requestStates),
  is_canceling: z.boolean().openapi({ description: 'Running, and to leave at its next step.' }),
  model: z.string(),
  created_at: time,
  started_at: time.nullable(),
  ended_at: time.nullable(),
  expires_at: time.nullable().openapi({ description: 'Until when the results can be fetched; null while open.' }),
  queue_position: count.nullable().openapi({ description: 'Requests ahead of this one; null once it runs.' }),
  eta_seconds: etaSchema.optional(),
  is_possible: z.boolean(),
  attempts: count.openapi({ description: 'Deliveries to a worker so far.' }),
  error: failureSchema.optional(),
  retry_of: z.string().optional().openapi({ description: 'The failed request that an operator had retried.' }),
  retried_as: z
    .string()
    .optional()
    .openapi({ description: 'The request that an operator made of this one, which failed.' }),
  urls: urlsSchema,
};

export const pictureStatusSchema = z
  .strictObject({
    kind: z.literal('picture'),
    ...requestShape,
    ...pictureRequestShape,
    ...promptCutShape,
    images: z.array(imageSchema),
  })
  .openapi('PictureStatus');

export const textStatusSchema = z
  .strictObject({ kind: z.literal('text'), ...requestShape, ...textRequestShape, ...textResultShape })
  .openapi('TextStatus');

export const requestSchema = z.discriminatedUnion('kind', [pictureStatusSchema, textStatusSchema]).openapi('Request');

export const cancelSchema = z
  .strictObject({ request_id: z.string(), status: z.enum(['canceled', 'canceling']) })
  .openapi('Cancel');

export const healthSchema = z
  .strictObject({
    status: z.enum(['ok', 'degraded', 'unavailable']),
    worker_pool_initialized: z.boolean().openapi({ description: 'At least one worker is registered.' }),
    active_workers: count.openapi({ description: 'Live workers that have loaded their model.' }),
    model_loaded: z
      .boolean()
      .openapi({ description: 'At least one worker is registered, and all registered ones have loaded.' }),
    failed_to_load: z
      .array(z.strictObject({ model: z.string(), reason: z.string() }))
      .optional()
      .openapi({
        description:
          'Models that a worker could not load in the last minute, and why; there only when there are any. Such a worker does not register.',
      }),
  })
  .openapi('Health', {
    example: { status: 'ok', worker_pool_initialized: true, active_workers: 1, model_loaded: true },
  });

/** Of a model of any kind. */
const modelShape = {
  id: z.string().openapi({ example: 'emoji-sd' }),
  object: z.literal('model'),
  created: count,
  owned_by: z.string(),
  is_possible: z.boolean().openapi({ description: 'Whether a live worker serves it right now.' }),
  is_paused: z.boolean().openapi({ description: 'An operator has paused it: requests wait.' }),
  pipeline: z.string(),
};

export const pictureModelSchema = z
  .strictObject({ kind: z.literal('picture'), ...modelShape, ...pictureModelShape })
  .openapi('PictureModel');

export const textModelSchema = z
  .strictObject({ kind: z.literal('text'), ...modelShape, ...textModelShape })
  .openapi('TextModel');

export const modelSchema = z.discriminatedUnion('kind', [pictureModelSchema, textModelSchema]).openapi('Model');

export const modelListSchema = listSchema('ModelList', modelSchema);
