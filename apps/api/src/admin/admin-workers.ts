import { listWorkers, resumeWorker, type StoreConnection, drainByOperator, type WorkerName } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { ApiError } from '../http/api-error.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { audit, knownModel, notAnAdmin } from './admin-action.ts';
import { workerCallRoutes, workerNotFound } from './admin-worker-calls.ts';

const drainSchema = z
  .strictObject({ model: z.string(), worker: z.string(), draining: z.boolean() })
  .openapi('WorkerDrain');

const responses = {
  ...commonErrors,
  200: jsonAnswer('The state after the call; the same if it was set before.', drainSchema),
  403: notAnAdmin,
  404: describeErrorAnswer(
    'No such worker (`worker_not_found`), or no such model (`model_not_found`).',
    workerNotFound('gpu-1'),
  ),
};

export const adminWorkerRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/admin/models/{model}/workers/{worker}/drain',
    operationId: 'drainWorker',
    tag: 'Admin',
    summary: 'Drain a worker: give it no new requests',
    description: 'It finishes its requests and then idles until it is resumed or stopped. A restart ends the drain.',
    responses,
    async handle(c, context) {
      const model = await knownModel(c, context);
      const worker = c.req.param('worker') ?? '';
      const isThere = await context.withStore(async (store) => {
        const found = await findInModel(store, model, worker);
        return found !== undefined && drainByOperator(store, found);
      });
      if (!isThere) throw workerNotFound(worker);
      audit(c, context, { action: 'drain worker', model, worker, outcome: 'draining' });
      return c.json({ model, worker, draining: true }, 200);
    },
  },
  {
    method: 'post',
    path: '/admin/models/{model}/workers/{worker}/resume',
    operationId: 'resumeWorker',
    tag: 'Admin',
    summary: 'Resume a drained worker',
    responses: {
      ...responses,
      409: describeErrorAnswer('The worker is draining because it is stopping.', workerStopping('gpu-1')),
    },
    async handle(c, context) {
      const model = await knownModel(c, context);
      const worker = c.req.param('worker') ?? '';
      const result = await context.withStore(async (store) => {
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

/** Returns the worker with the shard of the model that it serves. */
async function findInModel(store: StoreConnection, model: string, worker: string): Promise<WorkerName | undefined> {
  return (await listWorkers(store, model)).find(({ workerId }) => workerId === worker);
}

function workerStopping(worker: string): ApiError {
  return new ApiError(409, 'worker_stopping', `Worker ${worker} is stopping and takes no new requests.`);
}
