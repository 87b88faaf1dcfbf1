/** Metrics, log lines and trace spans of every answer. */
import { inSpan, type Logger, SpanStatusCode } from '@darkroom/service';
import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ApiCall, ApiEnv } from './api-env.ts';
import type { ApiMetrics } from './api-metrics.ts';

/**
 * Returns the pattern of the route that answered, or `none`; never the client's path. Middleware patterns end in `*`.
 */
export function routeOf(c: ApiCall): string {
  return matchedRoutes(c).findLast(({ path }) => !path.endsWith('*'))?.path ?? 'none';
}

/** Methods that metrics have a label for; clients may send arbitrary ones, which count as `other`. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Probe routes without traces. */
const untracedPaths = new Set(['/health', '/status']);

/**
 * Measures and logs each answer, and records its span, with the client's `traceparent` as parent. The span of a stream
 * ends with its headers.
 */
export function observeRequests({ metrics, log }: { metrics: ApiMetrics; log: Logger }): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const { method, path } = c.req;
    if (untracedPaths.has(path)) return void (await measure(c, next, { metrics, log }));
    await inSpan(method, { kind: 'server', parent: c.req.header('traceparent') }, async (span) => {
      const route = await measure(c, next, { metrics, log });
      const { status } = c.res;
      span.updateName(`${method} ${route}`);
      span.setAttributes({ 'http.request.method': method, 'http.route': route, 'http.response.status_code': status });
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      const requestId = c.get('requestId');
      if (requestId !== undefined) span.setAttribute('darkroom.request_id', requestId);
    });
  };
}

/**
 * Runs a request, counts its time, and logs one line: never the body, the query or an error message, which may contain
 * prompts. Returns the pattern of its route.
 */
async function measure(
  c: ApiCall,
  next: () => Promise<void>,
  { metrics, log }: { metrics: ApiMetrics; log: Logger },
): Promise<string> {
  const startedAtMs = performance.now();
  await next();
  const { method, path } = c.req;
  const { status } = c.res;
  const tookMs = performance.now() - startedAtMs;
  const route = routeOf(c);
  const label = knownMethods.has(method) ? method : 'other';
  metrics.httpSeconds.observe({ method: label, route, status: String(status) }, tookMs / 1000);
  // Polls and probes are frequent: log them at debug level.
  const isRoutine = status < 400 && (method === 'GET' || method === 'HEAD');
  const ids = { request_id: c.get('requestId'), error_id: c.get('errorId') };
  log[isRoutine ? 'debug' : 'info']({ method, path, status, ms: Math.round(tookMs * 10) / 10, ...ids }, 'request');
  return route;
}
