/** How routes that take requests in stand in the OpenAPI document. */
import { z } from '@hono/zod-openapi';
import { rateLimitExceeded } from '../auth/limit-rate.ts';
import { commonErrors, errorAnswer, noSuchModel, retryAfterHeader } from '../http/api-route.ts';
import { uploadTooSlow } from '../http/read-form-body.ts';
import { bodyTooLarge, wrongType } from '../http/read-json-body.ts';
import { idempotencyConflict, idempotencyKey } from './idempotency.ts';

const countHeader = (description: string) => ({ description, schema: { type: 'string' as const } });

export const exampleRateLimit = rateLimitExceeded({ perMinute: 60, resetMs: 12_000 });

/** What every route that takes a request in may answer before it is stored, besides 400 and 503. */
export const submitErrors = {
  401: commonErrors[401],
  421: commonErrors[421],
  404: noSuchModel,
  409: errorAnswer('The Idempotency-Key came with another body before.', idempotencyConflict()),
  413: errorAnswer('The body is too large.', bodyTooLarge(1_048_576)),
  415: errorAnswer(
    'The body is neither application/json nor, where files may come, multipart/form-data.',
    wrongType('text/plain'),
  ),
  429: {
    ...errorAnswer(
      'The key has used up its requests per minute (`rate_limit_exceeded`), has as many open requests (`too_many_open_requests`) or event streams (`too_many_streams`) as it may, or keeps as many bytes as it may (`too_many_bytes`).',
      exampleRateLimit,
    ),
    headers: {
      ...retryAfterHeader,
      'RateLimit-Limit': countHeader('Requests per minute.'),
      'RateLimit-Remaining': countHeader('What is left of them.'),
      'RateLimit-Reset': countHeader('Seconds until all of them are back.'),
    },
  },
};

/** And where a body may come as a form. */
export const formErrors = { 408: errorAnswer('The files did not come in time.', uploadTooSlow()) };

/** What every route that submits takes. */
export const submitHeaders = z.object({
  'idempotency-key': idempotencyKey.optional().openapi({
    description:
      'The same key with the same body is the same request, for as long as its result is kept; with another body it is 409.',
  }),
  prefer: z.string().optional().openapi({
    description: '`wait=<seconds>`, at most 60: the answer comes when the request has ended, or then.',
    example: 'wait=10',
  }),
});
