/** The one URL to which fal's client sends all in its proxy mode, with a header that names what it means. */
import type { Context } from 'hono';
import { getPath } from 'hono/utils/url';
import { invalidField } from '../http/api-error.ts';
import type { Api } from '../http/api-route.ts';

/** `https://queue.fal.run/x` is served at `/fal/queue/x`, and `https://fal.run/x` at `/fal/run/x`. */
const prefixes: Readonly<Record<string, string>> = { 'queue.fal.run': '/fal/queue', 'fal.run': '/fal/run' };
const proxyPath = '/fal/proxy';
const targetHeader = 'x-fal-target-url';

/** Reached by what names no route of ours; the others went there (`falPath`). */
export function addFalProxyRoute(api: Api): void {
  api.all(proxyPath, (c) => {
    const expected = `a URL of ${Object.keys(prefixes).join(' or ')}; uploads and realtime are not here`;
    throw invalidField(targetHeader, c.req.header(targetHeader), expected);
  });
}

/** The path to route by: the client's proxy mode sends all to one URL and names the one it means in a header. */
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
