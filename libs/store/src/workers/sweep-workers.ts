import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** `failed`: it was its last attempt. `canceled`: it was to be dropped anyway. */
export type RequeueOutcome = 'requeued' | 'canceled' | 'failed';

/** Workers that one script buries: a few milliseconds in which nobody else is served. */
const mostAtOnce = 8;

/**
 * Counts one sweep and buries the workers of a model that have missed more than `missedSweeps`; sweeps closer together than
 * `intervalMs`, by several janitors, count as one. What they had is in the queue again. Safe to run anywhere, any time. A round trip for every eight dead.
 */
export async function sweepWorkers(
  store: StoreConnection,
  model: string,
  { intervalMs, missedSweeps }: { intervalMs: number; missedSweeps: number },
) {
  const buried: [workerId: string, ...requests: [id: string, outcome: RequeueOutcome, trace: string][]][] = [];
  for (;;) {
    const values = [intervalMs, missedSweeps, store.maxAttempts, mostAtOnce];
    const reply = await runScript(store, 'workers/sweep-workers', store.keysOf(model), values);
    const [hasMore, ...workers] = reply as [0 | 1, ...typeof buried];
    buried.push(...workers);
    if (hasMore === 1) continue;
    return buried.map(([workerId, ...requests]) => ({
      workerId,
      requests: requests.map(([id, outcome, trace]) => ({ id, outcome, trace: trace || undefined })),
    }));
  }
}
