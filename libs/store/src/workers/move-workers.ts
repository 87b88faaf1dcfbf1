/** Rebalancing: moves workers between the shards of their model. Reads the load of shards and sends move messages. */
import type { ShardLoad, WorkerMove } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { isOpenShard } from '../models/model-registry.ts';
import type { WorkerName } from './register-worker.ts';
import { sendCommand } from './send-command.ts';

/** Max idle workers that are read per shard. */
const maxIdle = 100;

/** Reads the load of shards, at the same cost for any number of workers and requests. One round trip. */
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
  const lastIdle = String(maxIdle - 1);
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

/** Sends a move message to a worker. It has no effect if the worker is gone or busy by then. One round trip. */
export async function sendMove(store: StoreConnection, { workerId, from, to, isPatient }: WorkerMove): Promise<void> {
  await sendCommand(store, { shard: from, workerId }, { type: 'move', to, isPatient });
}

/**
 * Returns whether a busy worker may be moved to another shard of the model: true once per `pauseMs` for all janitors.
 * One round trip.
 */
export async function claimBusyMove(store: StoreConnection, model: string, pauseMs: number): Promise<boolean> {
  return (await store.redis.set(store.keysOf(model).moved, '1', 'PX', pauseMs, 'NX')) === 'OK';
}

/** Returns whether the worker is draining. One round trip. */
export async function isDrained(store: StoreConnection, { shard, workerId }: WorkerName): Promise<boolean> {
  return (await store.redis.hget(store.keysOf(shard).worker(workerId), 'list')) === 'draining';
}
