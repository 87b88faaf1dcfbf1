/** Who may administer. What browsers send by themselves (Basic) lets nobody change anything, so no other page can have them do so. */
import { isLoopback } from '@darkroom/config';
import { auth as basicAuth } from 'hono/utils/basic-auth';
import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { anybody, type ApiKey, type ApiKeys, bearerKeyOf, hashKey, unauthorized } from './api-keys.ts';

/** `loopback`: whoever is on this machine, as the server has no keys at all. `none`: there is no `/admin`. */
export type AdminAccess = 'none' | 'keys' | 'loopback';

/** Where Bull Board is: opened by a browser's address line, which can send a key as a password only, and read-only. */
export const boardPath = '/admin/queues';

export function adminAccessOf(keys: ApiKeys, host: string): AdminAccess {
  if ([...keys.values()].some(({ isAdmin }) => isAdmin)) return 'keys';
  return keys.size === 0 && isLoopback(host) ? 'loopback' : 'none';
}

/** Whose request to something under `/admin/` it is. Throws 401 or 403 for all who may not administer. */
export function adminOf(c: ApiCall, keys: ApiKeys, access: 'keys' | 'loopback'): ApiKey {
  if (access === 'loopback') {
    refuseOthers(c);
    return anybody;
  }
  if (c.req.path.startsWith(boardPath)) return boardVisitor(c, keys);
  const key = bearerKeyOf(c.req.header('authorization'), keys);
  if (key.isAdmin) return key;
  throw noAdminKey();
}

export function noAdminKey(): ApiError {
  return notAnAdmin('This key may not administer, expected one of ADMIN_KEYS.');
}

function notAnAdmin(message: string): ApiError {
  return new ApiError(403, 'not_an_admin', message);
}

/** By a password, whatever the user is called, or by what the rest of `/admin` takes. */
function boardVisitor(c: ApiCall, keys: ApiKeys): ApiKey {
  const password = basicAuth(c.req.raw)?.password;
  const key = password === undefined ? undefined : keys.get(hashKey(password));
  if (key?.isAdmin === true) return key;
  const authorization = c.req.header('authorization');
  const bearer = authorization?.startsWith('Basic') === false ? bearerKeyOf(authorization, keys) : undefined;
  if (bearer?.isAdmin === true) return bearer;
  // A browser asks for it after this; after a 403 it would go on sending the wrong one.
  const code = authorization === undefined ? 'missing_api_key' : 'invalid_api_key';
  const message = 'Expected a key of ADMIN_KEYS as the password, with any name.';
  throw unauthorized(code, message, 'Basic realm="Darkroom admin", charset="UTF-8"');
}

/** Of a proxy: who comes through one on this machine may be anywhere, whatever `Host` it sends. */
const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'];

/**
 * A server without keys trusts who is on this machine, and a browser on it shows pages from anywhere: one that posts
 * here (`Origin`, `Sec-Fetch-Site`), or whose name leads here all of a sudden (`Host`), is none of ours.
 */
function refuseOthers(c: ApiCall): void {
  const url = new URL(c.req.url);
  const site = c.req.header('sec-fetch-site') ?? 'none';
  const origin = c.req.header('origin') ?? url.origin;
  const isOurs = (site === 'none' || site === 'same-origin') && origin === url.origin;
  const isProxied = proxyHeaders.some((name) => c.req.header(name) !== undefined);
  if (isOurs && !isProxied && isLoopback(url.hostname.replace(/^\[(?<address>.*)\]$/, '$<address>'))) return;
  throw notAnAdmin('Without ADMIN_KEYS only this machine may administer, by its own address and not from other pages.');
}
