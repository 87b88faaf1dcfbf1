/** OpenAPI descriptions that all submitting routes share. */
import { z } from '@hono/zod-openapi';
import { rateLimitExceeded } from '../auth/limit-rate.ts';
import { commonErrors, describeErrorAnswer, noSuchModel, retryAfterHeader } from './api-route.ts';
import { bodyTooSlow } from '../body/min-rate.ts';
import { bodyTooLarge, wrongType } from '../body/read-json-body.ts';
import { idempotencyConflict, idempotencyKey } from '../submit/idempotency.ts';

const countHeader = (description: string) => ({ description, schema: { type: 'string' as const } });

export const exampleRateLimit = rateLimitExceeded({ perMinute: 60, resetMs: 12_000 });

/** Errors of every submitting route before the request is stored, besides 400 and 503. */
export const submitErrors = {
  401: commonErrors[401],
  421: commonErrors[421],
  404: noSuchModel,
  409: describeErrorAnswer('The Idempotency-Key was already used with a different body.', idempotencyConflict()),
  413: describeErrorAnswer('The body is too large.', bodyTooLarge(1_048_576)),
  415: describeErrorAnswer(
    'The body is neither application/json nor, on routes that accept files, multipart/form-data.',
    wrongType('text/plain'),
  ),
  429: {
    ...describeErrorAnswer(
      'The key has reached its limit of requests per minute (`rate_limit_exceeded`), open requests (`too_many_open_requests`), event streams (`too_many_streams`) or stored bytes (`too_many_bytes`).',
      exampleRateLimit,
    ),
    headers: {
      ...retryAfterHeader,
      'RateLimit-Limit': countHeader('Requests per minute.'),
      'RateLimit-Remaining': countHeader('Requests left in this window.'),
      'RateLimit-Reset': countHeader('Seconds until the full allowance is restored.'),
    },
  },
};

/** Additional errors of routes that accept forms. */
export const formErrors = { 408: describeErrorAnswer('The files did not arrive in time.', bodyTooSlow()) };

/** Request headers of every submitting route. */
export const submitHeaders = z.object({
  'idempotency-key': idempotencyKey.optional().openapi({
    description:
      'The same key with the same body returns the same request while its result is stored; with a different body it returns 409.',
  }),
  prefer: z.string().optional().openapi({
    description: '`wait=<seconds>`, at most 60: answers when the request has ended, or after this time.',
    example: 'wait=10',
  }),
});
