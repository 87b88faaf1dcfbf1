import { isoTime } from '@darkroom/core';
import { pinRequest } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { present, requestIdOf } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { describeErrorAnswer, exampleId, jsonAnswer, requestErrors, type Route } from '../openapi/api-route.ts';
import { pinSchema } from '../openapi/api-schemas.ts';

const responses = {
  ...requestErrors,
  200: jsonAnswer('The request expires at `expires_at`.', pinSchema),
  409: describeErrorAnswer('The request has not ended.', notEnded(exampleId, 'running')),
};

const pin: Route = {
  method: 'put',
  path: '/v1/predict/{id}/pin',
  operationId: 'pinRequest',
  tag: 'Requests',
  summary: 'Retain an ended request for longer',
  description:
    'The request with its results expires 30 days after its end. Until then its bytes count towards the limit of stored bytes of its key. A second call changes nothing.',
  responses,
  handle: (c, context) => setPin(c, context, true),
};

const unpin: Route = {
  method: 'delete',
  path: '/v1/predict/{id}/pin',
  operationId: 'unpinRequest',
  tag: 'Requests',
  summary: 'Retain a request no longer than others',
  description: 'The request expires as if it had never been pinned, but in a minute at the earliest.',
  responses,
  handle: (c, context) => setPin(c, context, false),
};

export const pinRoutes: readonly Route[] = [pin, unpin];

async function setPin(c: ApiCall, { withStore }: ApiContext, isPinned: boolean): Promise<Response> {
  const id = requestIdOf(c);
  const owner = c.get('owner');
  const result = present(id, await withStore((store) => pinRequest(store, id, { owner, isPinned })));
  if (result.status === 'open') throw notEnded(id, result.state);
  return c.json({ request_id: id, is_pinned: isPinned, expires_at: isoTime(result.expiresAtMs) }, 200);
}

function notEnded(id: string, state: string): ApiError {
  return new ApiError(409, 'request_not_ended', `Request ${id} is ${state}, expected one that has ended.`);
}
