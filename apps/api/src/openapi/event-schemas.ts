/**
 * Schemas of the events of a request. `type` and `id` are the fields `event` and `id` of a frame, the others its data.
 * The document lists them as `RequestEvent`; OpenAPI 3.1 cannot reference them from a stream.
 */
import { imageShape, promptCutShape, textResultShape } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { count, failureSchema, imageSchema, requestId, time } from './api-schemas.ts';

/** Returns the schema of an event, named in the document. */
function event<Type extends string, Shape extends z.ZodRawShape>(
  name: string,
  type: Type,
  description: string,
  shape: Shape,
) {
  const common = {
    type: z.literal(type),
    id: z
      .string()
      .openapi({ description: 'Position in the events of the request. Increases; numbers may be missing.' }),
    request_id: requestId,
    timestamp: time,
  };
  return z.strictObject({ ...common, ...shape }).openapi(name, { description });
}

const attempt = count.openapi({ description: 'From 1.' });
const index = count.openapi({ description: 'Of the image or text, from 0.' });

const queued = event('QueuedEvent', 'queued', 'Queued; again if its worker is lost or stops.', {
  queue_position: count.openapi({ description: 'Requests that will be dispatched before this one.' }),
  attempt,
});
const started = event('StartedEvent', 'started', 'A worker started it.', { attempt });
const loading = event('LoadingEvent', 'loading', 'Its worker loads the model first.', {
  expected_seconds: z.number().optional().openapi({ description: 'Duration of the last load on this worker.' }),
});
const failed = event('FailedEvent', 'failed', 'Final.', { error: failureSchema });
const canceled = event('CanceledEvent', 'canceled', 'Final: a client or an operator canceled it.', {});
const expired = event('ExpiredEvent', 'expired', 'Final: `timeout_s` or `start_timeout_s` elapsed.', {});

const imageProgress = event('ImageProgressEvent', 'progress', 'An image advanced.', {
  index,
  step: count.openapi({ description: 'Steps done.' }),
  total_steps: count,
  progress: z.number().min(0).max(1),
  preview: z.string().optional().openapi({
    description: 'At some steps, until the request has ended: a preview as a data URL, for the `src` of an `<img>`.',
  }),
});
const { b64_json: _inlined, ...imageInfo } = imageShape;
const imageChunk = event(
  'ImageChunkEvent',
  'image',
  'A chunk of a finished image: join the bytes of all chunks of an index. A later attempt sends an image again.',
  {
    ...imageInfo,
    chunk_id: z.string(),
    chunk_index: count.openapi({ description: 'From 0.' }),
    total_chunks: count,
    is_chunked: z.boolean(),
    is_final: z.boolean().openapi({ description: 'The last chunk of the image.' }),
    b64: z.string().openapi({ description: 'The bytes of the chunk in base64.' }),
  },
);
const imagesSucceeded = event('ImagesSucceededEvent', 'succeeded', 'Final: all images are done.', {
  ...promptCutShape,
  images: z.array(imageSchema),
});

const textProgress = event(
  'TextProgressEvent',
  'progress',
  'Tokens so far, at intervals; the text is in `delta` and `snapshot`.',
  { index, tokens: count, max_tokens: count.optional() },
);
const alternative = {
  token: z.string(),
  logprob: z.number().openapi({ description: 'Natural logarithm.' }),
  bytes: z.array(count).openapi({ description: 'UTF-8.' }),
};
const logprobSchema = z
  .strictObject({ ...alternative, top: z.array(z.strictObject(alternative)) })
  .openapi('TokenLogprob', { description: 'The probability of a token, and of the most probable ones in its place.' });
const textShape = {
  index,
  offset: count.openapi({ description: 'Position in the text, in UTF-16 code units, as in strings of JavaScript.' }),
  text: z.string(),
  token_ids: z.array(count).optional(),
  nfe: count.optional().openapi({ description: 'Block diffusion: model calls after the prompt, up to here.' }),
  logprobs: z.array(logprobSchema).optional().openapi({ description: 'One per token, with `logprobs`.' }),
};
const delta = event('DeltaEvent', 'delta', 'Text was added at `offset`, and is final.', textShape);
const snapshot = event(
  'SnapshotEvent',
  'snapshot',
  'The text from `offset` on, which replaces everything after it; `░` is a token that is not decided yet.',
  textShape,
);
const reset = event(
  'ResetEvent',
  'reset',
  'Discard the text from `offset` on: another worker took over and wrote something else. Never sent by a model that is `deterministic`.',
  { index, offset: textShape.offset },
);
const textEnd = event('TextEndEvent', 'text', 'A text is finished.', {
  index,
  bytes: count.openapi({ description: 'Of its UTF-8.' }),
  finish_reason: textResultShape.finish_reasons.element,
  stop: z.string().optional().openapi({ description: 'The stop text that ended it.' }),
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  calls: count.openapi({ description: 'Model calls after the prompt.' }),
});
const textsSucceeded = event('TextsSucceededEvent', 'succeeded', 'Final: all texts are done.', textResultShape);

export const eventSchema = z.union([
  queued,
  started,
  loading,
  failed,
  canceled,
  expired,
  imageProgress,
  imageChunk,
  imagesSucceeded,
  textProgress,
  delta,
  snapshot,
  reset,
  textEnd,
  textsSucceeded,
]);
