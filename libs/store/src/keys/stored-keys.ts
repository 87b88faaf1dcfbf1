/** API keys that operators added through the API. Redis stores only their hashes; docs/api-keys.md describes them. */
import { randomBytes } from 'node:crypto';
import { systemKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Limits of a key; null for no limit. */
export interface KeyLimits {
  weight: number;
  requestsPerMinute: number | null;
  openRequests: number | null;
}

export interface StoredKey extends KeyLimits {
  /** Names the key when it is revoked; says nothing about the key itself. */
  id: string;
  /** Owner of the requests sent with the key. */
  name: string;
  /** SHA-256 of the key in hexadecimal. */
  sha256: string;
  createdAtMs: number;
}

export type AddKeyResult =
  | { status: 'added'; key: StoredKey }
  | { status: 'full' }
  | { status: 'other-limits'; limits: KeyLimits };

const idBytes = 8;
/** Field of the hash that holds the id of the last change; all other fields are keys. */
const versionField = 'version';

/** Stores a key, unless `maxKeys` are stored or the name's other keys have other limits. Two round trips. */
export async function addKey(
  store: StoreConnection,
  fields: Omit<StoredKey, 'id' | 'createdAtMs'>,
  maxKeys: number,
): Promise<AddKeyResult> {
  const id = randomBytes(idBytes).toString('hex');
  const value = { ...fields, createdAtMs: await readTime(store) };
  const reply = await runScript(store, 'keys/add-key', baseOf(store), [id, JSON.stringify(value), maxKeys]);
  const [status, other = '{}'] = reply as ['added' | 'full' | 'other-limits', string?];
  if (status === 'added') return { status, key: { ...value, id } };
  if (status === 'full') return { status };
  const { weight, requestsPerMinute, openRequests } = JSON.parse(other) as KeyLimits;
  return { status, limits: { weight, requestsPerMinute, openRequests } };
}

/** Deletes a key. Returns false if there is none with this id. One round trip. */
export async function removeKey(store: StoreConnection, id: string): Promise<boolean> {
  const change = randomBytes(idBytes).toString('hex');
  return (await runScript(store, 'keys/remove-key', baseOf(store), [id, change])) === 1;
}

/** Returns a text that differs after every change of the stored keys. One round trip. */
export async function readKeysVersion(store: StoreConnection): Promise<string> {
  return (await store.redis.hget(baseOf(store).base, versionField)) ?? '';
}

/** Returns the stored keys, oldest first, and their version. One round trip. */
export async function readKeys(store: StoreConnection): Promise<{ version: string; keys: StoredKey[] }> {
  const { [versionField]: version = '', ...entries } = await store.redis.hgetall(baseOf(store).base);
  const keys = Object.entries(entries).map(([id, text]): StoredKey => ({
    ...(JSON.parse(text) as Omit<StoredKey, 'id'>),
    id,
  }));
  return { version, keys: keys.toSorted((left, right) => left.createdAtMs - right.createdAtMs) };
}

function baseOf({ prefix }: StoreConnection): { base: string } {
  return { base: systemKeys(prefix).apiKeys };
}
