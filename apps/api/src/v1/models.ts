import type { ApiContext } from '../context.ts';
import { modelNotFound } from '../http/api-error.ts';
import { commonErrors, jsonAnswer, noSuchModel, type Route } from '../http/api-route.ts';
import { modelListSchema, modelSchema } from './api-schemas.ts';

export const modelsRoute: Route = {
  method: 'get',
  path: '/v1/models',
  summary: 'The models, and what each can do',
  responses: { ...commonErrors, 200: jsonAnswer('All models.', modelListSchema) },
  handle: async (c, context) => c.json({ object: 'list', data: await listViews(context) }, 200),
};

export const modelRoute: Route = {
  method: 'get',
  path: '/v1/models/{id}',
  summary: 'One model, and what it can do',
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
    const { isPaused = false, workers } = stats.get(card.id) ?? {};
    const isServed = workers !== undefined && workers.loading + workers.idle + workers.busy + workers.asleep > 0;
    return {
      id: card.id,
      object: 'model',
      created: card.created,
      owned_by: card.ownedBy,
      is_possible: isServed && !isPaused,
      is_paused: isPaused,
      kind: card.kind,
      pipeline: card.pipeline,
      ...kinds.ofModel(card)?.modelView(card),
    };
  });
}
