import type { ModelCard } from '@darkroom/core';
import type { Kinds } from '@darkroom/kinds';
import type { ModelStats } from '@darkroom/store';
import { z } from '@hono/zod-openapi';
import { modelNotFound } from '../http/api-error.ts';
import { addRoute, type Api, commonErrors, noSuchModel } from '../http/api-route.ts';
import type { ModelPools } from '../follow/model-pools.ts';
import type { Cached } from '../server/cached.ts';
import { modelListSchema, modelSchema } from './api-schemas.ts';

interface ModelRoutesDeps {
  pools: ModelPools;
  models: Cached<readonly ModelCard[]>;
  kinds: Kinds;
}

export function addModelRoutes(api: Api, deps: ModelRoutesDeps): void {
  addRoute(api, listRoute, async (c) => c.json({ object: 'list', data: await listViews(deps) }, 200));
  addRoute(api, modelRoute, async (c) => {
    const id = c.req.param('id') ?? '';
    const views = await listViews(deps);
    const view = views.find((model) => model.id === id);
    if (view === undefined) throw modelNotFound(id, views);
    return c.json(view, 200);
  });
}

async function listViews({ models, pools, kinds }: ModelRoutesDeps) {
  const [cards, stats] = await Promise.all([models.get(), pools.get()]);
  return cards.map((card) => modelView(kinds, card, stats.get(card.id)));
}

function modelView(kinds: Kinds, card: ModelCard, pool: ModelStats | undefined) {
  const isPaused = pool?.isPaused === true;
  const isServed = pool !== undefined && pool.workers.loading + pool.workers.idle + pool.workers.busy > 0;
  return {
    id: card.id,
    object: 'model',
    created: card.created,
    owned_by: card.ownedBy,
    is_possible: isServed && !isPaused,
    is_paused: isPaused,
    pipeline: card.pipeline,
    ...kinds.ofModel(card)?.modelView(card),
  };
}

const listRoute = {
  method: 'get' as const,
  path: '/v1/models',
  summary: 'The models, and what each can do',
  responses: {
    ...commonErrors,
    200: { description: 'All models.', content: { 'application/json': { schema: modelListSchema } } },
  },
};

const modelRoute = {
  method: 'get' as const,
  path: '/v1/models/{id}',
  summary: 'One model, and what it can do',
  request: { params: z.object({ id: z.string() }) },
  responses: {
    ...commonErrors,
    200: { description: 'The model.', content: { 'application/json': { schema: modelSchema } } },
    404: noSuchModel,
  },
};
