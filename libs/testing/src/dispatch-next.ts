import { type Delivery, dispatchRequests, readDispatchable, type StoreConnection } from '@darkroom/store';

export interface DispatchNextOptions {
  model?: string;
  /** Of all that are free: the first, if absent. */
  workerId?: string;
  isExclusive?: boolean;
}

/** Hands the next requests in the order of dispatch to one free worker, as a former does. Those that went, in that order. */
export async function dispatchNext(
  store: StoreConnection,
  count = 1,
  { model = 'tiny', workerId, isExclusive = false }: DispatchNextOptions = {},
): Promise<Delivery[]> {
  const { workers, requests } = await readDispatchable(store, model, { maxWorkers: 100, maxRequests: count });
  const worker = workers.find(({ id }) => workerId === undefined || id === workerId);
  if (worker === undefined || requests.length === 0) return [];
  const lease = { workerId: worker.id, isExclusive, requestIds: requests.map(({ id }) => id) };
  const outcomes = await dispatchRequests(store, model, [lease]);
  return outcomes.flatMap((outcome) => (outcome.status === 'leased' ? [outcome.delivery] : []));
}
