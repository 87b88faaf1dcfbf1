import type { MiddlewareHandler } from 'hono';
import type { ApiEnv } from './api-context.ts';
import { ApiError } from './api-error.ts';
import { type ApiKey, type ApiKeys, hashKey } from './api-keys.ts';

/** Whoever comes to a server without keys. */
const anybody: ApiKey = { name: '', weight: 1, requestsPerMinute: undefined, openRequests: undefined };

/** `Bearer` is ours and OpenAI's, `Token` Replicate's older clients', `Key` fal's. */
const authorizationPattern = /^(?:Bearer|Token|Key) +(?<key>\S+) *$/i;

/** What is the same for everybody: the page, the documents, whether the server is well. All else needs a key. */
const openPaths = /^\/(?:$|client\.html$|assets\/|docs(?:\/|$)|openapi\.json$|health$)/;

/** Says whose request it is; throws 401 for one without a key of ours. */
export function authenticate(keys: ApiKeys): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    const isOpen = keys.size === 0 || openPaths.test(c.req.path);
    const key = isOpen ? anybody : keyOf(c.req.header('authorization'), keys);
    c.set('apiKey', key);
    c.set('owner', key.name);
    await next();
  };
}

function keyOf(authorization: string | undefined, keys: ApiKeys): ApiKey {
  if (authorization === undefined)
    throw unauthorized('missing_api_key', 'The API key is missing, expected Authorization: Bearer <key>.');
  const text = authorizationPattern.exec(authorization)?.groups?.['key'];
  if (text === undefined)
    throw unauthorized('invalid_api_key', 'Authorization is something else, expected Bearer <key>.');
  const key = keys.get(hashKey(text));
  if (key === undefined) throw unauthorized('invalid_api_key', 'The API key is not one of this server.');
  return key;
}

/** What was sent is in none of them: a key with a typing error is still nearly a key. */
function unauthorized(code: string, message: string): ApiError {
  return new ApiError({ status: 401, code, message, headers: { 'WWW-Authenticate': 'Bearer' } });
}
