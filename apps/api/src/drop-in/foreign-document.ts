import { z } from '@hono/zod-openapi';
import { missingApiKey } from '../auth/api-keys.ts';
import { wrongHost } from '../auth/host-check.ts';
import { type ApiError, type ErrorView, overloaded, toApiError } from '../http/api-error.ts';
import { exampleNoModel, type RouteDocument } from '../http/api-route.ts';
import { bodyTooLarge, invalidBody, wrongType } from '../http/read-json-body.ts';
import { exampleRateLimit } from '../submit/submit-document.ts';

type Described = Pick<RouteDocument, 'description' | 'request' | 'responses'>;

/** The description of an answer in the shape of another API. */
export function foreignAnswer(description: string, example: object) {
  return { description, content: { 'application/json': { schema: z.looseObject({}), example } } };
}

/**
 * How routes stand in the document that speak as another API, with errors as `view` has them and `params` in their paths.
 * `refusals`: the errors of submissions before anything is stored.
 */
export function foreignDocuments(tag: string, view: ErrorView, params: Record<string, z.ZodType>) {
  const described = (answers: Readonly<Record<string, ApiError>>) =>
    Object.fromEntries(
      Object.entries(answers).map(([description, error]) => {
        const { status = error.status, body } = view(error, undefined);
        return [status, foreignAnswer(description, body)];
      }),
    );
  const errors = described({
    'No key, or none of this server.': missingApiKey(),
    'No such model or request.': exampleNoModel,
    'Not a name of this server (only without keys).': wrongHost('example.org'),
    'The key has used up what it may.': exampleRateLimit,
    'A fault on our side; the id is in the log too.': toApiError(undefined, '…'),
    'Redis is away, or too many requests wait. Nothing is stored.': overloaded(),
  });
  const refusals = described({
    'The body is not JSON.': invalidBody('the body is empty, expected a JSON object'),
    'The body is too large.': bodyTooLarge(1_048_576),
    'No application/json.': wrongType(''),
  });
  const route = (method: RouteDocument['method'], path: string, summary: string, more: Described): RouteDocument => {
    const responses = { ...errors, ...more.responses };
    return { ...more, method, path, summary, params, tags: [tag], responses };
  };
  return { route, refusals };
}
