import type { Clock } from '@darkroom/core';
import type { MiddlewareHandler } from 'hono';
import type { ApiCall, ApiEnv, ApiKey } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import type { WithStore } from '../server/store-guard.ts';
import { type AdminAccess, adminOf } from './admin-access.ts';
import { anonymousKey, type ApiKeys, bearerKeyOf, isOpenToAll, wrongKeyCode } from './api-keys.ts';
import { clientAddressOf } from '../http/client-address.ts';
import { isSignedLink, linkHolderOf } from './image-links.ts';
import type { WrongKeyLimit } from './limit-wrong-keys.ts';

interface AuthenticationOptions {
  apiKeys: ApiKeys;
  adminAccess: AdminAccess;
  wrongKeys: WrongKeyLimit;
  withStore: WithStore;
  clock: Clock;
}

/** Paths without authentication: pages, documents and the health check. */
const openPaths = /^\/(?:$|(?:client\.html|admin)$|assets\/|docs(?:\/|$)|openapi\.json$|health$)/;

/**
 * Sets the API key and owner of a call. Throws 401 without a valid key, 403 without admin access, 429 after too many
 * wrong keys, and like `linkHolderOf`.
 */
export function authenticate(context: AuthenticationOptions): MiddlewareHandler<ApiEnv> {
  const { apiKeys: keys, adminAccess } = context;
  const isOpen = isOpenToAll(keys);
  const keyOf = (c: ApiCall): ApiKey | Promise<ApiKey> => {
    if (openPaths.test(c.req.path)) return anonymousKey;
    if (c.req.path.startsWith('/admin/') && adminAccess !== 'none') return adminOf(c, keys, adminAccess);
    if (isOpen) return anonymousKey;
    const authorization = c.req.header('authorization');
    return isSignedLink(c) ? holderOf(c, authorization) : bearerKeyOf(authorization, keys);
  };
  // If the link is invalid, use the key: our client sends its key when it follows links.
  const holderOf = async (c: ApiCall, authorization: string | undefined): Promise<ApiKey> => {
    try {
      return await linkHolderOf(c, context);
    } catch (error) {
      if (authorization === undefined || !(error instanceof ApiError)) throw error;
      return bearerKeyOf(authorization, keys);
    }
  };
  // The address is unknown in tests that call the app without a server.
  const limitWrongKeys = (c: ApiCall, error: unknown): unknown => {
    const address = clientAddressOf(c);
    if (address === undefined || !(error instanceof ApiError) || error.code !== wrongKeyCode) return error;
    return context.wrongKeys.count(address) ?? error;
  };
  return async (c, next) => {
    try {
      const key = await keyOf(c);
      c.set('apiKey', key);
      c.set('owner', key.name);
    } catch (error) {
      throw limitWrongKeys(c, error);
    }
    await next();
  };
}
