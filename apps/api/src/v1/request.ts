/** Routes to poll and cancel a request. */
import { isTerminalState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { awaitEnd, maxWaitS, queryWait, queryWaitMs } from '../follow/await-end.ts';
import { cancelFound, findRequest, requestIdOf } from '../follow/find-request.ts';
import { ApiError, checkField, invalidField, tooManyStreams } from '../http/api-error.ts';
import {
  describeErrorAnswer,
  exampleId,
  jsonAnswer,
  requestErrors,
  retryAfterHeader,
  type Route,
} from '../openapi/api-route.ts';
import { pathPrefixFor } from '../http/public-url.ts';
import { cancelSchema, requestSchema } from '../openapi/api-schemas.ts';
import { isText, streamPlainText, wantsPlainText } from './plain-text.ts';
import { plainTextContent, unfinishedText } from './plain-text-document.ts';
import { requestAnswer } from './request-answer.ts';

const imagesQuery = z.enum(['url', 'inline']).optional();
const imagesExpected = 'url or inline';
/** `Retry-After` of open requests, seconds; events are better for progress. */
const pollEveryS = 1;

export const requestRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}',
  operationId: 'getRequest',
  tag: 'Requests',
  summary: 'Get the status and result of a request',
  description:
    'With `Accept: text/plain` a request of one text returns its text from the start, as for `POST /v1/predict`, also while it is generated.',
  request: {
    query: z.object({
      images: imagesQuery.openapi({ description: '`inline` puts the images into the answer, in base64.' }),
      wait: queryWait.optional().openapi({
        description: `Seconds, at most ${maxWaitS}: answers when the request has ended, or after this time.`,
        example: '10',
      }),
    }),
  },
  responses: {
    ...requestErrors,
    200: {
      description: 'The request has ended; or the text, with `Accept: text/plain`.',
      content: { 'application/json': { schema: requestSchema }, ...plainTextContent },
    },
    422: unfinishedText,
    429: describeErrorAnswer(
      'With `Accept: text/plain`: the key has reached its limit of open event streams.',
      tooManyStreams(5000),
    ),
    202: jsonAnswer('Queued or running.', requestSchema, retryAfterHeader),
    400: describeErrorAnswer('The query is invalid.', invalidField('images', 'all', imagesExpected)),
  },
  async handle(c, context) {
    const id = requestIdOf(c);
    const images = checkField(imagesQuery, 'images', c.req.query('images'), imagesExpected);
    const waitMs = queryWaitMs(c.req.query('wait'));
    if (wantsPlainText(c)) {
      const request = await findRequest(context.withStore, id, c.get('owner'));
      if (isText(request)) return streamPlainText(c, context, () => Promise.resolve(request));
    }
    const request = await awaitEnd(c, context, id, waitMs);
    const view = await requestAnswer(context, request, { isInline: images === 'inline', pathPrefix: pathPrefixFor(c) });
    if (isTerminalState(request.state)) return c.json(view, 200);
    return c.json(view, 202, { 'Retry-After': String(pollEveryS) });
  },
};

export const cancelRoute: Route = {
  method: 'delete',
  path: '/v1/predict/{id}',
  operationId: 'cancelRequest',
  tag: 'Requests',
  summary: 'Cancel a request',
  responses: {
    ...requestErrors,
    200: jsonAnswer('The request was queued and is canceled.', cancelSchema),
    202: jsonAnswer('The request is running and will be canceled at its next step.', cancelSchema),
    409: describeErrorAnswer('The request has already ended.', requestEnded(exampleId, 'succeeded')),
  },
  async handle(c, context) {
    const id = requestIdOf(c);
    const result = await cancelFound(c, context, id);
    const { status } = result;
    if (status === 'ended') throw requestEnded(id, result.state);
    return c.json({ request_id: id, status }, status === 'canceled' ? 200 : 202);
  },
};

function requestEnded(id: string, state: string): ApiError {
  return new ApiError(409, 'request_ended', `Request ${id} has already ended (${state}).`);
}
