import { isServed } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { modelNotFound } from '../http/api-error.ts';
import { commonErrors, jsonAnswer, noSuchModel, type Route } from '../openapi/api-route.ts';
import { modelListSchema, modelSchema } from '../openapi/api-schemas.ts';

export const modelsRoute: Route = {
  method: 'get',
  path: '/v1/models',
  operationId: 'listModels',
  tag: 'Models',
  summary: 'List models with their capabilities',
  responses: { ...commonErrors, 200: jsonAnswer('All models.', modelListSchema) },
  handle: async (c, context) => c.json({ object: 'list', data: await listViews(context) }, 200),
};

export const modelRoute: Route = {
  method: 'get',
  path: '/v1/models/{id}',
  operationId: 'getModel',
  tag: 'Models',
  summary: 'Get a model with its capabilities',
  responses: { ...commonErrors, 200: jsonAnswer('The model.', modelSchema), 404: noSuchModel },
  async handle(c, context) {
    const id = c.req.param('id') ?? '';
    const views = await listViews(context);
    const view = views.find((model) => model.id === id);
    if (view === undefined) throw modelNotFound(id, views);
    return c.json(view, 200);
  },
};

async function listViews({ models, pools, kinds }: ApiContext) {
  const [cards, stats] = await Promise.all([models.get(), pools.get()]);
  return cards.map((card) => {
    const pool = stats.get(card.id);
    const isPaused = pool?.isPaused ?? false;
    return {
      id: card.id,
      object: 'model',
      created: card.created,
      owned_by: card.ownedBy,
      is_possible: pool !== undefined && isServed(pool) && !isPaused,
      is_paused: isPaused,
      kind: card.kind,
      pipeline: card.pipeline,
      ...kinds.ofModel(card)?.modelView(card),
    };
  });
}
