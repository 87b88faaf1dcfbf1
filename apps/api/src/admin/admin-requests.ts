/** Failed requests of all owners, without their inputs. */
import { isoTime, type LastFailure } from '@darkroom/core';
import { activeTrace } from '@darkroom/service';
import {
  type DeadRequest,
  dropRequest,
  listDead,
  listShards,
  readDead,
  readFailure,
  readRequest,
  retryRequest,
} from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { present, requestIdOf } from '../follow/find-request.ts';
import { ApiError, modelNotFound } from '../http/api-error.ts';
import {
  commonErrors,
  describeErrorAnswer,
  exampleId,
  jsonAnswer,
  requestErrors,
  type Route,
} from '../openapi/api-route.ts';
import { noStore } from '../http/public-url.ts';
import { withoutPrivate } from '../submit/admit.ts';
import { listSchema } from '../openapi/api-schemas.ts';
import { audit, notAnAdmin } from './admin-action.ts';

const listedPerModel = 50;

const failureFields = {
  code: z.string().openapi({ description: '`engine_error`, `out_of_memory`, `timeout` or `worker_lost`.' }),
  message: z.string().openapi({ description: 'Message of the engine or module.' }),
  worker: z.string(),
};
const failureSchema = z
  .strictObject(failureFields)
  .nullable()
  .openapi('LastFailure', { description: 'Error of the last failed attempt. The client gets only the code.' });

const deadRequestSchema = z
  .strictObject({
    request_id: z.string().openapi({ example: exampleId }),
    model: z.string(),
    owner: z.string().nullable().openapi({ description: 'The name of the key; null if the request has expired.' }),
    failed_at: z.iso.datetime(),
    attempts: z.int().min(0).nullable().openapi({ description: 'Deliveries to a worker.' }),
    code: z.string().nullable(),
    reason: z.string(),
    failure: failureSchema,
    is_retryable: z.boolean().openapi({ description: 'True while its input is still stored.' }),
  })
  .openapi('DeadRequest');
export const deadRequestListSchema = listSchema('DeadRequestList', deadRequestSchema);

export const retriedSchema = z
  .strictObject({
    request_id: z.string().openapi({ description: 'Id of the new request.', example: exampleId }),
    retry_of: z.string(),
    is_new: z.boolean().openapi({ description: 'False if it was retried before: then this is the id of that retry.' }),
  })
  .openapi('Retried');

const droppedSchema = z.strictObject({ request_id: z.string(), status: z.literal('dropped') }).openapi('Dropped');

const list: Route = {
  method: 'get',
  path: '/admin/dead-requests',
  operationId: 'listDeadRequests',
  tag: 'Admin',
  summary: 'List failed requests that were neither retried nor dropped',
  description: `Requests of all owners without their inputs, newest first, at most ${listedPerModel} per model.`,
  responses: { ...commonErrors, 200: jsonAnswer('The current state.', deadRequestListSchema), 403: notAnAdmin },
  async handle(c, { withStore }) {
    const dead = await withStore(async (store) => {
      const shards = await listShards(store);
      return (await Promise.all(shards.map((shard) => listDead(store, shard, listedPerModel)))).flat();
    });
    const data = dead.toSorted((left, right) => right.failedAtMs - left.failedAtMs).map(deadView);
    return c.json({ object: 'list', data }, 200, noStore);
  },
};

const detailsDescription =
  'Stack of the error, as the log has it under `an attempt failed` or `unexpected engine error`; at most 4,000 characters. null if there is none, such as for a lost worker.';
const requestFailureSchema = z
  .strictObject({
    request_id: z.string().openapi({ example: exampleId }),
    status: z.string(),
    attempts: z.int().min(0).nullable().openapi({ description: 'Deliveries to a worker; null once it has expired.' }),
    error: z
      .strictObject({ code: z.string(), message: z.string() })
      .nullable()
      .openapi({ description: 'The error that the client gets.' }),
    failure: z
      .strictObject({ ...failureFields, details: z.string().nullable().openapi({ description: detailsDescription }) })
      .nullable()
      .openapi('FailureDetails', { description: 'Error of the last failed attempt. The client gets only the code.' }),
  })
  .openapi('FailedAttempt');

