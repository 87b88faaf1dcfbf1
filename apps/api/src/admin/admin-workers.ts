import { cutText } from '@darkroom/core';
import { askWorker, listModelIds, resumeWorker, type StoreConnection, withdrawWorker } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { commonErrors, errorAnswer, jsonAnswer, type Route } from '../http/api-route.ts';
import { audit, knownModel, notAnAdmin } from './admin-action.ts';

const drainSchema = z
  .strictObject({ model: z.string(), worker: z.string(), draining: z.boolean() })
  .openapi('WorkerDrain');

const responses = {
  ...commonErrors,
  200: jsonAnswer('So it is, now or before.', drainSchema),
  403: notAnAdmin,
  404: errorAnswer(
    'No such worker (`worker_not_found`), or no such model (`model_not_found`).',
    workerNotFound('gpu-1'),
  ),
};

const asked = {
  ...commonErrors,
  202: jsonAnswer(
    'It was told. `/status` says when it is so.',
    z.strictObject({ model: z.string(), worker: z.string() }).openapi('WorkerAsked'),
  ),
  403: notAnAdmin,
  404: responses[404],
};

function askRoute(to: 'sleep' | 'wake', { summary, description }: { summary: string; description: string }): Route {
  return {
    method: 'post',
    path: `/admin/workers/{worker}/${to}`,
    summary,
    description,
    responses: asked,
    async handle(c, context) {
      const worker = c.req.param('worker') ?? '';
      const model = await context.askStore((store) => askWhereverItIs(store, worker, to));
      if (model === undefined) throw workerNotFound(worker);
      audit(c, context, { action: `${to} worker`, model, worker, outcome: 'asked' });
      return c.json({ model, worker }, 202);
    },
  };
}

export const adminWorkerRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/admin/models/{model}/workers/{worker}/drain',
    summary: 'Give a worker no more requests',
    description:
      'It finishes what it has, and stays, doing nothing, until it is resumed or stopped. Started anew it is not drained.',
    responses,
    async handle(c, context) {
      const model = await knownModel(c, context);
      const worker = c.req.param('worker') ?? '';
      const isThere = await context.askStore((store) => withdrawWorker(store, { model, workerId: worker }));
      if (!isThere) throw workerNotFound(worker);
      audit(c, context, { action: 'drain worker', model, worker, outcome: 'draining' });
      return c.json({ model, worker, draining: true }, 200);
    },
  },
  {
    method: 'post',
    path: '/admin/models/{model}/workers/{worker}/resume',
    summary: 'Give a drained worker requests again',
    responses: { ...responses, 409: errorAnswer('It drains because it stops.', workerStopping('gpu-1')) },
    async handle(c, context) {
      const model = await knownModel(c, context);
      const worker = c.req.param('worker') ?? '';
      const result = await context.askStore((store) => resumeWorker(store, { model, workerId: worker }));
      if (result === 'unknown') throw workerNotFound(worker);
      audit(c, context, { action: 'resume worker', model, worker, outcome: result });
      if (result === 'stopping') throw workerStopping(worker);
      return c.json({ model, worker, draining: false }, 200);
    },
  },
  askRoute('sleep', {
    summary: 'Have a worker free the memory of its model',
    description:
      'It gets no more requests until then, and ends those it has. It stays registered, and loads the model again for its next request.',
  }),
  askRoute('wake', {
    summary: 'Have a worker load its model now',
    description: 'Without waiting for a request. Nothing happens if it is awake.',
  }),
];

/** @returns the model that it serves; undefined if there is no such worker. */
async function askWhereverItIs(store: StoreConnection, workerId: string, to: 'sleep' | 'wake') {
  for (const model of await listModelIds(store)) if (await askWorker(store, { model, workerId }, to)) return model;
  return undefined;
}

function workerNotFound(worker: string): ApiError {
  return new ApiError(404, 'worker_not_found', `There is no worker ${cutText(worker)} here.`);
}

function workerStopping(worker: string): ApiError {
  return new ApiError(409, 'worker_stopping', `Worker ${worker} stops: it takes no work any more.`);
}
