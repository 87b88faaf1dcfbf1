import { type LoadFailure, type ModelStats, readLoadFailures } from '@darkroom/store';
import type { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context.ts';
import { retryLater } from '../http/api-error.ts';
import { commonErrors, jsonAnswer, retryAfterHeader, type Route } from '../http/api-route.ts';
import { createCached } from '../server/cached.ts';
import { isStoreAway } from '../server/store-guard.ts';
import { healthSchema } from './api-schemas.ts';

type Health = z.infer<typeof healthSchema>;

const unavailable: Health = {
  status: 'unavailable',
  worker_pool_initialized: false,
  active_workers: 0,
  model_loaded: false,
};

/** It is asked often and by anybody: what Redis is asked for it is asked once a second. */
export function healthRoute({ askStore, pools, clock }: ApiContext): Route {
  const failures = createCached(clock, () => askStore(readLoadFailures));
  return {
    method: 'get',
    path: '/health',
    summary: 'Whether pictures can be made',
    responses: {
      200: jsonAnswer(
        'The API works. `degraded`: no worker, one that still loads, or one whose model failed to load.',
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
        const [stats, failed] = await Promise.all([pools.get(), failures.get()]);
        return c.json(healthOf([...stats.values()], failed), 200);
      } catch (error) {
        if (!isStoreAway(error)) throw error;
        return c.json(unavailable, 503, retryLater);
      }
    },
  };
}

function healthOf(pools: readonly ModelStats[], failures: readonly LoadFailure[]): Health {
  let loading = 0;
  let loaded = 0;
  for (const { workers } of pools) {
    loading += workers.loading;
    // One that sleeps can work as soon as it is asked to.
    loaded += workers.idle + workers.busy + workers.asleep;
  }
  const isLoaded = loaded > 0 && loading === 0;
  return {
    status: isLoaded && failures.length === 0 ? 'ok' : 'degraded',
    worker_pool_initialized: loaded + loading > 0,
    active_workers: loaded,
    model_loaded: isLoaded,
    ...(failures.length > 0 && {
      failed_to_load: failures.map(({ model, reason }) => ({ model, reason: `failed to load: ${reason}` })),
    }),
  };
}
