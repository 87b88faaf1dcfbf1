/** fal's client in proxy mode sends all requests to one URL; the header `x-fal-target-url` names the real one. */
import type { Context } from 'hono';
import { getPath } from 'hono/utils/url';
import { invalidField } from '../http/api-error.ts';
import type { Api } from '../http/api-env.ts';

/** `https://queue.fal.run/x` is served at `/fal/queue/x`, and `https://fal.run/x` at `/fal/run/x`. */
const prefixes: Readonly<Record<string, string>> = { 'queue.fal.run': '/fal/queue', 'fal.run': '/fal/run' };
const proxyPath = '/fal/proxy';
const targetHeader = 'x-fal-target-url';

/** Rejects proxy requests without a valid target. `falPath` has routed all others to their target. */
export function addFalProxyRoute(api: Api): void {
  api.all(proxyPath, (c) => {
    const expected = `a URL of ${Object.keys(prefixes).join(' or ')}; uploads and realtime are not supported`;
    throw invalidField(targetHeader, c.req.header(targetHeader), expected);
  });
}

/** Returns the path by which to route a request: in proxy mode, the path of the target URL. */
export function falPath(request: Request): string {
  const path = getPath(request);
  const target = path === proxyPath ? targetOf(request) : undefined;
  return target === undefined ? path : `${prefixes[target.host]}${target.pathname}`;
}

function targetOf(request: Request): URL | undefined {
  const text = request.headers.get(targetHeader) ?? '';
  const target = URL.canParse(text) ? new URL(text) : undefined;
  return target !== undefined && Object.hasOwn(prefixes, target.host) ? target : undefined;
}

export function queryOf(c: Context, name: string): string | null {
  return (targetOf(c.req.raw) ?? new URL(c.req.url)).searchParams.get(name);
}
