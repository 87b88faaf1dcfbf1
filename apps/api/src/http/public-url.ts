import { BlockList, isIPv6 } from 'node:net';
import type { ApiConfig } from '@darkroom/config';
import type { MiddlewareHandler } from 'hono';
import { clientAddressOf } from './client-address.ts';
import type { ApiCall, ApiEnv } from './api-env.ts';

/** One or more path segments without escapes. Several proxies list theirs comma-separated, outermost first. */
const prefixPattern = /^(?:\/(?!\.\.?(?:\/|$))[\w.~-]+)+\/?$/;
const maxPrefixLength = 256;

/** Sets `publicUrl` and `pathPrefix` of a call, from PUBLIC_URL or a trusted proxy's X-Forwarded-Prefix. */
export function findPublicUrl({
  publicUrl,
  trustedProxies,
}: Pick<ApiConfig, 'publicUrl' | 'trustedProxies'>): MiddlewareHandler<ApiEnv> {
  if (publicUrl !== undefined) {
    const pathPrefix = pathPrefixOf(publicUrl);
    return (c, next) => {
      c.set('publicUrl', publicUrl);
      c.set('pathPrefix', pathPrefix);
      return next();
    };
  }
  const proxies = blockListOf(trustedProxies);
  return (c, next) => {
    const header = c.req.header('x-forwarded-prefix');
    if (header !== undefined && isListed(proxies, clientAddressOf(c))) c.set('pathPrefix', prefixOf(header));
    return next();
  };
}

/** Returns the path of `PUBLIC_URL` without a trailing slash. */
export function pathPrefixOf(publicUrl: string | undefined): string {
  return publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '');
}

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

function prefixOf(header: string): string {
  const parts = header.split(',').map((part) => part.trim());
  const isPlain = header.length <= maxPrefixLength && parts.every((part) => prefixPattern.test(part));
  return isPlain ? parts.map((part) => part.replace(/\/$/, '')).join('') : '';
}

function blockListOf(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = '', bits] = range.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return list;
}

function isListed(list: BlockList, address: string | undefined): boolean {
  if (address === undefined) return false;
  // A server that listens on `::` sees IPv4 clients as `::ffff:1.2.3.4`.
  const plain = address.replace(/^::ffff:(?=\d+\.)/, '');
  return list.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4');
}

/** Returns the first value of a list header: each proxy on the way appends its own. */
function firstOf(header: string | undefined): string | undefined {
  return header?.split(',')[0]?.trim();
}
