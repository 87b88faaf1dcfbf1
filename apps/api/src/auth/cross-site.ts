import type { ApiConfig } from '@darkroom/config';
import { describeValue } from '@darkroom/core';
import type { MiddlewareHandler } from 'hono';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { type ApiKeys, isOpenToAll } from './api-keys.ts';

const readingMethods = new Set(['GET', 'HEAD', 'OPTIONS']);
/** Values of `Sec-Fetch-Site` that no page of another origin can cause. */
const ownSites = new Set(['same-origin', 'none']);

/**
 * Rejects writes from pages of other origins (CSRF) on servers without keys. CORS does not: a form needs no preflight.
 * Clients other than browsers send neither `Sec-Fetch-Site` nor `Origin`.
 */
export function rejectCrossSite(
  keys: ApiKeys,
  { corsOrigins = [], publicUrl }: Pick<ApiConfig, 'corsOrigins' | 'publicUrl'>,
): MiddlewareHandler {
  if (!isOpenToAll(keys) || corsOrigins.includes('*')) return (_c, next) => next();
  const allowedOrigins = publicUrl === undefined ? corsOrigins : [...corsOrigins, new URL(publicUrl).origin];
  return (c, next) => {
    const origin = c.req.header('origin');
    if (readingMethods.has(c.req.method) || isSameOrigin(c, origin)) return next();
    if (origin !== undefined && allowedOrigins.includes(origin)) return next();
    throw crossSite(origin ?? 'another site');
  };
}

/** Compares origins. Browsers send `Sec-Fetch-Site` only over https and to localhost; otherwise checks `Origin`. */
function isSameOrigin(c: ApiCall, origin: string | undefined): boolean {
  const site = c.req.header('sec-fetch-site');
  if (site !== undefined) return ownSites.has(site);
  if (origin === undefined) return true;
  // A proxy may terminate TLS, so the scheme is not compared. No page can make a browser send another Host.
  return URL.canParse(origin) && new URL(origin).host === new URL(c.req.url).host;
}

export function crossSite(origin: string): ApiError {
  const message = `Origin is ${describeValue(origin)}, expected this server's own or one of CORS_ORIGINS: this server requires no keys.`;
  return new ApiError(403, 'cross_site_request', message);
}
