import type { Dispatchable } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

type Reply = [
  nowMs: string,
  reserved: string,
  // cjson encodes an empty list as an object.
  workers: [id: string, list: 'idle' | 'busy' | 'asleep', free: number, capacity: number, shapes: string[] | object][],
  requests: [id: string, shapeKey: string, slots: number, attempts: number, sinceMs: string, maxAttempts: number][],
];

/**
 * Reads the free workers of a model and its next requests, bounded for any length of the queue: `maxWorkers` each of
 * idle, busy and sleeping workers, and as many requests as fit, plus those that ran before. Empty while the model
 * is paused or no slot is free. One round trip.
 */
export async function readDispatchable(
  store: StoreConnection,
  model: string,
  { maxWorkers, maxRequests }: { maxWorkers: number; maxRequests: number },
): Promise<Dispatchable> {
  const values = [maxWorkers, maxRequests];
  return decode((await runScript(store, 'dispatch/read-dispatchable', store.keysOf(model), values)) as Reply);
}

/**
 * Decodes the state that a wake-up brings along: the only queued request, and one worker of each list, of which one is
 * idle.
 */
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
    requests: requests.map(([id, shapeKey, slots, attempts, sinceMs, maxAttempts]) => {
      return { id, shapeKey, slots, attemptsLeft: maxAttempts - attempts, waitingSinceMs: Number(sinceMs) };
    }),
  };
}
