import { cors as honoCors } from 'hono/cors';
import type { MiddlewareHandler } from 'hono';

/** Response headers that pages of other origins may read. Request headers are unrestricted: SDKs send their own. */
const exposeHeaders = [
  'Accept-Ranges',
  'Content-Range',
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

/** Lets pages of these origins use the API. */
export function cors(origins: readonly string[]): MiddlewareHandler {
  return honoCors({
    origin: origins.includes('*') ? '*' : [...origins],
    exposeHeaders,
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'DELETE'],
    maxAge: maxAgeS,
  });
}
