import { pairUp } from '@darkroom/core';
import { randomUUID } from 'node:crypto';
import type { PlannedLease } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/**
 * One delivery of a request to a worker. The token is a fencing token: unique, and void once the request is leased
 * again.
 */
export interface Delivery {
  id: string;
  token: string;
}

/**
 * `waiting`: the worker has no capacity by now, or the model is paused. `moved`: the request is not queued any more,
 * for example because another former leased it. `expired`: its deadline passed. `failed`: its owner stores too many
 * bytes.
 */
export type DispatchOutcome =
  | { status: 'leased'; delivery: Delivery; trace: string | undefined }
  | { status: 'waiting' | 'moved' | 'expired' | 'failed' };

/**
 * Commits planned leases as far as they are still valid. Outcomes come in the order of the leases and their ids.
 * `reserveWorkerId`: a worker that gets no shared leases for a while, so that it becomes free for an exclusive request.
 * One round trip.
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
  const replies = reply as [status: DispatchOutcome['status'], token?: string, trace?: string][];
  return pairUp(ids, replies).map(([id, [status, token = '', trace]]) =>
    status === 'leased' ? { status, delivery: { id, token }, trace: trace || undefined } : { status },
  );
}
