import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ApiCall, ApiEnv } from './api-env.ts';
import type { ApiMetrics } from './api-metrics.ts';

/** Methods with a label of their own: a client may send anything. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Times every answer by its route. */
export function measureRequests({ httpSeconds }: Pick<ApiMetrics, 'httpSeconds'>): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAtMs = performance.now();
    await next();
    const route = routeOf(c);
    const method = knownMethods.has(c.req.method) ? c.req.method : 'other';
    const seconds = (performance.now() - startedAtMs) / 1000;
    httpSeconds.observe({ method, route, status: String(c.res.status) }, seconds);
  };
}

/** The pattern of the route that answered. Those of middleware end in a wildcard; no path of a client's making gets in. */
export function routeOf(c: ApiCall): string {
  return matchedRoutes(c).findLast(({ path }) => !path.endsWith('*'))?.path ?? 'none';
}
