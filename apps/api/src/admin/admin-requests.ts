/** Failed requests of all owners: none of what they asked for is shown. */
import { isoTime } from '@darkroom/core';
import { activeTrace } from '@darkroom/service';
import { type DeadRequest, dropRequest, listDead, listShards, retryRequest } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { present, requestIdOf } from '../follow/find-request.ts';
import { ApiError } from '../http/api-error.ts';
import { commonErrors, errorAnswer, exampleId, jsonAnswer, requestErrors, type Route } from '../http/api-route.ts';
import { noStore } from '../http/urls.ts';
import { withoutPrivate } from '../submit/admit.ts';
import { listSchema } from '../v1/api-schemas.ts';
import { audit, notAnAdmin } from './admin-action.ts';

const listedPerModel = 50;

const deadRequestSchema = z
  .strictObject({
    request_id: z.string().openapi({ example: exampleId }),
    model: z.string(),
    owner: z.string().nullable().openapi({ description: 'The name of the key; null when its time is over.' }),
    failed_at: z.iso.datetime(),
    attempts: z.int().min(0).nullable().openapi({ description: 'Deliveries to a worker.' }),
    code: z.string().nullable(),
    reason: z.string(),
    is_retryable: z.boolean().openapi({ description: 'What it asked for is still stored.' }),
  })
  .openapi('DeadRequest');
export const deadRequestListSchema = listSchema('DeadRequestList', deadRequestSchema);

export const retriedSchema = z
  .strictObject({
    request_id: z.string().openapi({ description: 'Of the new request.', example: exampleId }),
    retry_of: z.string(),
    is_new: z.boolean().openapi({ description: 'False when it was retried before: the request is that one.' }),
  })
  .openapi('Retried');

const droppedSchema = z.strictObject({ request_id: z.string(), status: z.literal('dropped') }).openapi('Dropped');

const list: Route = {
  method: 'get',
  path: '/admin/dead-requests',
  summary: 'Failed requests that nobody has retried or dropped',
  description: `Of all owners, newest first, at most ${listedPerModel} of each model; not what they asked for.`,
  responses: { ...commonErrors, 200: jsonAnswer('As it is now.', deadRequestListSchema), 403: notAnAdmin },
  async handle(c, { askStore }) {
    const dead = await askStore(async (store) => {
      const shards = await listShards(store);
      return (await Promise.all(shards.map((shard) => listDead(store, shard, listedPerModel)))).flat();
    });
    const data = dead.toSorted((left, right) => right.failedAtMs - left.failedAtMs).map(deadView);
    return c.json({ object: 'list', data }, 200, noStore);
  },
};

const retry: Route = {
  method: 'post',
  path: '/admin/dead-requests/{id}/retry',
  summary: 'Ask again for what a failed request asked for',
  description:
    'A new request of the same owner, with as much time as the first was given; limits do not count. The failed one stays as it is and says what it was `retried_as`. Asking twice makes one.',
  responses: {
    ...requestErrors,
    202: jsonAnswer('It waits, now or since it was retried before.', retriedSchema),
    403: notAnAdmin,
    409: errorAnswer(
      'It has not failed (`request_not_failed`), or its prompts are not kept (`input_not_kept`).',
      notFailed(exampleId, 'running'),
    ),
  },
  async handle(c, context) {
    const id = requestIdOf(c);
    const strip = context.config.storePrompts ? undefined : withoutPrivate(context.kinds);
    const result = await context.askStore((store, askBytes) =>
      retryRequest(store, id, { trace: activeTrace(), strip, askBytes }),
    );
    const { status } = result;
    const retried = status === 'retried' ? { retried_as: result.id } : {};
    audit(c, context, { action: 'retry request', request_id: id, outcome: status, ...retried });
    const done = present(id, result);
    if (done.status === 'not-dead') throw notFailed(id, done.state);
    if (done.status === 'not-kept') throw inputNotKept(id);
    return c.json({ request_id: done.id, retry_of: id, is_new: done.isNew }, 202);
  },
};

const drop: Route = {
  method: 'post',
  path: '/admin/dead-requests/{id}/drop',
  summary: 'Remove a failed request now',
  description: 'With its events, pictures and prompts. From then on its id is answered with 410.',
  responses: {
    ...requestErrors,
    200: jsonAnswer('Nothing is left.', droppedSchema),
    403: notAnAdmin,
    409: errorAnswer('It has not failed.', notFailed(exampleId, 'running')),
  },
  async handle(c, context) {
    const id = requestIdOf(c);
    const result = await context.askStore((store) => dropRequest(store, id));
    audit(c, context, { action: 'drop request', request_id: id, outcome: result.status });
    const done = present(id, result);
    if (done.status === 'not-dead') throw notFailed(id, done.state);
    return c.json({ request_id: id, status: 'dropped' }, 200);
  },
};

export const adminRequestRoutes: readonly Route[] = [list, retry, drop];

function deadView(dead: DeadRequest): z.infer<typeof deadRequestSchema> {
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
  return new ApiError(409, 'request_not_failed', `Request ${id} is ${state}, expected one that has failed.`);
}

function inputNotKept(id: string): ApiError {
  const message = `What request ${id} asked for is not kept (STORE_PROMPTS=false): only its owner can send it again.`;
  return new ApiError(409, 'input_not_kept', message);
}
