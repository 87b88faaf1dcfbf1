import type { ServerResponse } from 'node:http';
import type { Context, MiddlewareHandler } from 'hono';
import type { ApiEnv } from '../context.ts';
import type { ApiMetrics } from './api-metrics.ts';
import { routeOf } from './route-of.ts';

/** Methods with a label of their own: a client may send anything. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Counts every answer by its route, and those that are streams while they are open. */
export function measureRequests({ httpSeconds, eventStreams }: ApiMetrics): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAtMs = performance.now();
    await next();
    const route = routeOf(c);
    const method = knownMethods.has(c.req.method) ? c.req.method : 'other';
    const seconds = (performance.now() - startedAtMs) / 1000;
    httpSeconds.observe({ method, route, status: String(c.res.status) }, seconds);
    if (!c.res.headers.get('content-type')?.startsWith('text/event-stream')) return;
    const connection = connectionOf(c);
    if (connection === undefined || connection.closed) return;
    eventStreams.inc({ route });
    connection.once('close', () => eventStreams.dec({ route }));
  };
}

/** Undefined when the app is called without a server. */
function connectionOf(c: Context<ApiEnv>): ServerResponse | undefined {
  return (c.env as { outgoing?: ServerResponse } | undefined)?.outgoing;
}
