import { modelOfShard, type WorkerThroughput, pairUp } from '@darkroom/core';
import { type WorkerList, workerLists } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A registered worker, as shown to operators. */
export type WorkerStatus = ReturnType<typeof decode>;

/**
 * Returns at most `limit` workers of a shard, by id: draining and loading ones before busy, idle and sleeping ones. Two
 * round trips.
 */
export async function readWorkers(store: StoreConnection, model: string, limit: number): Promise<WorkerStatus[]> {
  const keys = store.keysOf(model);
  const [[count, maxMissed], ...lists] = await Promise.all([
    store.redis.hmget(keys.swept, 'count', 'maxMissed'),
    ...workerLists.map((list) => store.redis.zrange(keys.workers(list), '0', String(limit - 1))),
  ]);
  const found = pairUp(workerLists, lists).flatMap(([list, ids]) => ids.map((workerId) => ({ workerId, list })));
  const workers = await Promise.all(
    found.slice(0, limit).map(async ({ workerId, list }) => {
      const [lastSweep, fields] = await Promise.all([
        store.redis.zscore(keys.heartbeats, workerId),
        store.redis.hgetall(keys.worker(workerId)),
      ]);
      const isAlive = lastSweep !== null && Number(count ?? 0) - Number(lastSweep) <= Number(maxMissed ?? 0);
      // It may have been removed since it was listed.
      return lastSweep === null ? undefined : decode(model, workerId, isAlive ? list : 'silent', fields);
    }),
  );
  return workers
    .filter((worker) => worker !== undefined)
    .toSorted((left, right) => (left.workerId < right.workerId ? -1 : 1));
}

function decode(
  model: string,
  workerId: string,
  /** `silent`: it missed heartbeats, and is reaped soon. */
  state: WorkerList | 'silent',
  {
    loading,
    asleep,
    stopping,
    capacity,
    free,
    registeredAtMs,
    heartbeatAtMs,
    info,
    throughput,
  }: Record<string, string>,
) {
  return {
    workerId,
    model: modelOfShard(model),
    state,
    /** Its model is in memory, and it sends heartbeats. */
    isLoaded: state !== 'silent' && loading === '0' && asleep !== '1',
    /** It shuts down and requeues what it has; a `draining` worker that is not stopping was drained by an operator. */
    isStopping: stopping === '1',
    /** Slots, and how many of them are free. */
    capacity: Number(capacity),
    freeSlots: Math.max(0, Number(free)),
    /** By the clock of Redis, ms since the epoch. */
    registeredAtMs: Number(registeredAtMs),
    heartbeatAtMs: Number(heartbeatAtMs),
    /** Reported by the worker: device, host, pid, version. */
    info: JSON.parse(info ?? '{}') as Readonly<Record<string, string | number>>,
    /** Undefined before its first step. */
    pace: throughput ? (JSON.parse(throughput) as WorkerThroughput) : undefined,
  };
}
