import type { ApiCall } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';
import { type ApiKey, type ApiKeys, hashKey } from './api-keys.ts';

/** `Bearer` is ours and OpenAI's, `Token` Replicate's older clients', `Key` fal's. */
const authorizationPattern = /^(?:Bearer|Token|Key) +(?<key>\S+) *$/i;

/** The key that came; throws 401 when it is none of ours. */
export function bearerKeyOf(c: ApiCall, keys: ApiKeys): ApiKey {
  const authorization = c.req.header('authorization');
  if (authorization === undefined) throw missingApiKey();
  const text = authorizationPattern.exec(authorization)?.groups?.['key'];
  if (text === undefined)
    throw unauthorized('invalid_api_key', 'Authorization is something else, expected Bearer <key>.');
  const key = keys.get(hashKey(text));
  if (key === undefined) throw unauthorized('invalid_api_key', 'The API key is not one of this server.');
  return key;
}

export function missingApiKey(): ApiError {
  return unauthorized('missing_api_key', 'The API key is missing, expected Authorization: Bearer <key>.');
}

/** What was sent is in none of them: a key with a typing error is still nearly a key. */
export function unauthorized(code: string, message: string, challenge = 'Bearer'): ApiError {
  return new ApiError({ status: 401, code, message, headers: { 'WWW-Authenticate': challenge } });
}
