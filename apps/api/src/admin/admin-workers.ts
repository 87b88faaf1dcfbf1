import { listWorkers, resumeWorker, type StoreConnection, withdrawWorker, type WorkerName } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { commonErrors, errorAnswer, jsonAnswer, type Route } from '../http/api-route.ts';
import { audit, knownModel, notAnAdmin } from './admin-action.ts';
import { workerCallRoutes, workerNotFound } from './admin-worker-calls.ts';

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
      const isThere = await context.askStore(async (store) => {
        const found = await findInModel(store, model, worker);
        return found !== undefined && withdrawWorker(store, found);
      });
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
      const result = await context.askStore(async (store) => {
        const found = await findInModel(store, model, worker);
        return found === undefined ? 'unknown' : resumeWorker(store, found);
      });
      if (result === 'unknown') throw workerNotFound(worker);
      audit(c, context, { action: 'resume worker', model, worker, outcome: result });
      if (result === 'stopping') throw workerStopping(worker);
      return c.json({ model, worker, draining: false }, 200);
    },
  },
  ...workerCallRoutes,
];

/** With the shard of the model that it is in. */
async function findInModel(store: StoreConnection, model: string, worker: string): Promise<WorkerName | undefined> {
  return (await listWorkers(store, model)).find(({ workerId }) => workerId === worker);
}

function workerStopping(worker: string): ApiError {
  return new ApiError(409, 'worker_stopping', `Worker ${worker} stops: it takes no work any more.`);
}
