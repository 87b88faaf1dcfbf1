import {
  sendCommand,
  forgetModel,
  type ForgetModelResult,
  listWorkers,
  pauseModel,
  resumeModel,
} from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, noSuchModel, type Route } from '../openapi/api-route.ts';
import { audit, knownModel, notAnAdmin } from './admin-action.ts';

const pauseSchema = z.strictObject({ model: z.string(), is_paused: z.boolean() }).openapi('ModelPause');

function pausing(isPaused: boolean, words: { summary: string; description?: string }): Route {
  const verb = isPaused ? 'pause' : 'resume';
  return {
    method: 'post',
    path: `/admin/models/{model}/${verb}`,
    operationId: `${verb}Model`,
    tag: 'Admin',
    ...words,
    responses: {
      ...commonErrors,
      200: jsonAnswer('The state after the call; the same if it was set before.', pauseSchema),
      403: notAnAdmin,
      404: noSuchModel,
    },
    async handle(c, context) {
      const model = await knownModel(c, context);
      await context.withStore((store) => (isPaused ? pauseModel : resumeModel)(store, model));
      audit(c, context, { action: `${verb} model`, model, outcome: `${verb}d` });
      return c.json({ model, is_paused: isPaused }, 200);
    },
  };
}

const restart: Route = {
  method: 'post',
  path: '/admin/models/{model}/restart',
  operationId: 'restartModel',
  tag: 'Admin',
  summary: 'Restart the workers of a model, which loads its files anew',
  description:
    'Restarts one worker after the other while the others serve: each requeues its requests with their progress and loads the files. With a single worker, requests wait. If loading fails, that worker retries and the others keep their version. A worker whose models take turns (`MEMORY_BUDGET_MB`) loads the files for its next request.',
  responses: {
    ...commonErrors,
    202: jsonAnswer(
      'These workers will restart. `/status` shows when they have.',
      z.strictObject({ model: z.string(), workers: z.array(z.string()) }).openapi('ModelRestart'),
    ),
    403: notAnAdmin,
    404: noSuchModel,
  },
  async handle(c, context) {
    const model = await knownModel(c, context);
    const workers = await context.withStore(async (store) => {
      const all = await listWorkers(store, model);
      await Promise.all(all.map((worker) => sendCommand(store, worker, { type: 'restart' })));
      return all.map(({ workerId }) => workerId);
    });
    audit(c, context, { action: 'restart model', model, outcome: 'requested' });
    return c.json({ model, workers }, 202);
  },
};

type InUse = Extract<ForgetModelResult, { status: 'in-use' }>;

const forget: Route = {
  method: 'delete',
  path: '/admin/models/{model}',
  operationId: 'forgetModel',
  tag: 'Admin',
  summary: 'Forget a model that no worker serves',
  description:
    'Deletes its name, counters and failed requests; new requests for it get a 404 until a worker publishes the model again. Results of ended requests stay readable until they expire. A model that no worker has served for a day is deleted automatically.',
  responses: {
    ...commonErrors,
    200: jsonAnswer(
      'The model was deleted.',
      z.strictObject({ model: z.string(), status: z.literal('forgotten') }).openapi('ModelForgotten'),
    ),
    403: notAnAdmin,
    404: noSuchModel,
    409: describeErrorAnswer(
      'Workers serve it, requests wait or run, or webhooks are unsent.',
      modelInUse('emoji-sd', { status: 'in-use', workers: 1, openRequests: 3, unsentWebhooks: 0 }),
    ),
  },
  async handle(c, context) {
    const model = await knownModel(c, context);
    const result = await context.withStore((store) => forgetModel(store, model));
    audit(c, context, { action: 'forget model', model, outcome: result.status });
    if (result.status === 'in-use') throw modelInUse(model, result);
    await Promise.all([context.models.reload(), context.pools.reload()]);
    return c.json({ model, status: 'forgotten' }, 200);
  },
};

function modelInUse(model: string, { workers, openRequests, unsentWebhooks }: InUse): ApiError {
  const reasons = [
    workers > 0 && `${workers} of its workers are running: stop them first`,
    openRequests > 0 && `${openRequests} of its requests wait or run: cancel them, or let them end`,
    unsentWebhooks > 0 && `${unsentWebhooks} of its webhooks are unsent: check that a webhook-sender runs`,
  ].filter((reason) => reason !== false);
  return new ApiError(409, 'model_in_use', `Model ${model} cannot be forgotten: ${reasons.join('; ')}.`);
}

export const adminModelRoutes: readonly Route[] = [
  pausing(true, {
    summary: 'Pause a model: start none of its requests',
    description: 'Requests are still accepted and wait; their deadlines count. Running requests continue to their end.',
  }),
  pausing(false, { summary: 'Resume a paused model' }),
  restart,
  forget,
];
