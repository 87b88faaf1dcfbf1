import { modelOfShard, type TerminalState, terminalStates } from '@darkroom/core';
import { workerLists } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** State of a model, or of one of its shards. */
export type ModelStats = Awaited<ReturnType<typeof readStats>>;
export type PoolThroughput = NonNullable<ModelStats['pace']>;

/** Reads the state of a shard, at the same cost for any number of workers and requests. Two round trips. */
export async function readStats(store: StoreConnection, model: string) {
  const { redis } = store;
  const keys = store.keysOf(model);
  const [[count, maxMissed], capacity, queued, open, owners, oldest, outbox, paused, loadMs, ...lists] =
    await Promise.all([
      redis.hmget(keys.swept, 'count', 'maxMissed'),
      redis.hgetall(keys.capacity),
      redis.zcard(keys.waiting),
      redis.zcard(keys.deadlines),
      redis.hget(keys.shares, 'owners'),
      redis.zrange(keys.waiting, '0', '0', 'WITHSCORES'),
      redis.xlen(keys.webhooks),
      redis.exists(keys.paused),
      redis.hget(keys.counters, 'loadMs'),
      ...workerLists.map((list) => redis.zcard(keys.workers(list))),
    ]);
  const [draining = 0, loading = 0, busy = 0, idle = 0, asleep = 0] = lists;
  const silent = await redis.zcount(keys.heartbeats, '-inf', `(${Number(count ?? 0) - Number(maxMissed ?? 0)}`);
  return {
    model: modelOfShard(model),
    /**
     * Workers by state. `silent` workers missed heartbeats; they are also counted in the other states until they are
     * reaped.
     */
    workers: { loading, idle, busy, asleep, draining, silent },
    /** Slots of idle, busy and sleeping workers, and how many of them are free. */
    slots: Number(capacity['capacity'] ?? 0),
    freeSlots: Number(capacity['free'] ?? 0),
    pace: decodeThroughput(capacity),
    /** Duration of the model's last load, ms; undefined before the first. */
    loadMs: loadMs === null ? undefined : Number(loadMs),
    /** Number of queued and of running requests. */
    queued,
    running: Math.max(0, open - queued),
    waitingOwners: Number(owners ?? 0),
    /** When the oldest queued request was admitted; undefined if none is queued. */
    oldestQueuedAtMs: oldest[1] === undefined ? undefined : Number(oldest[1]),
    /** Webhook events that no sender has taken yet. */
    outbox,
    /** An operator has paused dispatch. */
    isPaused: paused === 1,
    /** Shards in these numbers, and those of them with queued requests. */
    shards: 1,
    waitingShards: queued > 0 ? 1 : 0,
  };
}

/** Returns whether a live worker serves or loads the model. */
export function isServed({ workers }: Pick<ModelStats, 'workers'>): boolean {
  const { loading, idle, busy, asleep, draining, silent } = workers;
  const open = loading + idle + busy + asleep;
  // `silent` workers are counted in any of the other states.
  return open > 0 && open + draining > silent;
}

/**
 * Returns the throughput of the idle and busy workers that have taken steps, from sums that are updated as they change;
 * undefined before the first step.
 */
function decodeThroughput(sums: Readonly<Record<string, string>>) {
  const sum = (field: string): number => Number(sums[field] ?? 0);
  const workers = sum('measured');
  // `capacity` is 0 while the only worker moves to another shard.
  if (workers < 1 || sum('capacity') === 0) return undefined;
  return {
    workers,
    /** Mean slots per worker. */
    capacity: sum('capacity') / sum('workers'),
    /** Cost that all workers together process per ms, at the slow and the fast end of the usual range. */
    costPerMs: { slow: sum('slowRate'), fast: sum('fastRate') },
    /** Mean time between two steps of a row. */
    stepMs: { slow: sum('slowStepMs') / workers, fast: sum('fastStepMs') / workers },
    /** Mean length of outputs, as a fraction of the maximum length. */
    share: { slow: 1 - sum('slowSpared') / workers, fast: 1 - sum('fastSpared') / workers },
    /** Remaining cost of the running requests. */
    remainingCost: Math.max(0, sum('remainingCost')),
  };
}

/** Counters since the Redis data began, written by the scripts that change states (includes/counters.lua). */
export type QueueCounters = Awaited<ReturnType<typeof readCounters>>;

/** All possible transitions. `running → queued`: the worker was lost or stopped, and the request was requeued. */
const transitions = [
  ...(['running', 'canceled', 'expired'] as const).map((next) => ['queued', next] as const),
  ...(['queued', ...terminalStates] as const).map((next) => ['running', next] as const),
];

/** In seconds; the same bounds are in ms in includes/counters.lua. */
const bounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600];

/** Reads the counters of a shard. One round trip. */
export async function readCounters(store: StoreConnection, model: string) {
  const fields = await store.redis.hgetall(store.keysOf(model).counters);
  const count = (field: string): number => Number(fields[field] ?? 0);
  /** Returns a histogram of durations, in seconds. */
  const durations = (name: string) => ({
    /** Upper bounds of the buckets, without +Inf. */
    bounds,
    /** Requests per bucket; the last bucket is beyond all bounds. */
    counts: Array.from({ length: bounds.length + 1 }, (_value, index) => count(`${name}:${index + 1}`)),
    sum: count(`${name}:ms`) / 1000,
  });
  return {
    /**
     * Time that requests spent in `state` before they moved to `next`, for all possible transitions, zeros included.
     */
    states: transitions.map(([state, next]) => ({ state, next, ...durations(`state:${state}:${next}`) })),
    /** Time from admission to the end, by terminal state. */
    ends: terminalStates.map((state) => ({ state, ...durations(`end:${state}`) })),
    /** Requeued requests, by reason. */
    requeues: {
      worker_lost: count('requeue:worker_lost'),
      engine_failed: count('requeue:engine_failed'),
      worker_stopped: count('requeue:worker_stopped'),
    },
    /** Workers that were reaped because they missed sweeps. */
    reaped: count('reaped'),
  };
}

/**
 * Counts the requests that ended in the last `minutes` (at most ten are stored), the current one included. One round
 * trip.
 */
export async function countEnded(
  store: StoreConnection,
  model: string,
  { minutes, nowMs }: { minutes: number; nowMs: number },
): Promise<Record<TerminalState, number>> {
  const keys = store.keysOf(model);
  const thisMinute = Math.floor(nowMs / 60_000);
  const hashes = await Promise.all(
    Array.from({ length: minutes }, (_value, ago) => store.redis.hgetall(keys.minute(thisMinute - ago))),
  );
  const sum = (state: TerminalState): number => hashes.reduce((total, hash) => total + Number(hash[state] ?? 0), 0);
  return { succeeded: sum('succeeded'), failed: sum('failed'), canceled: sum('canceled'), expired: sum('expired') };
}
