/** One request: where it is and what came of it, and how to cancel it. */
import { isTerminalState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { awaitEnd, maxWaitS, queryWait, queryWaitMs } from '../follow/await-end.ts';
import { cancelFound, findRequest, requestIdOf } from '../follow/find-request.ts';
import { ApiError, checkField, invalidField, tooManyStreams } from '../http/api-error.ts';
import { errorAnswer, exampleId, jsonAnswer, requestErrors, retryAfterHeader, type Route } from '../http/api-route.ts';
import { cancelSchema, requestSchema } from './api-schemas.ts';
import { isText, streamPlainText, wantsPlainText } from './plain-text.ts';
import { plainTextContent, unfinishedText } from './plain-text-document.ts';
import { requestAnswer } from './request-answer.ts';

const imagesQuery = z.enum(['url', 'inline']).optional();
const imagesExpected = 'url or inline';
/** Seconds; progress is better followed as events. */
const pollEveryS = 1;

export const requestRoute: Route = {
  method: 'get',
  path: '/v1/predict/{id}',
  summary: 'Where a request is, and what came of it',
  description:
    'With `Accept: text/plain` a request of one text is answered with that text from its beginning, as of `POST /v1/predict`, whether it is written yet or not.',
  request: {
    query: z.object({
      images: imagesQuery.openapi({ description: '`inline` puts the pictures into the answer, in base64.' }),
      wait: queryWait.optional().openapi({
        description: `Seconds, at most ${maxWaitS}: the answer comes when the request has ended, or then.`,
        example: '10',
      }),
    }),
  },
  responses: {
    ...requestErrors,
    200: {
      description: 'Ended; or the text, with `Accept: text/plain`.',
      content: { 'application/json': { schema: requestSchema }, ...plainTextContent },
    },
    422: unfinishedText,
    429: errorAnswer('With `Accept: text/plain`: as of the events.', tooManyStreams(5000)),
    202: jsonAnswer('Queued or running.', requestSchema, retryAfterHeader),
    400: errorAnswer('The query is wrong.', invalidField('images', 'all', imagesExpected)),
  },
  async handle(c, context) {
    const id = requestIdOf(c);
    const images = checkField(imagesQuery, 'images', c.req.query('images'), imagesExpected);
    const waitMs = queryWaitMs(c.req.query('wait'));
    if (wantsPlainText(c)) {
      const request = await findRequest(context.askStore, id, c.get('owner'));
      if (isText(request)) return streamPlainText(c, context, () => Promise.resolve(request));
    }
    const request = await awaitEnd(c, context, id, waitMs);
    const view = await requestAnswer(context, request, { isInline: images === 'inline' });
    if (isTerminalState(request.state)) return c.json(view, 200);
    return c.json(view, 202, { 'Retry-After': String(pollEveryS) });
  },
};

export const cancelRoute: Route = {
  method: 'delete',
  path: '/v1/predict/{id}',
  summary: 'Cancel a request',
  responses: {
    ...requestErrors,
    200: jsonAnswer('It waited, and is canceled.', cancelSchema),
    202: jsonAnswer('It runs, and leaves at its next step.', cancelSchema),
    409: errorAnswer('It has ended.', requestEnded(exampleId, 'succeeded')),
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
  const message = `Request ${id} has ended already: it is ${state}.`;
  return new ApiError({ status: 409, code: 'request_ended', message });
}
