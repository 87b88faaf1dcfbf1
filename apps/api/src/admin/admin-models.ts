import { pauseModel, resumeModel } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import type { ApiCall } from '../http/api-env.ts';
import { modelNotFound } from '../http/api-error.ts';
import { commonErrors, jsonAnswer, noSuchModel, type Route } from '../http/api-route.ts';
import { modelPauseSchema, notAnAdmin } from './admin-schema.ts';
import { audit } from './audit.ts';

/** The model in the path. Throws 404 for one that no worker has ever brought: nothing is stored for it. */
export async function knownModel(c: ApiCall, { models }: ApiContext): Promise<string> {
  const model = c.req.param('model') ?? '';
  const known = await models.reload();
  if (!known.some(({ id }) => id === model)) throw modelNotFound(model, known);
  return model;
}

const responses = {
  ...commonErrors,
  200: jsonAnswer('So it is, now or before.', modelPauseSchema),
  403: notAnAdmin,
  404: noSuchModel,
};

export const adminModelRoutes: readonly Route[] = [
  {
    method: 'post',
    path: '/admin/models/{model}/pause',
    summary: 'Start no more requests of a model',
    description: 'Requests are still taken in and wait, and their deadlines run. What runs goes on to its end.',
    responses,
    async handle(c, context) {
      const model = await knownModel(c, context);
      await context.askStore((store) => pauseModel(store, model));
      audit(c, context, { action: 'pause model', model, outcome: 'paused' });
      return c.json({ model, is_paused: true }, 200);
    },
  },
  {
    method: 'post',
    path: '/admin/models/{model}/resume',
    summary: 'Start requests of a model again',
    responses,
    async handle(c, context) {
      const model = await knownModel(c, context);
      await context.askStore((store) => resumeModel(store, model));
      audit(c, context, { action: 'resume model', model, outcome: 'resumed' });
      return c.json({ model, is_paused: false }, 200);
    },
  },
];
