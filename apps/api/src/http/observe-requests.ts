/** What is told of every answer: to metrics, to the log and to traces. */
import { inSpan, type Logger, SpanStatusCode } from '@darkroom/service';
import type { MiddlewareHandler } from 'hono';
import { matchedRoutes } from 'hono/route';
import type { ApiCall, ApiEnv } from './api-env.ts';
import type { ApiMetrics } from './api-metrics.ts';

/** The pattern of the route that answered. Those of middleware end in a wildcard; no path of a client's making gets in. */
export function routeOf(c: ApiCall): string {
  return matchedRoutes(c).findLast(({ path }) => !path.endsWith('*'))?.path ?? 'none';
}

/** Methods with a label of their own: a client may send anything. */
const knownMethods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

export function measureRequests({ httpSeconds }: Pick<ApiMetrics, 'httpSeconds'>): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAtMs = performance.now();
    await next();
    const method = knownMethods.has(c.req.method) ? c.req.method : 'other';
    const seconds = (performance.now() - startedAtMs) / 1000;
    httpSeconds.observe({ method, route: routeOf(c), status: String(c.res.status) }, seconds);
  };
}

/** One line per request: never the body, the query or the message of an error, which may hold somebody's prompt. */
export function requestLog(log: Logger): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const startedAtMs = performance.now();
    await next();
    const { method, path } = c.req;
    const { status } = c.res;
    const ms = Math.round((performance.now() - startedAtMs) * 10) / 10;
    // Polls and probes come by the thousand.
    const isRoutine = status < 400 && (method === 'GET' || method === 'HEAD');
    const ids = { request_id: c.get('requestId'), error_id: c.get('errorId') };
    log[isRoutine ? 'debug' : 'info']({ method, path, status, ms, ...ids }, 'request');
  };
}

/** Asked all the time by those who watch, about nobody's request. */
const unwatched = new Set(['/health', '/status']);

/** A span for every answer, under the one that the client says it belongs to. A stream's ends with its headers. */
export function traceRequests(): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    if (unwatched.has(c.req.path)) return next();
    const { method } = c.req;
    await inSpan(method, { kind: 'server', parent: c.req.header('traceparent') }, async (span) => {
      await next();
      const route = routeOf(c);
      const { status } = c.res;
      span.updateName(`${method} ${route}`);
      span.setAttributes({ 'http.request.method': method, 'http.route': route, 'http.response.status_code': status });
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      const requestId = c.get('requestId');
      if (requestId !== undefined) span.setAttribute('darkroom.request_id', requestId);
    });
  };
}
