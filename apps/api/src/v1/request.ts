import { invalidValue, isTerminalState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../http/api-error.ts';
import { addRoute, type Api, errorAnswer, requestErrors, retryAfterHeader } from '../http/api-route.ts';
import { findRequest, requestIdOf } from '../follow/find-request.ts';
import type { FollowDeps } from '../follow/tail-events.ts';
import { queryWait, queryWaitMs } from '../follow/prefer-wait.ts';
import { requestAnswer, type RequestAnswerDeps } from './request-answer.ts';
import { requestSchema } from './api-schemas.ts';
import { maxWaitS, awaitEnd } from '../follow/await-end.ts';

const imagesQuery = z.enum(['url', 'inline']).optional();
/** Seconds; progress is better followed as events. */
const pollEveryS = 1;

export function addRequestRoute(api: Api, deps: FollowDeps & RequestAnswerDeps): void {
  addRoute(api, requestRoute, async (c) => {
    const id = requestIdOf(c);
    const images = c.req.query('images');
    if (!imagesQuery.safeParse(images).success) throw invalidFields([invalidValue('images', images, 'url or inline')]);
    const waitMs = queryWaitMs(c.req.query('wait'));
    const owner = c.get('owner');
    const request =
      waitMs > 0
        ? await awaitEnd(deps, id, { owner, waitMs, signal: c.req.raw.signal })
        : await findRequest(deps.askStore, id, owner);
    const view = await requestAnswer(deps, request, { isInline: images === 'inline' });
    if (isTerminalState(request.state)) return c.json(view, 200);
    return c.json(view, 202, { 'Retry-After': String(pollEveryS) });
  });
}

const requestRoute = {
  method: 'get' as const,
  path: '/v1/predict/{id}',
  summary: 'Where a request is, and what came of it',
  request: {
    params: z.object({ id: z.string() }),
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
    200: { description: 'Ended.', content: { 'application/json': { schema: requestSchema } } },
    202: {
      description: 'Queued or running.',
      headers: retryAfterHeader,
      content: { 'application/json': { schema: requestSchema } },
    },
    400: errorAnswer('The query is wrong.', {
      message: 'images is "all", expected url or inline',
      code: 'invalid_value',
      param: 'images',
    }),
  },
};
