import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

export interface SweepWorkersOptions {
  /** Sweeps closer together than this, by several janitors, count as one, ms. */
  intervalMs: number;
  /** How many a worker may miss. */
  missedSweeps: number;
}

/** `failed`: it was its last attempt. `canceled`: it was to be dropped anyway. */
export type RequeueOutcome = 'requeued' | 'canceled' | 'failed';

/** A worker that was taken for dead, and what became of what it had. */
export interface BuriedWorker {
  workerId: string;
  requests: { id: string; outcome: RequeueOutcome; trace: string | undefined }[];
}

/** Workers that one script buries: a few milliseconds in which nobody else is served. */
const mostAtOnce = 8;

/**
 * Counts one sweep and buries the workers of a model that were not heard of in the last ones. What they had is in the
 * queue again. Safe to run anywhere, any time. A round trip for every eight dead.
 */
export async function sweepWorkers(
  store: StoreConnection,
  model: string,
  { intervalMs, missedSweeps }: SweepWorkersOptions,
): Promise<BuriedWorker[]> {
  const buried: BuriedWorker[] = [];
  for (;;) {
    const values = [intervalMs, missedSweeps, store.maxAttempts, mostAtOnce];
    const reply = await runScript(store, 'workers/sweep-workers', store.keysOf(model), values);
    const [hasMore, ...workers] = reply as [0 | 1, ...[workerId: string, ...facts: string[]][]];
    for (const [workerId, ...facts] of workers) {
      const requests: BuriedWorker['requests'] = [];
      for (let at = 0; at < facts.length; at += 3)
        requests.push({ id: facts[at]!, outcome: facts[at + 1] as RequeueOutcome, trace: facts[at + 2] || undefined });
      buried.push({ workerId, requests });
    }
    if (hasMore === 0) return buried;
  }
}
