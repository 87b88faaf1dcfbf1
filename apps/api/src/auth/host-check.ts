import { isIP } from 'node:net';
import type { ApiConfig } from '@darkroom/config';
import { describeValue } from '@darkroom/core';
import type { MiddlewareHandler } from 'hono';
import { ApiError } from '../http/api-error.ts';
import { type ApiKeys, isOpenToAll } from './api-keys.ts';

/**
 * A page can give its own name an address of ours all of a sudden (DNS rebinding), and a browser then takes us for the
 * page's own server. Where no key is asked for, only names that are ours are answered. An address is nobody's to rebind.
 */
export function checkHost(
  keys: ApiKeys,
  { host, allowedHosts = [] }: Pick<ApiConfig, 'host' | 'allowedHosts'>,
): MiddlewareHandler {
  const ours = new Set(['localhost', host, ...allowedHosts].map(nameOf));
  if (!isOpenToAll(keys) || ours.has('*')) return (_c, next) => next();
  return (c, next) => {
    const name = nameOf(new URL(c.req.url).hostname.replace(/^\[(?<address>.*)\]$/, '$<address>'));
    if (ours.has(name) || isIP(name) > 0) return next();
    throw wrongHost(name);
  };
}

export function wrongHost(name: string): ApiError {
  const message = `Host is ${describeValue(name)}, expected localhost, an address, or a name of ALLOWED_HOSTS: this server asks for no keys.`;
  return new ApiError(421, 'wrong_host', message);
}

/** Without the dot that a full name may end with, and the port that a setting may say. */
function nameOf(host: string): string {
  return host.toLowerCase().replace(isIP(host) > 0 ? '' : /\.?(?::\d+)?$/, '');
}
