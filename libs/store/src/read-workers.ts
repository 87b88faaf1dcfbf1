import type { WorkerPace } from '@darkroom/core';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** A registered worker, as operators see it. */
export interface WorkerStatus {
  workerId: string;
  model: string;
  /** `silent`: without a heartbeat, to be buried by the next sweep. */
  state: 'loading' | 'idle' | 'busy' | 'draining' | 'silent';
  /** Rows it can step at once, and those of them that nobody has taken. */
  capacity: number;
  freeRows: number;
  registeredAtMs: number;
  /** By the worker's own clock. */
  heartbeatAtMs: number;
  /** What it says of itself: device, host, pid, version. */
  info: Readonly<Record<string, string | number>>;
  /** Undefined before its first step. */
  pace: WorkerPace | undefined;
}

type Reply = [
  id: string,
  list: 'loading' | 'idle' | 'busy' | 'draining',
  isAlive: number,
  capacity: string,
  free: string,
  registeredAtMs: string,
  heartbeatAtMs: string,
  info: string,
  pace: string,
];

/** All workers of a model, by id. One round trip. */
export async function readWorkers(store: StoreConnection, model: string): Promise<WorkerStatus[]> {
  const replies = (await runScript(store.redis, 'read-workers', store.keysOf(model).base)) as Reply[];
  return replies
    .map(([workerId, list, isAlive, capacity, free, registeredAtMs, heartbeatAtMs, info, pace]): WorkerStatus => ({
      workerId,
      model,
      state: isAlive === 1 ? list : 'silent',
      capacity: Number(capacity),
      freeRows: Math.max(0, Number(free)),
      registeredAtMs: Number(registeredAtMs),
      heartbeatAtMs: Number(heartbeatAtMs),
      info: JSON.parse(info) as WorkerStatus['info'],
      pace: pace === '' ? undefined : (JSON.parse(pace) as WorkerPace),
    }))
    .toSorted((left, right) => (left.workerId < right.workerId ? -1 : 1));
}
