import type { Dispatchable } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

type Reply = [
  nowMs: string,
  reserved: string,
  // An empty list is an object to the script's JSON.
  workers: [id: string, list: 'idle' | 'busy' | 'asleep', free: number, capacity: number, shapes: string[] | object][],
  requests: [id: string, shapeKey: string, slots: number, attempts: number, sinceMs: string][],
];

/**
 * The free places of a model and who is next, bounded however long the queue is: workers that are idle, busy or asleep, `maxWorkers` of each, and
 * requests, of which only `beyondRoom` more than find room there, and as many more as ran before. Empty while nothing can go. One round trip.
 */
export async function readDispatchable(
  store: StoreConnection,
  model: string,
  options: { maxWorkers: number; maxRequests: number; beyondRoom?: number },
): Promise<Dispatchable> {
  const { maxWorkers, maxRequests, beyondRoom = maxRequests } = options;
  const values = [maxWorkers, maxRequests, beyondRoom];
  return decode((await runScript(store, 'dispatch/read-dispatchable', store.keysOf(model), values)) as Reply);
}

/** What a wake-up says that brings it along: an only request, and one worker of each kind of which one is idle. */
export function decodeWakeup(message: string): Dispatchable | undefined {
  return message.startsWith('[') ? decode(JSON.parse(message) as Reply) : undefined;
}

function decode([nowMs, reserved, workers, requests]: Reply): Dispatchable {
  return {
    nowMs: Number(nowMs),
    reservedWorkerId: reserved === '' ? undefined : reserved,
    workers: workers.map(([id, list, free, capacity, shapes]) => {
      return {
        id,
        isIdle: list === 'idle',
        isAsleep: list === 'asleep',
        free,
        capacity,
        shapes: Array.isArray(shapes) ? shapes : [],
      };
    }),
    requests: requests.map(([id, shapeKey, slots, attempts, sinceMs]) => {
      return { id, shapeKey, slots, attempts, waitingSinceMs: Number(sinceMs) };
    }),
  };
}
