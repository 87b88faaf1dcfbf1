/** What `Accept: text/plain` adds to routes in the OpenAPI document. */
import { errorAnswer, exampleId } from '../http/api-route.ts';
import { endedWithoutResult } from '../follow/stored-request-error.ts';

export const plainTextContent = {
  'text/plain': { schema: { type: 'string' as const }, example: 'a birthday cake on a pink background' },
};

export const unfinishedText = errorAnswer(
  'With `Accept: text/plain`: the request has ended without its text.',
  endedWithoutResult(exampleId, 'canceled', undefined),
);
