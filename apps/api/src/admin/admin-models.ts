import type { ModelCard } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import { pauseModel, resumeModel } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { modelPauseSchema, notAnAdmin } from './admin-schema.ts';
import { modelNotFound } from '../http/api-error.ts';
import { addRoute, type Api, commonErrors, noSuchModel } from '../http/api-route.ts';
import type { Cached } from '../server/cached.ts';
import type { AskStore } from '../server/store-guard.ts';
import { audit } from './audit.ts';

export interface AdminModelDeps {
  askStore: AskStore;
  models: Cached<readonly ModelCard[]>;
  log: Logger;
}

export function addAdminModelRoutes(api: Api, deps: AdminModelDeps): void {
  addRoute(api, pauseRoute, async (c) => {
    const model = await knownModel(deps, c.req.param('model') ?? '');
    await deps.askStore((store) => pauseModel(store, model));
    audit(c, deps.log, { action: 'pause model', model, outcome: 'paused' });
    return c.json({ model, is_paused: true }, 200);
  });
  addRoute(api, resumeRoute, async (c) => {
    const model = await knownModel(deps, c.req.param('model') ?? '');
    await deps.askStore((store) => resumeModel(store, model));
    audit(c, deps.log, { action: 'resume model', model, outcome: 'resumed' });
    return c.json({ model, is_paused: false }, 200);
  });
}

/** Throws 404 for a model that no worker has ever brought: nothing is stored for it. */
export async function knownModel({ models }: Pick<AdminModelDeps, 'models'>, model: string): Promise<string> {
  const known = await models.reload();
  if (!known.some(({ id }) => id === model)) throw modelNotFound(model, known);
  return model;
}

const responses = {
  ...commonErrors,
  200: { description: 'So it is, now or before.', content: { 'application/json': { schema: modelPauseSchema } } },
  403: notAnAdmin,
  404: noSuchModel,
};

const pauseRoute = {
  method: 'post' as const,
  path: '/admin/models/{model}/pause',
  summary: 'Start no more requests of a model',
  description: 'Requests are still taken in and wait, and their deadlines run. What runs goes on to its end.',
  request: { params: z.object({ model: z.string() }) },
  responses,
};

const resumeRoute = {
  method: 'post' as const,
  path: '/admin/models/{model}/resume',
  summary: 'Start requests of a model again',
  request: { params: z.object({ model: z.string() }) },
  responses,
};
