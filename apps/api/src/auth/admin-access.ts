/** Access to admin routes. Basic credentials, which browsers send on their own, open only read-only routes (CSRF). */
import { isLoopback } from '@darkroom/config';
import { auth as basicAuth } from 'hono/utils/basic-auth';
import type { ApiCall, ApiKey } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { anonymousKey, type ApiKeys, bearerKeyOf, findKey, unauthorized, wrongKeyCode } from './api-keys.ts';

/** `loopback`: any local client, on a server without keys. `none`: `/admin` does not exist. */
export type AdminAccess = 'none' | 'keys' | 'loopback';

/** Path of Bull Board. Read-only; browsers open it directly, so it accepts the key as a Basic password. */
export const boardPath = '/admin/queues';

export function adminAccessOf(keys: ApiKeys, host: string): AdminAccess {
  if ([...keys.values()].some(({ isAdmin }) => isAdmin)) return 'keys';
  return keys.size === 0 && isLoopback(host) ? 'loopback' : 'none';
}

/** Returns the admin key of a call to `/admin/`. Throws 401 or 403 for calls without admin access. */
export function adminOf(c: ApiCall, keys: ApiKeys, access: 'keys' | 'loopback'): ApiKey {
  if (access === 'loopback') {
    rejectRemote(c);
    return anonymousKey;
  }
  if (c.req.path.startsWith(boardPath)) return boardVisitor(c, keys);
  const key = bearerKeyOf(c.req.header('authorization'), keys);
  if (key.isAdmin) return key;
  throw noAdminKey();
}

export function noAdminKey(): ApiError {
  return new ApiError(403, 'not_an_admin', 'This key has no admin access, expected one of ADMIN_KEYS.');
}

/** Returns the admin key of a call to the board: from a Basic password with any user name, or a bearer key. */
function boardVisitor(c: ApiCall, keys: ApiKeys): ApiKey {
  const password = basicAuth(c.req.raw)?.password;
  const key = password === undefined ? undefined : findKey(password, keys);
  if (key?.isAdmin === true) return key;
  const authorization = c.req.header('authorization');
  const bearer = authorization?.startsWith('Basic') === false ? bearerKeyOf(authorization, keys) : undefined;
  if (bearer?.isAdmin === true) return bearer;
  // A 401 makes the browser ask for the password; after a 403 it would keep sending the wrong one.
  const code = authorization === undefined ? 'missing_api_key' : wrongKeyCode;
  const message = 'Expected a key of ADMIN_KEYS as the password, with any user name.';
  throw unauthorized(code, message, 'Basic realm="Darkroom admin", charset="UTF-8"');
}

/** Headers of proxies: the client behind a local proxy may be remote, whatever the `Host`. */
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'];

/**
 * Throws 403 for calls that may come from elsewhere. A server without keys trusts local clients; a local browser may
 * show a page that posts here (`Origin`, `Sec-Fetch-Site`) or whose name was rebound to this address (`Host`).
 */
function rejectRemote(c: ApiCall): void {
  const url = new URL(c.req.url);
  const site = c.req.header('sec-fetch-site') ?? 'none';
  const origin = c.req.header('origin') ?? url.origin;
  const isSameOrigin = (site === 'none' || site === 'same-origin') && origin === url.origin;
  const isProxied = proxyHeaders.some((name) => c.req.header(name) !== undefined);
  if (isSameOrigin && !isProxied && isLoopback(url.hostname.replace(/^\[(?<address>.*)\]$/, '$<address>'))) return;
  // Not the code of a wrong key: no key would help.
  throw new ApiError(
    403,
    'admin_only_locally',
    'Without ADMIN_KEYS only this machine has admin access, by its own address and not from other pages.',
  );
}