const why: Route = {
  method: 'get',
  path: '/admin/requests/{id}',
  operationId: 'getRequestFailure',
  tag: 'Admin',
  summary: 'Get the errors of a request and of its last failed attempt',
  description:
    'For any owner and any state; without the input. Failed requests are found after they have expired, too.',
  responses: { ...requestErrors, 200: jsonAnswer('The current state.', requestFailureSchema), 403: notAnAdmin },
  async handle(c, { withStore }) {
    const id = requestIdOf(c);
    const [found, failure] = await withStore((store) => Promise.all([readRequest(store, id), readFailure(store, id)]));
    const expired = found.status === 'gone' ? await withStore((store) => readDead(store, id)) : undefined;
    if (expired !== undefined) {
      const shown = { request_id: id, status: 'failed', attempts: null, error: expired.error };
      return c.json({ ...shown, failure: failureView(expired.failure) }, 200, noStore);
    }
    const { state, attempts, error = null } = present(id, found).request;
    return c.json({ request_id: id, status: state, attempts, error, failure: failureView(failure) }, 200, noStore);
  },
};

const retry: Route = {
  method: 'post',
  path: '/admin/dead-requests/{id}/retry',
  operationId: 'retryDeadRequest',
  tag: 'Admin',
  summary: 'Retry a failed request',
  description:
    'Creates a new request of the same owner with the same input and timeout, regardless of limits. The failed request stays and names the new one in `retried_as`. A second call returns the same retry.',
  responses: {
    ...requestErrors,
    202: jsonAnswer('The retry was queued, now or by an earlier call.', retriedSchema),
    403: notAnAdmin,
    409: describeErrorAnswer(
      'It has not failed (`request_not_failed`), or its input is not stored (`input_not_kept`).',
      notFailed(exampleId, 'running'),
    ),
  },
  async handle(c, context) {
    const id = requestIdOf(c);
    const strip = context.config.storePrompts ? undefined : withoutPrivate(context.kinds);
    const result = await context.withStore((store, callBytes) =>
      retryRequest(store, id, { trace: activeTrace(), strip, callBytes }),
    );
    const { status } = result;
    const retried = status === 'retried' ? { retried_as: result.id } : {};
    audit(c, context, { action: 'retry request', request_id: id, outcome: status, ...retried });
    const done = present(id, result);
    if (done.status === 'not-dead') throw notFailed(id, done.state);
    if (done.status === 'not-kept') throw inputNotKept(id);
    if (done.status === 'forgotten') throw modelNotFound(done.model, await context.models.get());
    return c.json({ request_id: done.id, retry_of: id, is_new: done.isNew }, 202);
  },
};

const drop: Route = {
  method: 'post',
  path: '/admin/dead-requests/{id}/drop',
  operationId: 'dropDeadRequest',
  tag: 'Admin',
  summary: 'Remove a failed request now',
  description: 'Deletes the request with its events, images and prompts. Its id returns 410 from then on.',
  responses: {
    ...requestErrors,
    200: jsonAnswer('The request was deleted.', droppedSchema),
    403: notAnAdmin,
    409: describeErrorAnswer('It has not failed.', notFailed(exampleId, 'running')),
  },
  async handle(c, context) {
    const id = requestIdOf(c);
    const result = await context.withStore((store) => dropRequest(store, id));
    audit(c, context, { action: 'drop request', request_id: id, outcome: result.status });
    const done = present(id, result);
    if (done.status === 'not-dead') throw notFailed(id, done.state);
    return c.json({ request_id: id, status: 'dropped' }, 200);
  },
};

export const adminRequestRoutes: readonly Route[] = [list, why, retry, drop];

function deadView(dead: DeadRequest): z.infer<typeof deadRequestSchema> {
  return {
    request_id: dead.id,
    model: dead.model,
    owner: dead.owner ?? null,
    failed_at: isoTime(dead.failedAtMs),
    attempts: dead.attempts ?? null,
    code: dead.code ?? null,
    reason: dead.reason,
    failure: dead.failure ?? null,
    is_retryable: dead.isRetryable,
  };
}

function failureView(failure: LastFailure | undefined): z.infer<typeof requestFailureSchema>['failure'] {
  return failure === undefined ? null : { ...failure, details: failure.details ?? null };
}

function notFailed(id: string, state: string): ApiError {
  return new ApiError(409, 'request_not_failed', `Request ${id} is ${state}, expected one that has failed.`);
}

function inputNotKept(id: string): ApiError {
  const message = `The input of request ${id} is not stored (STORE_PROMPTS=false): only its owner can send it again.`;
  return new ApiError(409, 'input_not_kept', message);
}
