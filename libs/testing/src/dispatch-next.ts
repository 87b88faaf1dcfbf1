import { type Delivery, dispatchRequests, readDispatchable, type StoreConnection } from '@darkroom/store';

export interface DispatchNextOptions {
  shard?: string;
  /** The first free worker if absent. */
  workerId?: string;
  isExclusive?: boolean;
}

/** Leases the next queued requests to one free worker, as a batch-former does. Returns the leased ones in order. */
export async function dispatchNext(
  store: StoreConnection,
  count = 1,
  { shard = 'tiny', workerId, isExclusive = false }: DispatchNextOptions = {},
): Promise<Delivery[]> {
  const { workers, requests } = await readDispatchable(store, shard, { maxWorkers: 100, maxRequests: count });
  const worker = workers.find(({ id }) => workerId === undefined || id === workerId);
  if (worker === undefined || requests.length === 0) return [];
  const lease = { workerId: worker.id, isExclusive, requestIds: requests.map(({ id }) => id) };
  const outcomes = await dispatchRequests(store, shard, [lease]);
  return outcomes.flatMap((outcome) => (outcome.status === 'leased' ? [outcome.delivery] : []));
}
