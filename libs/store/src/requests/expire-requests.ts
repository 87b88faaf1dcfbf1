import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Max deadlines per script: Redis serves no other client for these few milliseconds. */
const batchSize = 100;

/**
 * Expires the requests of a model whose deadline passed, in batches. Safe to run in several janitors at once. Returns
 * the expired ids. One round trip per 100 requests.
 */
export async function expireRequests(store: StoreConnection, model: string): Promise<string[]> {
  const expired: string[] = [];
  for (;;) {
    const reply = await runScript(store, 'requests/expire-requests', store.keysOf(model), [batchSize]);
    const [hasMore, ...ended] = reply as [0 | 1, ...string[]];
    expired.push(...ended);
    if (hasMore === 0) return expired;
  }
}
