import { isIP } from 'node:net';
import type { ApiConfig } from '@darkroom/config';
import { describeValue } from '@darkroom/core';
import type { MiddlewareHandler } from 'hono';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { type ApiKeys, isOpenToAll } from './api-keys.ts';

type Settings = Pick<ApiConfig, 'host' | 'allowedHosts' | 'corsOrigins' | 'publicUrl'>;

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Values of `Sec-Fetch-Site` that no page of another origin can cause. */
const ownSites = new Set(['same-origin', 'none']);

/**
 * Protects a server without keys from pages of other origins. Throws 421 for a host name that is not the server's own:
 * with DNS rebinding a page points its own name to this server's address, and the browser treats both as one origin.
 * Throws 403 for a write from a page of another origin (CSRF), which CORS does not prevent: a form needs no preflight.
 */
export function guardOpenServer(
  keys: ApiKeys,
  { host, allowedHosts = [], corsOrigins = [], publicUrl }: Settings,
): MiddlewareHandler {
  if (!isOpenToAll(keys)) return (_c, next) => next();
  const publicUrls = publicUrl === undefined ? [] : [new URL(publicUrl)];
  const publicNames = publicUrls.map(({ hostname }) => hostname);
  const allowedNames = new Set(['localhost', host, ...allowedHosts, ...publicNames].map(nameOf));
  const allowedOrigins = new Set([...corsOrigins, ...publicUrls.map(({ origin }) => origin)]);
  const isAnyHost = allowedNames.has('*');
  const isAnyOrigin = allowedOrigins.has('*');
  return (c, next) => {
    const name = nameOf(new URL(c.req.url).hostname.replace(/^\[(?<address>.*)\]$/, '$<address>'));
    // IP addresses cannot be rebound.
    if (!isAnyHost && !allowedNames.has(name) && isIP(name) === 0) throw wrongHost(name);
    const origin = c.req.header('origin');
    if (isAnyOrigin || readingMethods.has(c.req.method) || isSameOrigin(c, origin)) return next();
    if (origin === undefined || !allowedOrigins.has(origin)) throw crossSite(origin ?? 'another site');
    return next();
  };
}

/** Returns the lower-case host name without a trailing dot or port. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(isIP(host) > 0 ? '' : /\.?(?::\d+)?$/, '');
}

/**
 * Compares origins. Browsers send `Sec-Fetch-Site` only over https and to localhost; otherwise checks `Origin`. Other
 * clients send neither.
 */
function isSameOrigin(c: ApiCall, origin: string | undefined): boolean {
  const site = c.req.header('sec-fetch-site');
  if (site !== undefined) return ownSites.has(site);
  if (origin === undefined) return true;
  // A proxy may terminate TLS, so the scheme is not compared. No page can make a browser send another Host.
  return URL.canParse(origin) && new URL(origin).host === new URL(c.req.url).host;
}

export function wrongHost(name: string): ApiError {
  const message = `Host is ${describeValue(name)}, expected localhost, an address, or a name of ALLOWED_HOSTS: this server requires no keys.`;
  return new ApiError(421, 'wrong_host', message);
}

export function crossSite(origin: string): ApiError {
  const message = `Origin is ${describeValue(origin)}, expected this server's own or one of CORS_ORIGINS: this server requires no keys.`;
  return new ApiError(403, 'cross_site_request', message);
}
