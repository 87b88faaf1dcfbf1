import type { ApiConfig } from '@darkroom/config';
import { isoTime, type RequestEnvelope } from '@darkroom/core';
import type { Kinds } from '@darkroom/kinds';
import { activeTrace, type Logger } from '@darkroom/service';
import { type DeadRequest, dropRequest, listDead, listModelIds, retryRequest } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { deadRequestListSchema, droppedSchema, notAnAdmin, retriedSchema } from './admin-schema.ts';
import type { ApiEnv } from '../http/api-env.ts';
import { ApiError, requestGone, requestNotFound } from '../http/api-error.ts';
import { addRoute, type Api, commonErrors, errorAnswer, requestErrors } from '../http/api-route.ts';
import { audit } from './audit.ts';
import { requestIdOf } from '../follow/find-request.ts';
import type { AskStore } from '../server/store-guard.ts';
import { withoutPrivate } from '../submit/admit.ts';

const listedPerModel = 50;

export interface AdminRequestDeps {
  askStore: AskStore;
  config: Pick<ApiConfig, 'storePrompts'>;
  kinds: Kinds;
  log: Logger;
}

/** Failed requests of all owners: none of what they asked for is shown. */
export function addAdminRequestRoutes(api: Api, deps: AdminRequestDeps): void {
  addRoute(api, listRoute, async (c) => {
    const dead = await deps.askStore(async (store) => {
      const models = await listModelIds(store);
      return (await Promise.all(models.map((model) => listDead(store, model, listedPerModel)))).flat();
    });
    const data = dead.toSorted((left, right) => right.failedAtMs - left.failedAtMs).map(deadView);
    return c.json({ object: 'list', data }, 200, { 'Cache-Control': 'no-store' });
  });
  addRoute(api, retryRoute, (c) => retry(c, deps));
  addRoute(api, dropRoute, (c) => drop(c, deps));
}

async function retry(c: Context<ApiEnv>, deps: AdminRequestDeps): Promise<Response> {
  const id = requestIdOf(c);
  const strip = deps.config.storePrompts
    ? undefined
    : (envelope: RequestEnvelope) => withoutPrivate(deps.kinds, envelope);
  const result = await deps.askStore((store) => retryRequest(store, id, { trace: activeTrace(), strip }));
  const { status } = result;
  const retried = status === 'retried' ? { retried_as: result.id } : {};
  audit(c, deps.log, { action: 'retry request', request_id: id, outcome: status, ...retried });
  switch (status) {
    case 'retried':
      return c.json({ request_id: result.id, retry_of: id, is_new: result.isNew }, 202);
    case 'not-dead':
      throw notFailed(id, result.state);
    case 'not-kept':
      throw inputNotKept(id);
    case 'gone':
      throw requestGone(id);
    case 'unknown':
      throw requestNotFound(id);
  }
}

async function drop(c: Context<ApiEnv>, deps: AdminRequestDeps): Promise<Response> {
  const id = requestIdOf(c);
  const result = await deps.askStore((store) => dropRequest(store, id));
  audit(c, deps.log, { action: 'drop request', request_id: id, outcome: result.status });
  switch (result.status) {
    case 'dropped':
      return c.json({ request_id: id, status: 'dropped' }, 200);
    case 'not-dead':
      throw notFailed(id, result.state);
    case 'gone':
      throw requestGone(id);
    case 'unknown':
      throw requestNotFound(id);
  }
}

function deadView(dead: DeadRequest): z.infer<typeof deadRequestListSchema>['data'][number] {
  return {
    request_id: dead.id,
    model: dead.model,
    owner: dead.owner ?? null,
    failed_at: isoTime(dead.failedAtMs),
    attempts: dead.attempts ?? null,
    code: dead.code ?? null,
    reason: dead.reason,
    is_retryable: dead.isRetryable,
  };
}

function notFailed(id: string, state: string): ApiError {
  const message = `Request ${id} is ${state}, expected one that has failed.`;
  return new ApiError({ status: 409, code: 'request_not_failed', message });
}

function inputNotKept(id: string): ApiError {
  const message = `What request ${id} asked for is not kept (STORE_PROMPTS=false): only its owner can send it again.`;
  return new ApiError({ status: 409, code: 'input_not_kept', message });
}

const listRoute = {
  method: 'get' as const,
  path: '/admin/dead-requests',
  summary: 'Failed requests that nobody has retried or dropped',
  description: `Of all owners, newest first, at most ${listedPerModel} of each model; not what they asked for.`,
  responses: {
    ...commonErrors,
    200: { description: 'As it is now.', content: { 'application/json': { schema: deadRequestListSchema } } },
    403: notAnAdmin,
  },
};

const request = { params: z.object({ id: z.string() }) };

const retryRoute = {
  method: 'post' as const,
  path: '/admin/dead-requests/{id}/retry',
  summary: 'Ask again for what a failed request asked for',
  description:
    'A new request of the same owner, with as much time as the first was given; limits do not count. The failed one stays as it is and says what it was `retried_as`. Asking twice makes one.',
  request,
  responses: {
    ...requestErrors,
    202: {
      description: 'It waits, now or since it was retried before.',
      content: { 'application/json': { schema: retriedSchema } },
    },
    403: notAnAdmin,
    409: errorAnswer('It has not failed (`request_not_failed`), or its prompts are not kept (`input_not_kept`).', {
      message: 'Request emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe is running, expected one that has failed.',
      code: 'request_not_failed',
    }),
  },
};

const dropRoute = {
  method: 'post' as const,
  path: '/admin/dead-requests/{id}/drop',
  summary: 'Remove a failed request now',
  description: 'With its events, pictures and prompts. From then on its id is answered with 410.',
  request,
  responses: {
    ...requestErrors,
    200: { description: 'Nothing is left.', content: { 'application/json': { schema: droppedSchema } } },
    403: notAnAdmin,
    409: errorAnswer('It has not failed.', {
      message: 'Request emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe is running, expected one that has failed.',
      code: 'request_not_failed',
    }),
  },
};
