import { resumeWorker, withdrawWorker } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { cutText } from '@darkroom/core';
import { notAnAdmin, workerDrainSchema } from './admin-schema.ts';
import { ApiError } from '../http/api-error.ts';
import { addRoute, type Api, commonErrors, errorAnswer } from '../http/api-route.ts';
import { audit } from './audit.ts';
import { type AdminModelDeps, knownModel } from './admin-models.ts';

export function addAdminWorkerRoutes(api: Api, deps: AdminModelDeps): void {
  const { askStore, log } = deps;
  addRoute(api, drainRoute, async (c) => {
    const model = await knownModel(deps, c.req.param('model') ?? '');
    const worker = c.req.param('worker') ?? '';
    const isThere = await askStore((store) => withdrawWorker(store, { model, workerId: worker }));
    if (!isThere) throw workerNotFound(worker);
    audit(c, log, { action: 'drain worker', model, worker, outcome: 'draining' });
    return c.json({ model, worker, draining: true }, 200);
  });
  addRoute(api, resumeRoute, async (c) => {
    const model = await knownModel(deps, c.req.param('model') ?? '');
    const worker = c.req.param('worker') ?? '';
    const result = await askStore((store) => resumeWorker(store, { model, workerId: worker }));
    if (result === 'unknown') throw workerNotFound(worker);
    audit(c, log, { action: 'resume worker', model, worker, outcome: result });
    if (result === 'stopping') throw workerStopping(worker);
    return c.json({ model, worker, draining: false }, 200);
  });
}

function workerNotFound(worker: string): ApiError {
  const message = `There is no worker ${cutText(worker)} of this model.`;
  return new ApiError({ status: 404, code: 'worker_not_found', message });
}

function workerStopping(worker: string): ApiError {
  const message = `Worker ${worker} stops: it takes no work any more.`;
  return new ApiError({ status: 409, code: 'worker_stopping', message });
}

const request = { params: z.object({ model: z.string(), worker: z.string() }) };
const responses = {
  ...commonErrors,
  200: { description: 'So it is, now or before.', content: { 'application/json': { schema: workerDrainSchema } } },
  403: notAnAdmin,
  404: errorAnswer('No such worker (`worker_not_found`), or no such model (`model_not_found`).', {
    message: 'There is no worker gpu-1 of this model.',
    code: 'worker_not_found',
  }),
};

const drainRoute = {
  method: 'post' as const,
  path: '/admin/models/{model}/workers/{worker}/drain',
  summary: 'Give a worker no more requests',
  description:
    'It finishes what it has, and stays, doing nothing, until it is resumed or stopped. Started anew it is not drained.',
  request,
  responses,
};

const resumeRoute = {
  method: 'post' as const,
  path: '/admin/models/{model}/workers/{worker}/resume',
  summary: 'Give a drained worker requests again',
  request,
  responses: {
    ...responses,
    409: errorAnswer('It drains because it stops.', {
      message: 'Worker gpu-1 stops: it takes no work any more.',
      code: 'worker_stopping',
    }),
  },
};
