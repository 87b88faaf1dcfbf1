/**
 * Idempotency keys: the same key and body are the same request, on any replica and however many send it at once. Every
 * sender submits under the id that the first one claimed, and admit-request.lua stores an id once: nobody has to wait
 * for anybody, and a process that dies after its claim leaves nothing to clean up.
 */
import { createHash } from 'node:crypto';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface IdempotencyKey {
  owner: string;
  /** As the client sent it; only a hash of it is stored. */
  key: string;
}

/** `mine`: submit the request under this id, which may be there already. `wasStored`: it was once, for sure. */
export type ClaimResult = { status: 'mine' | 'conflict'; id: string; wasStored: boolean };

/** How long a refused request's key is kept: for retries that are under way. */
const refusedTtlMs = 60_000;

/**
 * `fingerprint`: a hash that tells bodies apart; `newId`: the request's if the key is new; `ttlMs`: how long the key is kept, as long
 * as the result may be; `expiredId`: one that the key stood for and whose time is over. One round trip.
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

/** What a key stands for, if anything; claims nothing. One round trip. */
export async function readIdempotencyKey(
  store: StoreConnection,
  key: IdempotencyKey,
): Promise<{ id: string; fingerprint: string } | undefined> {
  const [id, fingerprint] = await store.redis.hmget(recordKey(store, key), 'id', 'fingerprint');
  return id && fingerprint ? { id, fingerprint } : undefined;
}

/** Says what became of the request. One round trip, which need not be waited for. */
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
