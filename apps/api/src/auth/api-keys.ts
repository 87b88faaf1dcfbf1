import { createHash } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { type ApiConfig, ConfigError, keyNamePattern } from '@darkroom/config';
import { z } from '@hono/zod-openapi';
import type { ApiKey } from '../http/api-env.ts';
import { ApiError } from '../http/api-error.ts';

/** Keys of this server by SHA-256 in hex. Updated in place, so that every reader sees changes at once. */
export type ApiKeys = Map<string, ApiKey>;

export type KeySettings = Pick<ApiConfig, 'apiKeys' | 'adminKeys' | 'apiKeysFile'>;

const unlimited = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };

/** Owner of calls without a key, on servers or paths that need none. */
export const anonymousKey: ApiKey = { name: '', ...unlimited };

/** Returns true if clients need no key: no keys are set, or only admin keys, which guard only admin routes. */
export function isOpenToAll(keys: ApiKeys): boolean {
  return [...keys.values()].every(({ isAdmin }) => isAdmin);
}

const expectedName = 'a text of 1 to 64 letters, digits, ".", "_" and "-"';
const expectedWeight = 'a number from 0.001 to 1000';
const expectedCount = 'a whole number from 1 to 1000000';
const count = z.int(expectedCount).min(1, expectedCount).max(1_000_000, expectedCount);

/** Fields of a key in API_KEYS_FILE and in `POST /admin/keys`. */
export const keyFields = {
  name: z.string(expectedName).regex(keyNamePattern, expectedName),
  weight: z.number(expectedWeight).min(0.001, expectedWeight).max(1000, expectedWeight),
  requests_per_minute: count,
  open_requests: count,
};
const fileSchema = z.strictObject({
  keys: z.array(
    z.strictObject({
      name: keyFields.name,
      sha256: z.string().regex(/^[0-9a-f]{64}$/),
      weight: keyFields.weight.optional(),
      requests_per_minute: keyFields.requests_per_minute.optional(),
      open_requests: keyFields.open_requests.optional(),
    }),
  ),
});

/**
 * Loads the keys of API_KEYS, ADMIN_KEYS and API_KEYS_FILE.
 *
 * @throws {ConfigError} for an invalid file, a key that appears twice, or keys of one name with different limits.
 */
export function loadApiKeys({ apiKeys = [], adminKeys = [], apiKeysFile }: KeySettings): Map<string, ApiKey> {
  const keys = new Map<string, ApiKey>();
  const problems: string[] = [];
  const rightsOf = new Map<string, string>();
  const add = (hash: string, key: ApiKey, source: string): void => {
    const { weight, requestsPerMinute, openRequests } = key;
    // A name must come from the settings or the file, not both, so that its limits are defined in one place.
    const rights = JSON.stringify([source.startsWith('API_KEYS_FILE'), weight, requestsPerMinute, openRequests]);
    if (keys.has(hash))
      problems.push(`${source} has a key of ${key.name} that was already listed, expected each key once`);
    else if ((rightsOf.get(key.name) ?? rights) !== rights)
      problems.push(
        `${source} has ${key.name} with other limits than before, expected the same limits for all keys of a name`,
      );
    keys.set(hash, key);
    rightsOf.set(key.name, rights);
  };
  for (const { name, key } of apiKeys) add(hashKey(key), { ...unlimited, name }, 'API_KEYS');
  for (const { name, key } of adminKeys) add(hashKey(key), { ...unlimited, name, isAdmin: true }, 'ADMIN_KEYS');
  for (const { sha256, name, weight = 1, requests_per_minute, open_requests } of readKeysFile(apiKeysFile)) {
    const limits = { weight, requestsPerMinute: requests_per_minute, openRequests: open_requests };
    const key = { name, ...limits, isAdmin: false, isHashed: true as const, revocation: createRevocation() };
    add(sha256, key, `API_KEYS_FILE ${apiKeysFile}`);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return keys;
}

export function createRevocation(): AbortController {
  const revocation = new AbortController();
  // Every open stream of the key listens: not a leak.
  setMaxListeners(0, revocation.signal);
  return revocation;
}

/**
 * Replaces either the keys stored in Redis or all others by `next`. Ends the streams of removed keys. Returns the
 * numbers of changes.
 */
export function replaceKeys(keys: ApiKeys, next: ApiKeys, { isStored = false } = {}) {
  const changes = { added: 0, changed: 0, removed: 0 };
  for (const [hash, key] of keys) {
    if (next.has(hash) || (key.isStored ?? false) !== isStored) continue;
    keys.delete(hash);
    key.revocation?.abort();
    changes.removed += 1;
  }
  for (const [hash, key] of next) {
    const known = keys.get(hash);
    if (known !== undefined && JSON.stringify(known) === JSON.stringify(key)) continue;
    changes[known === undefined ? 'added' : 'changed'] += 1;
    // Changed limits end no stream; reuse the controller so that a later revocation still does.
    keys.set(hash, known === undefined ? key : { ...key, revocation: known.revocation });
  }
  return changes;
}

/**
 * Returns SHA-256 in hex. Keys are random, with at least 128 bits if generated as documented: no list of likely keys
 * exists, so no slow hash is needed. Looking up a hash leaks no timing.
 */
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
  const issues = parsed.success ? [{ path: ['keys'], message: 'expected at least one' }] : parsed.error.issues;
  throw new ConfigError(
    issues.map((issue) => `API_KEYS_FILE ${path}: ${issue.path.join('.') || 'the file'}: ${issue.message}`),
  );
}

/** Error code of the 401 for an unknown key. */
export const wrongKeyCode = 'invalid_api_key';

/** `Bearer`: this API and OpenAI. `Token`: older Replicate clients. `Key`: fal. */
const authorizationPattern = /^(?:Bearer|Token|Key) +(?<key>\S+) *$/i;

/** Also enforced by the settings. */
const minKeyLength = 16;

/** Returns the key in an Authorization header. Throws 401 for a missing or unknown key. */
export function bearerKeyOf(authorization: string | undefined, keys: ApiKeys): ApiKey {
  if (authorization === undefined) throw missingApiKey();
  const text = authorizationPattern.exec(authorization)?.groups?.['key'];
  if (text === undefined) throw unauthorized(wrongKeyCode, 'Authorization has another format, expected Bearer <key>.');
  const key = findKey(text, keys);
  if (key === undefined) throw unauthorized(wrongKeyCode, 'The API key is unknown, expected a key of this server.');
  return key;
}

/** Returns the key with this text; undefined if it is unknown or too short. */
export function findKey(text: string, keys: ApiKeys): ApiKey | undefined {
  const key = keys.get(hashKey(text));
  return key?.isHashed === true && text.length < minKeyLength ? undefined : key;
}

export function missingApiKey(): ApiError {
  return unauthorized('missing_api_key', 'The API key is missing, expected Authorization: Bearer <key>.');
}

/** Returns a 401. Messages never repeat what was sent: a key with a typo is almost a key. */
export function unauthorized(code: string, message: string, challenge = 'Bearer'): ApiError {
  return new ApiError(401, code, message, { headers: { 'WWW-Authenticate': challenge } });
}
