/**
 * Idempotency keys: the same key and body map to the same request, on any replica and under concurrency. All senders
 * submit under the id that the first one claimed, and admit-request.lua stores an id once. So no sender waits for
 * another, and a process that dies after its claim leaves nothing to clean up.
 */
import { createHash } from 'node:crypto';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface IdempotencyKey {
  owner: string;
  /** From the client; only its hash is stored. */
  key: string;
}

/** `mine`: submit the request under this id, which may be stored already. `wasStored`: it was certainly stored. */
export type ClaimResult = { status: 'mine' | 'conflict'; id: string; wasStored: boolean };

/** TTL of the key of a refused request, for retries that are under way. */
const refusedTtlMs = 60_000;

/**
 * Claims a key. `fingerprint`: hash of the body; `newId`: id of the request if the key is new; `ttlMs`: TTL of the key,
 * at least that of the result; `expiredId`: an expired request that the key mapped to. One round trip.
 */
export async function claimIdempotencyKey(
  store: StoreConnection,
  key: IdempotencyKey,
  claim: { fingerprint: string; newId: string; ttlMs: number; expiredId?: string },
): Promise<ClaimResult> {
  const values = ['claimed', claim.newId, claim.ttlMs, claim.fingerprint, claim.expiredId ?? ''];
  const reply = await runScript(store, 'requests/idempotency-key', { base: recordKey(store, key) }, values);
  const [status, id, state] = reply as ['mine' | 'conflict', string, 'claimed' | 'stored' | 'refused'];
  return { status, id, wasStored: state === 'stored' };
}

/** Returns the request that a key maps to, without claiming the key. One round trip. */
export async function readIdempotencyKey(
  store: StoreConnection,
  key: IdempotencyKey,
): Promise<{ id: string; fingerprint: string } | undefined> {
  const [id, fingerprint] = await store.redis.hmget(recordKey(store, key), 'id', 'fingerprint');
  return id && fingerprint ? { id, fingerprint } : undefined;
}

/** Records the outcome of the request. One round trip, which callers need not await. */
export async function settleIdempotencyKey(
  store: StoreConnection,
  key: IdempotencyKey,
  { id, ttlMs }: { id: string; ttlMs: number },
  outcome: 'stored' | 'refused',
): Promise<void> {
  const values = [outcome, id, outcome === 'stored' ? ttlMs : refusedTtlMs];
  await runScript(store, 'requests/idempotency-key', { base: recordKey(store, key) }, values);
}

function recordKey({ prefix }: StoreConnection, { owner, key }: IdempotencyKey): string {
  return `${prefix}:idempotency:${owner}:${createHash('sha256').update(key).digest('hex')}`;
}
