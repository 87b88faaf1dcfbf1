import type { Context } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ApiEnv } from '../context.ts';

/** The pattern of the route that answered. Those of middleware end in a wildcard; no path of a client's making gets in. */
export function routeOf(c: Context<ApiEnv>): string {
  return matchedRoutes(c).findLast(({ path }) => !path.endsWith('*'))?.path ?? 'none';
}
