import { cors as honoCors } from 'hono/cors';
import type { MiddlewareHandler } from 'hono';

/** What a page of another origin may read; what it asks to send it may (SDKs bring headers of their own). */
const exposeHeaders = [
  'ETag',
  'Idempotent-Replayed',
  'Location',
  'RateLimit-Limit',
  'RateLimit-Policy',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'X-Fal-Error-Type',
  'X-Fal-Request-Id',
  'X-Fal-Request-Timeout-Type',
  'X-Request-Id',
  'X-Should-Retry',
];
const maxAgeS = 600;

/** Lets pages of these origins use the API; with none, browsers keep pages of other origins out. */
export function cors(origins: readonly string[] | undefined): MiddlewareHandler {
  if (origins === undefined) return (_c, next) => next();
  return honoCors({
    origin: origins.includes('*') ? '*' : [...origins],
    exposeHeaders,
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    maxAge: maxAgeS,
  });
}
