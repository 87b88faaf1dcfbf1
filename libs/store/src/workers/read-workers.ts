import { modelOfShard, type WorkerPace } from '@darkroom/core';
import { type WorkerList, workerLists } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** A registered worker, as operators see it. */
export type WorkerStatus = ReturnType<typeof decode>;

/** The workers of a model by id, at most `limit`: draining and loading ones before busy, idle and sleeping ones. Two round trips. */
export async function readWorkers(store: StoreConnection, model: string, limit: number): Promise<WorkerStatus[]> {
  const keys = store.keysOf(model);
  const [[count, patience], ...lists] = await Promise.all([
    store.redis.hmget(keys.swept, 'count', 'patience'),
    ...workerLists.map((list) => store.redis.zrange(keys.workers(list), '0', String(limit - 1))),
  ]);
  const found = lists.flatMap((ids, index) => ids.map((workerId) => ({ workerId, list: workerLists[index]! })));
  const workers = await Promise.all(
    found.slice(0, limit).map(async ({ workerId, list }) => {
      const [heard, fields] = await Promise.all([
        store.redis.zscore(keys.heard, workerId),
        store.redis.hgetall(keys.worker(workerId)),
      ]);
      const isAlive = heard !== null && Number(count ?? 0) - Number(heard) <= Number(patience ?? 0);
      // One may be gone since it was listed.
      return heard === null ? undefined : decode(model, workerId, isAlive ? list : 'silent', fields);
    }),
  );
  return workers
    .filter((worker) => worker !== undefined)
    .toSorted((left, right) => (left.workerId < right.workerId ? -1 : 1));
}

function decode(
  model: string,
  workerId: string,
  /** `silent`: not heard of in the last sweeps, to be buried by one of the next. */
  state: WorkerList | 'silent',
  { loading, asleep, stopping, capacity, free, registeredAtMs, heartbeatAtMs, info, pace }: Record<string, string>,
) {
  return {
    workerId,
    model: modelOfShard(model),
    state,
    /** It has its model in memory and is alive. */
    isLoaded: state !== 'silent' && loading === '0' && asleep !== '1',
    /** It was told to end and gives back what it has; else a `draining` one is drained by an operator. */
    isStopping: stopping === '1',
    /** Its room in slots, and what nobody has taken of it. */
    capacity: Number(capacity),
    freeSlots: Math.max(0, Number(free)),
    /** By the clock of Redis, ms. */
    registeredAtMs: Number(registeredAtMs),
    heartbeatAtMs: Number(heartbeatAtMs),
    /** What it says of itself: device, host, pid, version. */
    info: JSON.parse(info ?? '{}') as Readonly<Record<string, string | number>>,
    /** Undefined before its first step. */
    pace: pace ? (JSON.parse(pace) as WorkerPace) : undefined,
  };
}
