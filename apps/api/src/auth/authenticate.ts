import type { MiddlewareHandler } from 'hono';
import type { ApiContext } from '../context.ts';
import type { ApiCall, ApiEnv } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { adminOf } from './admin-access.ts';
import { anybody, type ApiKey, bearerKeyOf, isOpenToAll } from './api-keys.ts';
import { isByLink, linkHolderOf } from './picture-links.ts';

/** What is the same for everybody: the pages, the documents, whether the server is well. All else needs a key. */
const openPaths = /^\/(?:$|(?:client\.html|admin)$|assets\/|docs(?:\/|$)|openapi\.json$|health$)/;

/** Says whose request it is; throws 401 for one without a key of ours, 403 for one that may not administer, and as `linkHolderOf`. */
export function authenticate(context: ApiContext): MiddlewareHandler<ApiEnv> {
  const { apiKeys: keys, adminAccess } = context;
  const isOpen = isOpenToAll(keys);
  const keyOf = (c: ApiCall): ApiKey | Promise<ApiKey> => {
    if (openPaths.test(c.req.path)) return anybody;
    if (c.req.path.startsWith('/admin/') && adminAccess !== 'none') return adminOf(c, keys, adminAccess);
    if (isOpen) return anybody;
    const authorization = c.req.header('authorization');
    return isByLink(c) ? holderOf(c, authorization) : bearerKeyOf(authorization, keys);
  };
  // What else says who comes counts where the link does not: our own client follows links with its key.
  const holderOf = async (c: ApiCall, authorization: string | undefined): Promise<ApiKey> => {
    try {
      return await linkHolderOf(c, context);
    } catch (error) {
      if (authorization === undefined || !(error instanceof ApiError)) throw error;
      return bearerKeyOf(authorization, keys);
    }
  };
  return async (c, next) => {
    const key = await keyOf(c);
    c.set('apiKey', key);
    c.set('owner', key.name);
    await next();
  };
}
