/** Schemas of bodies and answers, for the OpenAPI document and for tests that validate answers. */
import { requestStates } from '@darkroom/core';
import {
  imageShape,
  imageModelShape,
  imageRequestShape,
  imageRequestSchema,
  promptCutShape,
  textModelShape,
  textRequestShape,
  textResultShape,
  textSchema,
} from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { exampleId } from './api-route.ts';
import { requestUrls } from '../http/public-url.ts';

export const time = z.iso.datetime().openapi({ example: '2026-11-21T01:40:46.000Z' });
export const count = z.int().min(0);
export const requestId = z.string().openapi({ example: exampleId });

/** Returns the schema of a list of items, named in the OpenAPI document. */
export function listSchema<Item extends z.ZodType>(name: string, item: Item) {
  return z.strictObject({ object: z.literal('list'), data: z.array(item) }).openapi(name);
}

/**
 * Request schemas with names in the document. Cloned, because they were created before zod was extended with `openapi`.
 */
export const imageBodySchema = imageRequestSchema.clone().openapi('ImageRequest');
/** OpenAPI schema of a form file. */
export const fileSchema = z.any().openapi({ type: 'string', format: 'binary' });
export const imageFormSchema = z
  .strictObject({ ...imageRequestSchema.shape, image: fileSchema.optional(), mask: fileSchema.optional() })
  .openapi('ImageForm', { description: 'Like `ImageRequest`; `image` and `mask` may be files or text.' });
export const textBodySchema = textSchema.clone().openapi('TextRequest');
/** The schema of a body depends on the kind of its model. */
export const bodySchema = z.union([imageBodySchema, textBodySchema]);

export const urlsSchema = z.strictObject({ self: z.string(), events: z.string(), cancel: z.string() });

const etaSchema = z.strictObject({ min: z.number().min(0), max: z.number().min(0) }).openapi({
  description: 'Seconds until the end, as a range from measured step times; omitted if no worker has measured any.',
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
    is_possible: z.boolean().openapi({ description: 'True if a live worker serves the model right now.' }),
    urls: urlsSchema.openapi({ example: requestUrls(exampleId) }),
  })
  .openapi('Accepted');

export const imageSchema = z.strictObject(imageShape).openapi('Image');

export const failureSchema = z
  .strictObject({ code: z.string(), message: z.string() })
  .openapi('Failure', { example: { code: 'worker_lost', message: 'The workers that ran this request were lost.' } });

const expiresAt = time
  .nullable()
  .openapi({ description: 'Time until which the results can be fetched; null while open.' });
const isPinned = z.boolean().openapi({ description: 'True if it is retained for longer than other requests.' });
const isCanceling = z.boolean().openapi({ description: 'Running, and will be canceled at its next step.' });

/** Fields of a request of any kind. */
const requestShape = {
  request_id: requestId,
  status: z.enum(requestStates),
  is_canceling: isCanceling,
  model: z.string(),
  created_at: time,
  started_at: time.nullable(),
  ended_at: time.nullable(),
  expires_at: expiresAt,
  is_pinned: isPinned,
  queue_position: count.nullable().openapi({ description: 'Requests ahead of this one; null once it runs.' }),
  eta_seconds: etaSchema.optional(),
  is_possible: z.boolean(),
  attempts: count.openapi({ description: 'Deliveries to a worker so far.' }),
  error: failureSchema.optional(),
  retry_of: z.string().optional().openapi({ description: 'The failed request of which an operator made this retry.' }),
  retried_as: z.string().optional().openapi({ description: 'The retry that an operator made of this failed request.' }),
  urls: urlsSchema,
};

export const imageStatusSchema = z
  .strictObject({
    kind: z.literal('image'),
    ...requestShape,
    ...imageRequestShape,
    ...promptCutShape,
    images: z.array(imageSchema),
  })
  .openapi('ImageStatus');

export const textStatusSchema = z
  .strictObject({ kind: z.literal('text'), ...requestShape, ...textRequestShape, ...textResultShape })
  .openapi('TextStatus');

export const requestSchema = z.discriminatedUnion('kind', [imageStatusSchema, textStatusSchema]).openapi('Request');

export const pinSchema = z
  .strictObject({ request_id: z.string(), is_pinned: z.boolean(), expires_at: time })
  .openapi('Pin');

const requestSummarySchema = z
  .strictObject({
    request_id: requestId,
    kind: z.string().openapi({ example: 'image' }),
    model: z.string(),
    status: z.enum(requestStates),
    is_canceling: isCanceling,
    created_at: time,
    started_at: time.nullable(),
    ended_at: time.nullable(),
    expires_at: expiresAt,
    is_pinned: isPinned,
    prompt: z.string().optional().openapi({
      description:
        'The first 300 characters of the prompt; omitted if the server does not store prompts, or the prompt is token ids.',
    }),
    output_count: count.openapi({ description: 'Images or texts that it has once it has succeeded.' }),
    images: z.array(imageSchema).optional().openapi({ description: 'Finished images; only of an image request.' }),
    error: failureSchema.optional(),
    urls: urlsSchema,
  })
  .openapi('RequestSummary');

export const requestPageSchema = z
  .strictObject({
    object: z.literal('list'),
    data: z.array(requestSummarySchema),
    next_cursor: z
      .string()
      .nullable()
      .openapi({ description: 'Value of `cursor` for the next page; null after the last.' }),
  })
  .openapi('RequestPage');

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
    concurrent_support: z.literal(true).openapi({ description: 'Requests are accepted while others run.' }),
    kinds: z
      .array(z.string())
      .openapi({ description: 'Kinds of work that a live worker has loaded a model for: `image`, `text`.' }),
    failed_to_load: z
      .array(z.strictObject({ model: z.string(), reason: z.string() }))
      .optional()
      .openapi({
        description:
          'Models that a worker failed to load in the last minute, with the reason; omitted if there are none. Such a worker does not register.',
      }),
  })
  .openapi('Health', {
    example: {
      status: 'ok',
      worker_pool_initialized: true,
      active_workers: 1,
      model_loaded: true,
      concurrent_support: true,
      kinds: ['image', 'text'],
    },
  });

/** Fields of a model of any kind. */
const modelShape = {
  id: z.string().openapi({ example: 'emoji-sd' }),
  object: z.literal('model'),
  created: count,
  owned_by: z.string(),
  is_possible: z.boolean().openapi({ description: 'True if a live worker serves it right now.' }),
  is_paused: z.boolean().openapi({ description: 'True if an operator has paused it: requests wait.' }),
  pipeline: z.string(),
};

export const imageModelSchema = z
  .strictObject({ kind: z.literal('image'), ...modelShape, ...imageModelShape })
  .openapi('ImageModel');

export const textModelSchema = z
  .strictObject({ kind: z.literal('text'), ...modelShape, ...textModelShape })
  .openapi('TextModel');

export const modelSchema = z.discriminatedUnion('kind', [imageModelSchema, textModelSchema]).openapi('Model');

export const modelListSchema = listSchema('ModelList', modelSchema);
