import { isIP } from 'node:net';
import type { ApiConfig } from '@darkroom/config';
import { describeValue } from '@darkroom/core';
import type { MiddlewareHandler } from 'hono';
import { ApiError } from '../http/api-error.ts';
import { type ApiKeys, isOpenToAll } from './api-keys.ts';

/**
 * Rejects calls to host names other than the server's own, on servers without keys. With DNS rebinding a page points
 * its own name to this server's address, and the browser treats both as one origin. IP addresses cannot be rebound.
 */
export function checkHost(
  keys: ApiKeys,
  { host, allowedHosts = [], publicUrl }: Pick<ApiConfig, 'host' | 'allowedHosts' | 'publicUrl'>,
): MiddlewareHandler {
  const publicNames = publicUrl === undefined ? [] : [new URL(publicUrl).hostname];
  const allowedNames = new Set(['localhost', host, ...allowedHosts, ...publicNames].map(nameOf));
  if (!isOpenToAll(keys) || allowedNames.has('*')) return (_c, next) => next();
  return (c, next) => {
    const name = nameOf(new URL(c.req.url).hostname.replace(/^\[(?<address>.*)\]$/, '$<address>'));
    if (allowedNames.has(name) || isIP(name) > 0) return next();
    throw wrongHost(name);
  };
}

export function wrongHost(name: string): ApiError {
  const message = `Host is ${describeValue(name)}, expected localhost, an address, or a name of ALLOWED_HOSTS: this server requires no keys.`;
  return new ApiError(421, 'wrong_host', message);
}

/** Returns the lower-case host name without a trailing dot or port. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(isIP(host) > 0 ? '' : /\.?(?::\d+)?$/, '');
}
