import type { ModelCard } from '@darkroom/core';
import { type LoadFailure, type ModelStats, readLoadFailures } from '@darkroom/store';
import type { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context/context.ts';
import { retryLater } from '../http/api-error.ts';
import { commonErrors, jsonAnswer, retryAfterHeader, type Route } from '../openapi/api-route.ts';
import { createCached } from '../server/cached.ts';
import { isStoreUnavailable } from '../server/store-guard.ts';
import { healthSchema } from '../openapi/api-schemas.ts';

type Health = z.infer<typeof healthSchema>;

const unavailable: Health = {
  status: 'unavailable',
  worker_pool_initialized: false,
  active_workers: 0,
  model_loaded: false,
  concurrent_support: true,
  kinds: [],
};

/** Returns the health route. Polled often and without keys, so it reads Redis at most once a second. */
export function healthRoute({ withStore, pools, models, clock }: ApiContext): Route {
  const failures = createCached(clock, () => withStore(readLoadFailures));
  return {
    method: 'get',
    path: '/health',
    operationId: 'getHealth',
    tag: 'Health',
    summary: 'Check the health of the API and its workers',
    responses: {
      200: jsonAnswer(
        'The API works. `degraded`: no worker is ready, one is still loading, or a model failed to load.',
        healthSchema,
      ),
      421: commonErrors[421],
      503: {
        description: 'Redis cannot be reached.',
        headers: retryAfterHeader,
        content: { 'application/json': { schema: healthSchema, example: unavailable } },
      },
    },
    async handle(c) {
      try {
        const [stats, cards, failed] = await Promise.all([pools.get(), models.get(), failures.get()]);
        return c.json({ ...healthOf([...stats.values()], failed), kinds: servedKinds(stats, cards) }, 200);
      } catch (error) {
        if (!isStoreUnavailable(error)) throw error;
        return c.json(unavailable, 503, retryLater);
      }
    },
  };
}

/** Returns the kinds that a live worker has loaded a model for. */
function servedKinds(pools: ReadonlyMap<string, ModelStats>, cards: readonly ModelCard[]): string[] {
  const served = cards.filter(({ id }) => loadedWorkers(pools.get(id)) > 0);
  return [...new Set(served.map(({ kind }) => kind))].toSorted();
}

/** Returns the number of loaded workers. Sleeping workers count: the first request wakes them. */
function loadedWorkers(pool: ModelStats | undefined): number {
  return pool === undefined ? 0 : pool.workers.idle + pool.workers.busy + pool.workers.asleep;
}

function healthOf(pools: readonly ModelStats[], failures: readonly LoadFailure[]): Omit<Health, 'kinds'> {
  let loading = 0;
  let loaded = 0;
  for (const pool of pools) {
    loading += pool.workers.loading;
    loaded += loadedWorkers(pool);
  }
  const isLoaded = loaded > 0 && loading === 0;
  return {
    status: isLoaded && failures.length === 0 ? 'ok' : 'degraded',
    worker_pool_initialized: loaded + loading > 0,
    active_workers: loaded,
    model_loaded: isLoaded,
    concurrent_support: true,
    ...(failures.length > 0 && {
      failed_to_load: failures.map(({ model, reason }) => ({ model, reason: `failed to load: ${reason}` })),
    }),
  };
}
