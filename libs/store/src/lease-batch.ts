import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** One taking of a job out of the queue. The token is its fence: unique, and the value of the job's lock. */
export interface Delivery {
  id: string;
  token: string;
}

/**
 * `waiting`: no worker had a free row. `alone`: its last attempt, lease it exclusively. `lost`: the lock is somebody else's by now. `ended`: canceled, overdue or finished
 * before. `exhausted`: it has lost its worker as often as allowed and has just failed.
 */
export type LeaseOutcome = 'leased' | 'waiting' | 'alone' | 'lost' | 'ended' | 'exhausted';

export interface LeaseBatchOptions {
  /** `exclusive`: an idle worker for these requests alone. */
  mode: 'shared' | 'exclusive';
  /** The most rows to lease at once, so that several idle workers get a part each. */
  maxRows: number;
  maxAttempts: number;
  nowMs?: number;
}

/** Leases a worker to a batch whose requests may share a step. Outcomes come in the order of the deliveries. */
export async function leaseBatch(
  store: StoreConnection,
  model: string,
  deliveries: readonly Delivery[],
  { mode, maxRows, maxAttempts, nowMs = Date.now() }: LeaseBatchOptions,
): Promise<{ workerId: string | undefined; outcomes: LeaseOutcome[] }> {
  const pairs = deliveries.flatMap(({ id, token }) => [id, token]);
  const { base } = store.keysOf(model);
  const reply = await runScript(store.redis, 'lease-batch', base, nowMs, maxAttempts, mode, maxRows, ...pairs);
  const [workerId, ...outcomes] = reply as [string, ...LeaseOutcome[]];
  return { workerId: workerId === '' ? undefined : workerId, outcomes };
}
