import { z } from '@hono/zod-openapi';
import { missingApiKey } from '../auth/api-keys.ts';
import { wrongHost } from '../auth/guard-open-server.ts';
import { type ApiError, type ErrorView, overloaded, toApiError } from '../http/api-error.ts';
import { exampleNoModel, type RouteDocument } from '../openapi/api-route.ts';
import { bodyTooLarge, invalidBody, wrongType } from '../body/read-json-body.ts';
import { exampleRateLimit } from '../openapi/submit-document.ts';
import type { Tag } from '../openapi/tags.ts';

type Described = Pick<RouteDocument, 'description' | 'request' | 'responses'>;

/** Describes an answer in the format of another API. Recorded answers are the examples of successful ones. */
export function describeExternalAnswer(description: string, example?: object) {
  return { description, content: { 'application/json': { schema: z.looseObject({}), ...(example && { example }) } } };
}

/**
 * Returns helpers that document the routes of another API, with errors in the format of `view` and the path parameters
 * `params`. `refusals` are the errors of submissions that are rejected before anything is stored.
 */
export function createExternalDocuments(tag: Tag, view: ErrorView, params: Record<string, z.ZodType>) {
  const described = (answers: Readonly<Record<string, ApiError>>) =>
    Object.fromEntries(
      Object.entries(answers).map(([description, error]) => {
        const { status = error.status, body } = view(error, undefined);
        return [status, describeExternalAnswer(description, body)];
      }),
    );
  const errors = described({
    'The API key is missing or unknown.': missingApiKey(),
    'The model or request does not exist.': exampleNoModel,
    'The Host header names another server (only checked without keys).': wrongHost('example.org'),
    'The key has reached a limit.': exampleRateLimit,
    'Internal error; the log contains its id.': toApiError(undefined, '…'),
    'Redis is unavailable, or the queue is full. Nothing is stored.': overloaded(),
  });
  const refusals = described({
    'The body is not JSON.': invalidBody('the body is empty, expected a JSON object'),
    'The body is too large.': bodyTooLarge(1_048_576),
    'The Content-Type is not application/json.': wrongType(''),
  });
  const route = (
    [method, path]: readonly [RouteDocument['method'], string],
    operationId: string,
    summary: string,
    more: Described,
  ): RouteDocument => {
    const responses = { ...errors, ...more.responses };
    return { ...more, method, path, operationId, tag, summary, params, responses };
  };
  return { route, refusals };
}
