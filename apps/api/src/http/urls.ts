import type { ApiCall } from './api-env.ts';

/** Returns the URLs of a request. Paths without a host: only the client knows the host by which it reached the API. */
export function requestUrls(id: string, pathPrefix = ''): { self: string; events: string; cancel: string } {
  const self = `${pathPrefix}/v1/predict/${id}`;
  return { self, events: `${self}/events`, cancel: self };
}

/** Returns the proxy's path prefix, to prepend to the API's paths; empty without one. */
export function pathPrefixFor(c: ApiCall): string {
  return c.get('pathPrefix') ?? '';
}

/**
 * Returns a path as an absolute URL: below `PUBLIC_URL` if set, else with the scheme and host of `X-Forwarded-Proto`
 * and `X-Forwarded-Host`, else of the request. Untrusted headers are safe here: the URL goes back to their sender only.
 */
export function absoluteUrl(c: ApiCall, path: string): string {
  const publicUrl = c.get('publicUrl');
  if (publicUrl !== undefined) return `${publicUrl}${path}`;
  const own = new URL(c.req.url);
  const protocol = firstOf(c.req.header('x-forwarded-proto'));
  const host = firstOf(c.req.header('x-forwarded-host'));
  const scheme = protocol === 'http' || protocol === 'https' ? `${protocol}:` : own.protocol;
  const origin = `${scheme}//${host !== undefined && /^[\w.:[\]-]+$/.test(host) ? host : own.host}`;
  return new URL(`${pathPrefixFor(c)}${path}`, URL.canParse(origin) ? origin : own).href;
}

/** Headers for answers with absolute URLs: another client may use another host. */
export const noStore = { 'Cache-Control': 'no-store' };

/** Returns the first value of a list header: each proxy on the way appends its own. */
function firstOf(header: string | undefined): string | undefined {
  return header?.split(',')[0]?.trim();
}
