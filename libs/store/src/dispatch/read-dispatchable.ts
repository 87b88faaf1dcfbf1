import type { Dispatchable } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

type Reply = [
  nowMs: string,
  reserved: string,
  workers: [id: string, idle: 0 | 1, free: number, capacity: number, shapes: string[]][],
  requests: [id: string, shapeKey: string, slots: number, attempts: number, sinceMs: string][],
];

/**
 * The free places of a model and who is next, bounded however long the queue is: idle and busy workers, `maxWorkers` of each, and
 * requests, of which only `beyondRoom` more than find room there. Empty while nothing can go. One round trip.
 */
export async function readDispatchable(
  store: StoreConnection,
  model: string,
  options: { maxWorkers: number; maxRequests: number; beyondRoom?: number },
): Promise<Dispatchable> {
  const { maxWorkers, maxRequests, beyondRoom = maxRequests } = options;
  const values = [maxWorkers, maxRequests, beyondRoom];
  const reply = await runScript(store, 'dispatch/read-dispatchable', store.keysOf(model), values);
  const [nowMs, reserved, workers, requests] = reply as Reply;
  return {
    nowMs: Number(nowMs),
    reservedWorkerId: reserved === '' ? undefined : reserved,
    workers: workers.map(([id, idle, free, capacity, shapes]) => ({ id, isIdle: idle === 1, free, capacity, shapes })),
    requests: requests.map(([id, shapeKey, slots, attempts, sinceMs]) => {
      return { id, shapeKey, slots, attempts, waitingSinceMs: Number(sinceMs) };
    }),
  };
}
