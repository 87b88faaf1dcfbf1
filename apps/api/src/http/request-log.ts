import type { Logger } from '@darkroom/service';
import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from './api-env.ts';

/** One line per request: never the body, the query or the message of an error, which may hold somebody's prompt. */
export function requestLog(log: Logger): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAt = performance.now();
    await next();
    const { status } = c.res;
    const line = {
      method: c.req.method,
      path: c.req.path,
      status,
      ms: Math.round((performance.now() - startedAt) * 10) / 10,
      request_id: c.get('requestId'),
      error_id: c.get('errorId'),
    };
    // Polls and probes come by the thousand.
    const isRoutine = status < 400 && (c.req.method === 'GET' || c.req.method === 'HEAD');
    log[isRoutine ? 'debug' : 'info'](line, 'request');
  };
}
