import type { MiddlewareHandler } from 'hono';
import { type AdminAccess, adminOf } from './admin-access.ts';
import type { ApiCall, ApiEnv } from '../http/api-env.ts';
import { anybody, type ApiKey, type ApiKeys, bearerKeyOf, isOpenToAll } from './api-keys.ts';

/** What is the same for everybody: the pages, the documents, whether the server is well. All else needs a key. */
const openPaths = /^\/(?:$|(?:client\.html|admin)$|assets\/|docs(?:\/|$)|openapi\.json$|health$)/;

/** Says whose request it is; throws 401 for one without a key of ours, 403 for one that may not administer. */
export function authenticate(keys: ApiKeys, adminAccess: AdminAccess): MiddlewareHandler<ApiEnv> {
  const isOpen = isOpenToAll(keys);
  const keyOf = (c: ApiCall): ApiKey => {
    if (openPaths.test(c.req.path)) return anybody;
    if (c.req.path.startsWith('/admin/') && adminAccess !== 'none') return adminOf(c, keys, adminAccess);
    return isOpen ? anybody : bearerKeyOf(c.req.header('authorization'), keys);
  };
  return async (c, next) => {
    const key = keyOf(c);
    c.set('apiKey', key);
    c.set('owner', key.name);
    await next();
  };
}
