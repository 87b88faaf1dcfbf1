import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** `failed`: it was the last attempt. `canceled`: it was being canceled. */
export type RequeueOutcome = 'requeued' | 'canceled' | 'failed';

/** Max workers that one script reaps: Redis serves no other client for these few milliseconds. */
const batchSize = 8;

/**
 * Counts one sweep and reaps the workers of a model that have missed more than `missedSweeps`; their requests are
 * requeued. Sweeps of several janitors closer together than `intervalMs` count as one. Safe to run concurrently. One
 * round trip per 8 reaped workers. `unservedMs`: for how long sweeps have found no worker; outages of Redis and of all
 * janitors do not count.
 */
export async function sweepWorkers(
  store: StoreConnection,
  model: string,
  { intervalMs, missedSweeps }: { intervalMs: number; missedSweeps: number },
) {
  const removed: [workerId: string, ...requests: [id: string, outcome: RequeueOutcome, trace: string][]][] = [];
  for (;;) {
    const values = [intervalMs, missedSweeps, batchSize];
    const reply = await runScript(store, 'workers/sweep-workers', store.keysOf(model), values);
    const [hasMore, unservedMs, ...workers] = reply as [0 | 1, number, ...typeof removed];
    removed.push(...workers);
    if (hasMore === 1) continue;
    const reaped = removed.map(([workerId, ...requests]) => ({
      workerId,
      requests: requests.map(([id, outcome, trace]) => ({ id, outcome, trace: trace || undefined })),
    }));
    return { reaped, unservedMs };
  }
}
