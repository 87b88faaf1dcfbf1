import { inSpan, SpanStatusCode } from '@darkroom/service';
import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from './api-env.ts';
import { routeOf } from './measure-requests.ts';

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
      span.updateName(`${method} ${route}`);
      span.setAttributes({
        'http.request.method': method,
        'http.route': route,
        'http.response.status_code': c.res.status,
      });
      if (c.res.status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      const requestId = c.get('requestId');
      if (requestId !== undefined) span.setAttribute('darkroom.request_id', requestId);
    });
  };
}
