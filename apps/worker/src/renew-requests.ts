import type { WorkerPace } from '@darkroom/core';
import { heartbeatWorker, type JobTaker, type StoreConnection, type WorkerIdentity } from '@darkroom/store';
import type { ActiveRequest } from './active-request.ts';

export interface RenewOptions {
  store: StoreConnection;
  taker: JobTaker;
  ttlMs: number;
  pace: WorkerPace | undefined;
}

/** Renews the registration and the locks of what the worker has. Two round trips. `lost`: not ours any more. */
export async function renewRequests(
  identity: WorkerIdentity,
  requests: readonly ActiveRequest[],
  { store, taker, ttlMs, pace }: RenewOptions,
): Promise<{ life: 'alive' | 'buried'; lost: ActiveRequest[] }> {
  const has = requests.map(({ delivery }) => delivery);
  const beat = (): Promise<'alive' | 'buried'> => heartbeatWorker(store, identity, { ttlMs, pace, has });
  // First: what ran out while Redis was away is taken back, if nobody else has it, before it is renewed.
  let life = await beat();
  let lost = await taker.renew(has);
  if (lost.length > 0) {
    // It was away between the two.
    life = await beat();
    lost = await taker.renew(has.filter(({ id }) => lost.includes(id)));
  }
  return { life, lost: requests.filter(({ delivery }) => lost.includes(delivery.id)) };
}
