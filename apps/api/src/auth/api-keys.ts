import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type ApiConfig, ConfigError, keyNamePattern } from '@darkroom/config';
import { z } from 'zod';
import { ApiError } from '../http/api-error.ts';

/** What a key may do. Keys of one name are one owner with the same rights. */
export interface ApiKey {
  /** The owner of all that is sent with it. */
  name: string;
  /** Its part of the service beside others with waiting work. */
  weight: number;
  /** Undefined for no limit. */
  requestsPerMinute: number | undefined;
  /** Queued and running at once; undefined for no limit. */
  openRequests: number | undefined;
  isAdmin: boolean;
}

/** The keys of this server by their SHA-256 in hex. */
export type ApiKeys = ReadonlyMap<string, ApiKey>;

const unlimited = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };

/** Whoever comes where no key is needed. */
export const anybody: ApiKey = { name: '', ...unlimited };

/** Whether anybody who reaches the server may use it: keys of admins guard what they alone may. */
export function isOpenToAll(keys: ApiKeys): boolean {
  return [...keys.values()].every(({ isAdmin }) => isAdmin);
}

const wholeNumber = z.int().min(1).max(1_000_000);
const fileSchema = z.strictObject({
  keys: z.array(
    z.strictObject({
      name: z.string().regex(keyNamePattern),
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      weight: z.number().min(0.001).max(1000).optional(),
      requests_per_minute: wholeNumber.optional(),
      open_requests: wholeNumber.optional(),
    }),
  ),
});

/**
 * The keys of API_KEYS, ADMIN_KEYS and API_KEYS_FILE.
 *
 * @throws {ConfigError} for a file that cannot be used, or a key or a name that is in both or twice with other rights.
 */
export function loadApiKeys({
  apiKeys = [],
  adminKeys = [],
  apiKeysFile,
}: Pick<ApiConfig, 'apiKeys' | 'adminKeys' | 'apiKeysFile'>): ApiKeys {
  const keys = new Map<string, ApiKey>();
  const problems: string[] = [];
  const rightsOf = new Map<string, string>();
  const add = (hash: string, key: ApiKey, source: string): void => {
    const { weight, requestsPerMinute, openRequests } = key;
    // A name is the settings' or the file's, which alone has limits, so that one place says all of them.
    const rights = JSON.stringify([source.startsWith('API_KEYS_FILE'), weight, requestsPerMinute, openRequests]);
    if (keys.has(hash))
      problems.push(`${source} has a key of ${key.name} that is there already, expected each key once`);
    else if ((rightsOf.get(key.name) ?? rights) !== rights)
      problems.push(
        `${source} has ${key.name} with other limits than before, expected the same for all keys of a name`,
      );
    keys.set(hash, key);
    rightsOf.set(key.name, rights);
  };
  for (const { name, key } of apiKeys) add(hashKey(key), { ...unlimited, name }, 'API_KEYS');
  for (const { name, key } of adminKeys) add(hashKey(key), { ...unlimited, name, isAdmin: true }, 'ADMIN_KEYS');
  for (const { sha256, name, weight = 1, requests_per_minute, open_requests } of readKeysFile(apiKeysFile))
    add(
      sha256,
      { name, weight, requestsPerMinute: requests_per_minute, openRequests: open_requests, isAdmin: false },
      `API_KEYS_FILE ${apiKeysFile}`,
    );
  if (problems.length > 0) throw new ConfigError(problems);
  return keys;
}

/** SHA-256 in hex. A key is random, so that nothing slower is needed; looking up a hash tells nothing by its time. */
export function hashKey(key: string): string {
  return createHash('sha256').update(key).digest('hex');
}

function readKeysFile(path: string | undefined): z.infer<typeof fileSchema>['keys'] {
  if (path === undefined) return [];
  let content: unknown;
  try {
    content = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    const reason = error instanceof SyntaxError ? 'is not JSON' : 'cannot be read';
    throw new ConfigError([`API_KEYS_FILE ${path} ${reason}, expected {"keys": [{"name", "sha256"}]}`]);
  }
  const parsed = fileSchema.safeParse(content);
  if (parsed.success && parsed.data.keys.length > 0) return parsed.data.keys;
  const issues = parsed.success ? [{ path: ['keys'], message: 'there is none' }] : parsed.error.issues;
  throw new ConfigError(
    issues.map((issue) => `API_KEYS_FILE ${path}: ${issue.path.join('.') || 'the file'}: ${issue.message}`),
  );
}

/** `Bearer` is ours and OpenAI's, `Token` Replicate's older clients', `Key` fal's. */
const authorizationPattern = /^(?:Bearer|Token|Key) +(?<key>\S+) *$/i;

/** The key that came in this header; throws 401 when it is none of ours. */
export function bearerKeyOf(authorization: string | undefined, keys: ApiKeys): ApiKey {
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
  return new ApiError(401, code, message, { headers: { 'WWW-Authenticate': challenge } });
}
