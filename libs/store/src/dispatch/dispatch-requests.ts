import { randomUUID } from 'node:crypto';
import type { PlannedLease } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** One delivery of a request to a worker. The token is its fence: unique, and of no use once the request is somebody else's. */
export interface Delivery {
  id: string;
  token: string;
}

/** `waiting`: that worker has no room by now, or the model is paused. `moved`: somebody else was faster. `expired`: its time was over. */
export type DispatchOutcome =
  | { status: 'leased'; delivery: Delivery; trace: string | undefined }
  | { status: 'waiting' | 'moved' | 'expired' };

/**
 * Hands requests to workers, as far as what was decided on still holds. Outcomes come lease by lease, id by id. `reserveWorkerId`: gets no shared leases for a
 * while, so that it becomes free for a request that must run alone. One round trip.
 */
export async function dispatchRequests(
  store: StoreConnection,
  model: string,
  leases: readonly PlannedLease[],
  { reserveWorkerId = '' }: { reserveWorkerId?: string | undefined } = {},
): Promise<DispatchOutcome[]> {
  const planned = leases.map(({ workerId, isExclusive, requestIds: ids }) => ({ workerId, isExclusive, ids }));
  const values = [randomUUID(), reserveWorkerId, JSON.stringify(planned)];
  const reply = await runScript(store, 'dispatch/dispatch-requests', store.keysOf(model), values);
  const ids = leases.flatMap(({ requestIds }) => requestIds);
  return (reply as [status: DispatchOutcome['status'], token?: string, trace?: string][]).map(
    ([status, token = '', trace], index) =>
      status === 'leased' ? { status, delivery: { id: ids[index]!, token }, trace: trace || undefined } : { status },
  );
}
