/** Workers go from one shard of their model to another as they are needed: what that is decided by, and how they are told. */
import type { ShardLoad, WorkerMove } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { isOpenShard } from './model-registry.ts';

/** Of workers that have nothing to do, so many of a shard are looked at. */
const mostIdle = 100;

/** The same cost for any number of workers and requests. One round trip. */
export async function readShardLoads(store: StoreConnection, shards: readonly string[]): Promise<ShardLoad[]> {
  const [nowMs, states, ...loads] = await Promise.all([
    readTime(store),
    store.redis.hmget(systemKeys(store.prefix).models, ...shards),
    ...shards.map((shard) => readLoad(store, shard)),
  ]);
  return loads.map(({ oldestAtMs, ...load }, at) => ({
    ...load,
    isOpen: isOpenShard(load.shard, states[at]),
    oldestMs: oldestAtMs === undefined ? 0 : Math.max(0, nowMs - Number(oldestAtMs)),
  }));
}

async function readLoad({ redis, keysOf }: StoreConnection, shard: string) {
  const keys = keysOf(shard);
  const lastIdle = String(mostIdle - 1);
  const [waiting, open, oldest, idleCount, busyCount, asleepCount, idle, asleep, busy] = await Promise.all([
    redis.zcard(keys.waiting),
    redis.zcard(keys.deadlines),
    redis.zrange(keys.waiting, '0', '0', 'WITHSCORES'),
    redis.zcard(keys.workers('idle')),
    redis.zcard(keys.workers('busy')),
    redis.zcard(keys.workers('asleep')),
    redis.zrange(keys.workers('idle'), '0', lastIdle),
    redis.zrange(keys.workers('asleep'), '0', lastIdle),
    redis.zrange(keys.workers('busy'), '0', '0', 'REV'),
  ]);
  return {
    shard,
    waiting,
    running: Math.max(0, open - waiting),
    oldestAtMs: oldest[1],
    workers: idleCount + busyCount + asleepCount,
    idle: [...idle, ...asleep],
    busy: busy[0],
  };
}

/** Tells a worker where to go. It may have gone, or have work by now; then nothing comes of it. One round trip. */
export async function sendWorker(store: StoreConnection, { workerId, from, to, isPatient }: WorkerMove): Promise<void> {
  const values = [workerId, '', 'ask', JSON.stringify({ type: 'move', to, isPatient })];
  await runScript(store, 'workers/drain-worker', store.keysOf(from), values);
}

/** Whether a worker that has work may be sent to another shard of the model: once in so long, whoever asks. One round trip. */
export async function mayMoveBusy(store: StoreConnection, model: string, pauseMs: number): Promise<boolean> {
  return (await store.redis.set(store.keysOf(model).moved, '1', 'PX', pauseMs, 'NX')) === 'OK';
}

/** Whether an operator has drained the worker. One round trip. */
export async function isDrained(
  store: StoreConnection,
  { model, workerId }: { model: string; workerId: string },
): Promise<boolean> {
  return (await store.redis.hget(store.keysOf(model).worker(workerId), 'list')) === 'draining';
}
