import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Deadlines that one script looks at: a few milliseconds in which nobody else is served. */
const mostAtOnce = 100;

/**
 * Ends the requests of a model whose deadline is over, a few at a time. Safe to run in many janitors at once.
 * Returns the ended ids. A round trip for each hundred.
 */
export async function expireRequests(store: StoreConnection, model: string): Promise<string[]> {
  const expired: string[] = [];
  for (;;) {
    const reply = await runScript(store, 'requests/expire-requests', store.keysOf(model), [mostAtOnce]);
    const [hasMore, ...ended] = reply as [0 | 1, ...string[]];
    expired.push(...ended);
    if (hasMore === 0) return expired;
  }
}
