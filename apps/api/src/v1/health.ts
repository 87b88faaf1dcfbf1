import { DarkroomError } from '@darkroom/core';
import { type LoadFailure, type ModelPool, readLoadFailures, readPools } from '@darkroom/store';
import type { z } from '@hono/zod-openapi';
import { retryAfterS } from '../http/api-error.ts';
import { addRoute, type Api, commonErrors, retryAfterHeader } from '../http/api-route.ts';
import type { AskStore } from '../server/store-guard.ts';
import { healthSchema } from './api-schemas.ts';

type Health = z.infer<typeof healthSchema>;

export function addHealthRoute(api: Api, { askStore }: { askStore: AskStore }): void {
  addRoute(api, healthRoute, async (c) => {
    try {
      const [pools, failures] = await askStore((store) => Promise.all([readPools(store), readLoadFailures(store)]));
      return c.json(healthOf(pools, failures), 200);
    } catch (error) {
      if (!DarkroomError.isInstance(error) || error.code !== 'unavailable') throw error;
      return c.json(unavailable, 503, { 'Retry-After': String(retryAfterS) });
    }
  });
}

function healthOf(pools: readonly ModelPool[], failures: readonly LoadFailure[]): Health {
  let loading = 0;
  let loaded = 0;
  for (const pool of pools) {
    loading += pool.loading;
    loaded += pool.idle + pool.busy;
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

const unavailable: Health = {
  status: 'unavailable',
  worker_pool_initialized: false,
  active_workers: 0,
  model_loaded: false,
};

const healthRoute = {
  method: 'get' as const,
  path: '/health',
  summary: 'Whether pictures can be made',
  responses: {
    200: {
      description: 'The API works. `degraded`: no worker, one that still loads, or one whose model failed to load.',
      content: { 'application/json': { schema: healthSchema } },
    },
    421: commonErrors[421],
    503: {
      description: 'Redis cannot be reached.',
      headers: retryAfterHeader,
      content: { 'application/json': { schema: healthSchema, example: unavailable } },
    },
  },
};
