import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { addRoute, type Api, errorAnswer, requestErrors } from '../http/api-route.ts';
import { cancelFound, requestIdOf } from '../follow/find-request.ts';
import type { AskStore } from '../server/store-guard.ts';
import { cancelSchema } from './api-schemas.ts';

export function addCancelRoute(api: Api, deps: { askStore: AskStore }): void {
  addRoute(api, cancelRoute, async (c) => {
    const id = requestIdOf(c);
    const result = await cancelFound(deps, id, c.get('owner'));
    switch (result.status) {
      case 'canceled':
        return c.json({ request_id: id, status: 'canceled' }, 200);
      case 'canceling':
        return c.json({ request_id: id, status: 'canceling' }, 202);
      case 'ended':
        throw new ApiError({
          status: 409,
          code: 'request_ended',
          message: `Request ${id} has ended already: it is ${result.state}.`,
        });
    }
  });
}

const cancelRoute = {
  method: 'delete' as const,
  path: '/v1/predict/{id}',
  summary: 'Cancel a request',
  request: { params: z.object({ id: z.string() }) },
  responses: {
    ...requestErrors,
    200: { description: 'It waited, and is canceled.', content: { 'application/json': { schema: cancelSchema } } },
    202: {
      description: 'It runs, and leaves at its next step.',
      content: { 'application/json': { schema: cancelSchema } },
    },
    409: errorAnswer('It has ended.', {
      message: 'Request emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe has ended already: it is succeeded.',
      code: 'request_ended',
    }),
  },
};
