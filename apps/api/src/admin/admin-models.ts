import { askWorker, listWorkers, pauseModel, resumeModel } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { commonErrors, jsonAnswer, noSuchModel, type Route } from '../http/api-route.ts';
import { audit, knownModel, notAnAdmin } from './admin-action.ts';

const pauseSchema = z.strictObject({ model: z.string(), is_paused: z.boolean() }).openapi('ModelPause');

function pausing(isPaused: boolean, words: { summary: string; description?: string }): Route {
  const verb = isPaused ? 'pause' : 'resume';
  return {
    method: 'post',
    path: `/admin/models/{model}/${verb}`,
    ...words,
    responses: {
      ...commonErrors,
      200: jsonAnswer('So it is, now or before.', pauseSchema),
      403: notAnAdmin,
      404: noSuchModel,
    },
    async handle(c, context) {
      const model = await knownModel(c, context);
      await context.askStore((store) => (isPaused ? pauseModel : resumeModel)(store, model));
      audit(c, context, { action: `${verb} model`, model, outcome: `${verb}d` });
      return c.json({ model, is_paused: isPaused }, 200);
    },
  };
}

const reload: Route = {
  method: 'post',
  path: '/admin/models/{model}/reload',
  summary: 'Have the workers of a model load its files anew',
  description:
    'One after the other, so that the others serve meanwhile: each gets no more requests, ends those it has, and loads what lies there. Requests wait while there is no other. If it cannot be loaded, that worker tries again and again, and the others stay as they are. A worker that sleeps loads it for its next request, and so does one whose models take turns (`MEMORY_BUDGET_MB`).',
  responses: {
    ...commonErrors,
    202: jsonAnswer(
      'These were told. `/status` says when it is so.',
      z.strictObject({ model: z.string(), workers: z.array(z.string()) }).openapi('ModelReload'),
    ),
    403: notAnAdmin,
    404: noSuchModel,
  },
  async handle(c, context) {
    const model = await knownModel(c, context);
    const workers = await context.askStore(async (store) => {
      const all = await listWorkers(store, model);
      await Promise.all(all.map((worker) => askWorker(store, worker, 'reload')));
      return all.map(({ workerId }) => workerId);
    });
    audit(c, context, { action: 'reload model', model, outcome: 'asked' });
    return c.json({ model, workers }, 202);
  },
};

export const adminModelRoutes: readonly Route[] = [
  pausing(true, {
    summary: 'Start no more requests of a model',
    description: 'Requests are still taken in and wait, and their deadlines run. What runs goes on to its end.',
  }),
  pausing(false, { summary: 'Start requests of a model again' }),
  reload,
];
