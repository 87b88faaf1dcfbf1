import { DarkroomError } from '@darkroom/core';
import { type ModelPool, readPools } from '@darkroom/store';
import type { z } from '@hono/zod-openapi';
import type { ApiContext } from '../api-context.ts';
import { retryAfterS } from '../api-error.ts';
import { addRoute, type Api, retryAfterHeader } from '../api-route.ts';
import { healthSchema } from '../api-schemas.ts';

type Health = z.infer<typeof healthSchema>;

export function addHealthRoute(api: Api, { askStore }: ApiContext): void {
  addRoute(api, healthRoute, async (c) => {
    try {
      return c.json(healthOf(await askStore(readPools)), 200);
    } catch (error) {
      if (!DarkroomError.isInstance(error) || error.code !== 'unavailable') throw error;
      return c.json(unavailable, 503, { 'Retry-After': String(retryAfterS) });
    }
  });
}

function healthOf(pools: readonly ModelPool[]): Health {
  let loading = 0;
  let loaded = 0;
  for (const pool of pools) {
    loading += pool.loading;
    loaded += pool.idle + pool.busy;
  }
  const isLoaded = loaded > 0 && loading === 0;
  return {
    status: isLoaded ? 'ok' : 'degraded',
    worker_pool_initialized: loaded + loading > 0,
    active_workers: loaded,
    model_loaded: isLoaded,
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
      description: 'The API works. `degraded`: no worker, or one that still loads.',
      content: { 'application/json': { schema: healthSchema } },
    },
    503: {
      description: 'Redis cannot be reached.',
      headers: retryAfterHeader,
      content: { 'application/json': { schema: healthSchema, example: unavailable } },
    },
  },
};
