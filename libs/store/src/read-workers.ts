import type { WorkerPace } from '@darkroom/core';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** A registered worker, as operators see it. */
export interface WorkerStatus {
  workerId: string;
  model: string;
  /** `silent`: without a heartbeat, to be buried by the next sweep. */
  state: 'loading' | 'idle' | 'busy' | 'draining' | 'silent';
  /** It has its model in memory and is alive. */
  isLoaded: boolean;
  /** It was told to end and gives back what it has; else a `draining` one is drained by an operator. */
  isStopping: boolean;
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
  isLoading: number,
  isStopping: number,
];

/** All workers of a model, by id. One round trip. */
export async function readWorkers(store: StoreConnection, model: string): Promise<WorkerStatus[]> {
  const replies = (await runScript(store.redis, 'read-workers', store.keysOf(model).base)) as Reply[];
  return replies
    .map((reply) => decode(model, reply))
    .toSorted((left, right) => (left.workerId < right.workerId ? -1 : 1));
}

function decode(model: string, reply: Reply): WorkerStatus {
  const [workerId, list, alive, capacity, free, registeredAtMs, heartbeatAtMs, info, pace, loading, stopping] = reply;
  const isAlive = alive === 1;
  return {
    workerId,
    model,
    state: isAlive ? list : 'silent',
    isLoaded: isAlive && loading === 0,
    isStopping: stopping === 1,
    capacity: Number(capacity),
    freeRows: Math.max(0, Number(free)),
    registeredAtMs: Number(registeredAtMs),
    heartbeatAtMs: Number(heartbeatAtMs),
    info: JSON.parse(info) as WorkerStatus['info'],
    pace: pace === '' ? undefined : (JSON.parse(pace) as WorkerPace),
  };
}
