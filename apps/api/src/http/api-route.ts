import { createRoute, type OpenAPIHono, z } from '@hono/zod-openapi';
import type { Handler } from 'hono';
import type { ApiEnv } from './api-env.ts';
import { errorSchema } from './error-response.ts';

export type Api = OpenAPIHono<ApiEnv>;
type RouteConfig = Parameters<typeof createRoute>[0];

/**
 * Adds a route to the app and to the OpenAPI document. Handlers check what comes themselves, with the schemas that the
 * document shows: zod-openapi's own validators do not tell a message which value came.
 */
export function addRoute(api: Api, config: RouteConfig, handler: Handler<ApiEnv>): void {
  const route = createRoute(config);
  api.openAPIRegistry.registerPath(route);
  api.on(route.method.toUpperCase(), route.getRoutingPath(), handler);
}

export interface ErrorExample {
  message: string;
  code: string;
  param?: string;
}

/** The description of an answer that is an error, with one it may give. */
export function errorAnswer(description: string, { message, code, param }: ErrorExample, isRetryable = false) {
  const type = isRetryable
    ? code === 'rate_limit_exceeded' || code === 'too_many_streams'
      ? 'rate_limit_error'
      : 'service_unavailable'
    : 'invalid_request_error';
  const example = { message, error: { message, type, code, param: param ?? null } };
  return {
    description,
    content: { 'application/json': { schema: errorSchema, example } },
    ...(isRetryable ? { headers: retryAfterHeader } : {}),
  };
}

export const retryAfterHeader = {
  'Retry-After': { description: 'Seconds to wait before asking again.', schema: { type: 'integer' as const } },
};

/** What every route that asks Redis may answer. */
export const commonErrors = {
  401: errorAnswer('No key, or none of this server; servers without keys take everybody.', {
    message: 'The API key is missing, expected Authorization: Bearer <key>.',
    code: 'missing_api_key',
  }),
  421: errorAnswer('Not a name of this server (only where no keys are asked for).', {
    message:
      'Host is "example.org", expected localhost, an address, or a name of ALLOWED_HOSTS: this server asks for no keys.',
    code: 'wrong_host',
  }),
  500: {
    description: 'A fault on our side; the id is in the log too.',
    content: { 'application/json': { schema: errorSchema } },
  },
  503: errorAnswer(
    'Redis cannot be reached.',
    { message: 'The queue cannot be reached right now, try again later.', code: 'unavailable' },
    true,
  ),
};

/** What every route of one request may answer. */
export const requestErrors = {
  ...commonErrors,
  404: errorAnswer('Never heard of it.', {
    message: 'There is no request emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe.',
    code: 'request_not_found',
  }),
  410: errorAnswer('Its time is over.', {
    message: 'Request emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe is over, and its results are no longer kept.',
    code: 'request_gone',
  }),
};

const countHeader = (description: string) => ({ description, schema: { type: 'string' as const } });

/** What a route that submits answers to a key that has used up what it may. */
const rateLimitAnswer = {
  ...errorAnswer(
    'The key has used up its requests per minute (`rate_limit_exceeded`), has as many open requests (`too_many_open_requests`) or event streams (`too_many_streams`) as it may, or keeps as many bytes as it may (`too_many_bytes`).',
    { message: 'This key may send 60 requests a minute; the next one in 12 s.', code: 'rate_limit_exceeded' },
    true,
  ),
  headers: {
    ...retryAfterHeader,
    'RateLimit-Limit': countHeader('Requests per minute.'),
    'RateLimit-Remaining': countHeader('What is left of them.'),
    'RateLimit-Reset': countHeader('Seconds until all of them are back.'),
  },
};

export const noSuchModel = errorAnswer('No such model.', {
  message: 'model "sdxl" is not here, expected one of emoji-sd',
  code: 'model_not_found',
  param: 'model',
});

/** What every route that takes a request in may answer before it is stored, besides 400 and 503. */
export const submitErrors = {
  401: commonErrors[401],
  421: commonErrors[421],
  404: noSuchModel,
  409: errorAnswer('The Idempotency-Key came with another body before.', {
    message: 'This Idempotency-Key came with another body before; a new request needs a new key.',
    code: 'idempotency_conflict',
    param: 'Idempotency-Key',
  }),
  413: errorAnswer('The body is too large.', {
    message: 'the body has more than 1048576 bytes',
    code: 'body_too_large',
  }),
  415: errorAnswer('The body is not application/json.', {
    message: 'Content-Type is "text/plain", expected application/json',
    code: 'unsupported_media_type',
  }),
  429: rateLimitAnswer,
};

/** What every route that submits takes. */
export const submitHeaders = z.object({
  'idempotency-key': z
    .string()
    .regex(/^[\x21-\x7e]{1,255}$/)
    .optional()
    .openapi({
      description:
        'The same key with the same body is the same request, for as long as its result is kept; with another body it is 409.',
    }),
  prefer: z.string().optional().openapi({
    description: '`wait=<seconds>`, at most 60: the answer comes when the request has ended, or then.',
    example: 'wait=10',
  }),
});
