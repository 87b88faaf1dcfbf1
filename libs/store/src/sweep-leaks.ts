/** Keys of requests that lost their TTL would stay for ever; one pass over a model's keys gives it back to them. */
import { type KeySize, KeySizes } from './key-sizes.ts';
import { escapeGlob, scanKeys } from './scan-keys.ts';
import { sweepOrphans } from './sweep-orphans.ts';
import type { StoreConnection } from './store-connection.ts';

/** Kinds of keys that always have a TTL, in the names of keys.ts. */
const mortalKinds = ['request', 'events', 'output', 'checkpoint', 'gone'] as const;
/** A worker's keys live as long as it is in a list or has a heartbeat. */
const workerKinds = ['worker', 'inbox', 'leases'] as const;

export interface SweepLeaksResult {
  /** Keys that had no TTL and have one now. */
  repaired: string[];
  /** Keys of workers that are in no list, deleted. */
  deleted: string[];
  /** Ids that were counted as queued or open, and whose requests are no more. */
  orphans: string[];
  /** What the model's keys take, by the kind that stands in their names. */
  sizes: ReadonlyMap<string, KeySize>;
}

/** Scans a model's keys once. Costly on a large store: run it every minute or so, not every second. */
export async function sweepLeaks(store: StoreConnection, model: string): Promise<SweepLeaksResult> {
  const keys = store.keysOf(model);
  const result: Omit<SweepLeaksResult, 'sizes'> = { repaired: [], deleted: [], orphans: [] };
  const sizes = new KeySizes();
  const openKeys = new Set<string>();
  const known = new Set<string>();
  for (const list of Object.values(keys.workers))
    for (const workerId of await store.redis.zrange(list, '0', '-1')) known.add(workerId);
  for await (const key of scanKeys(store, `${escapeGlob(keys.base)}:*`)) {
    const [kind = '', subject = ''] = key.slice(keys.base.length + 1).split(':');
    sizes.note(kind, key);
    if (isOneOf(kind, mortalKinds)) await repair(store, key, subject, model, result);
    else if (kind === 'open') openKeys.add(key);
    else if (isOneOf(kind, workerKinds) && !known.has(subject)) await removeOrphan(store, model, key, subject, result);
  }
  result.orphans = await sweepOrphans(store, model, [...openKeys]);
  return { ...result, sizes: await sizes.measure(store) };
}

async function repair(
  store: StoreConnection,
  key: string,
  id: string,
  model: string,
  result: Pick<SweepLeaksResult, 'repaired' | 'deleted'>,
): Promise<void> {
  if ((await store.redis.pttl(key)) !== -1) return;
  // As long as its request, when that is still there; else as long as a result may be fetched.
  const requestTtlMs = await store.redis.pttl(store.keysOf(model).request(id));
  const ttlMs = requestTtlMs > 0 ? requestTtlMs : store.resultTtlMs;
  // NX: whoever set a TTL in the meantime knows better.
  if ((await store.redis.call('PEXPIRE', key, ttlMs, 'NX')) === 1) result.repaired.push(key);
}

async function removeOrphan(
  store: StoreConnection,
  model: string,
  key: string,
  workerId: string,
  result: Pick<SweepLeaksResult, 'repaired' | 'deleted'>,
): Promise<void> {
  if ((await store.redis.exists(store.keysOf(model).alive(workerId))) === 1) return;
  if ((await store.redis.del(key)) === 1) result.deleted.push(key);
}

function isOneOf(kind: string, kinds: readonly string[]): boolean {
  return kinds.includes(kind);
}
