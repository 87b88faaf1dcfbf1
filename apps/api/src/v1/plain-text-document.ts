/** OpenAPI descriptions of answers with `Accept: text/plain`. */
import { describeErrorAnswer, exampleId } from '../openapi/api-route.ts';
import { endedWithoutResult } from '../answer/stored-request-error.ts';

export const plainTextContent = {
  'text/plain': { schema: { type: 'string' as const }, example: 'a birthday cake on a pink background' },
};

export const unfinishedText = describeErrorAnswer(
  'With `Accept: text/plain`: the request has ended without its text.',
  endedWithoutResult(exampleId, 'canceled', undefined),
);
