import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from './api-context.ts';

/** Says whose request it is. */
export function authenticate(): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    c.set('owner', '');
    await next();
  };
}
