import { modelOfShard, type TerminalState, terminalStates } from '@darkroom/core';
import { workerLists } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** How a model is doing, or one of its shards. */
export type ModelStats = Awaited<ReturnType<typeof readStats>>;
export type PoolPace = NonNullable<ModelStats['pace']>;

/** The same cost for any number of workers and requests. Two round trips. */
export async function readStats(store: StoreConnection, model: string) {
  const { redis } = store;
  const keys = store.keysOf(model);
  const [[count, patience], room, queued, open, lines, oldest, outbox, paused, loadMs, ...lists] = await Promise.all([
    redis.hmget(keys.swept, 'count', 'patience'),
    redis.hgetall(keys.room),
    redis.zcard(keys.waiting),
    redis.zcard(keys.deadlines),
    redis.hget(keys.shares, 'lines'),
    redis.zrange(keys.waiting, '0', '0', 'WITHSCORES'),
    redis.xlen(keys.webhooks),
    redis.exists(keys.paused),
    redis.hget(keys.tally, 'loadMs'),
    ...workerLists.map((list) => redis.zcard(keys.workers(list))),
  ]);
  const [draining = 0, loading = 0, busy = 0, idle = 0, asleep = 0] = lists;
  const silent = await redis.zcount(keys.heard, '-inf', `(${Number(count ?? 0) - Number(patience ?? 0)}`);
  return {
    model: modelOfShard(model),
    /** Workers by what they do; `silent` ones were not heard of lately and are among the others until they are buried. */
    workers: { loading, idle, busy, asleep, draining, silent },
    /** Room of idle, busy and sleeping workers, and what nobody has taken of it. */
    slots: Number(room['capacity'] ?? 0),
    freeSlots: Number(room['free'] ?? 0),
    pace: decodePace(room),
    /** What the last load of the model took, ms; undefined before the first. */
    loadMs: loadMs === null ? undefined : Number(loadMs),
    /** Requests that wait, and those that run. */
    queued,
    running: Math.max(0, open - queued),
    waitingOwners: Number(lines ?? 0),
    /** When the oldest waiting request was admitted; undefined when none waits. */
    oldestQueuedAtMs: oldest[1] === undefined ? undefined : Number(oldest[1]),
    /** Events that no webhook-sender has taken. */
    outbox,
    /** An operator has it hand nothing out. */
    isPaused: paused === 1,
    /** Shards that are in these numbers, and those of them in which something waits. */
    shards: 1,
    waitingShards: queued > 0 ? 1 : 0,
  };
}

/** How fast the idle and busy workers are that have taken steps: means and sums, which are kept as they change; undefined before. */
function decodePace(room: Readonly<Record<string, string>>) {
  const sum = (field: string): number => Number(room[field] ?? 0);
  const workers = sum('paced');
  // All of its room goes with the one that leaves for another shard.
  if (workers < 1 || sum('capacity') === 0) return undefined;
  return {
    workers,
    /** Slots of one of them. */
    capacity: sum('capacity') / sum('workers'),
    /** Cost that all of them work off in a millisecond, at the slow and the fast end of what is usual. */
    costPerMs: { slow: sum('slowRate'), fast: sum('fastRate') },
    /** From one step of a row to its next. */
    stepMs: { slow: sum('slowStepMs') / workers, fast: sum('fastStepMs') / workers },
    /** How far outputs come in the end, of as far as they might. */
    share: { slow: 1 - sum('slowSpared') / workers, fast: 1 - sum('fastSpared') / workers },
    /** Cost of what is left of the requests they have. */
    remainingCost: Math.max(0, sum('remainingCost')),
  };
}

/** Counted by the scripts that change states (includes/tally.lua), since Redis began. */
export type Tally = Awaited<ReturnType<typeof readTally>>;

/** All there are. `running → queued` is a lost or stopped worker's request on its way to another one. */
const transitions = [
  ...(['running', 'canceled', 'expired'] as const).map((next) => ['queued', next] as const),
  ...(['queued', ...terminalStates] as const).map((next) => ['running', next] as const),
];

/** As in includes/tally.lua, there in ms. */
const bounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600];

/** One round trip. */
export async function readTally(store: StoreConnection, model: string) {
  const fields = await store.redis.hgetall(store.keysOf(model).tally);
  const count = (field: string): number => Number(fields[field] ?? 0);
  /** A histogram, s. */
  const durations = (name: string) => ({
    /** Upper bounds of the buckets, without the infinite one. */
    bounds,
    /** How many fell into each bucket; one more than there are bounds. */
    counts: Array.from({ length: bounds.length + 1 }, (_value, index) => count(`${name}:${index + 1}`)),
    sum: count(`${name}:ms`) / 1000,
  });
  return {
    /** How long requests were in `state` before they went on to `next`: all there may be, from the beginning and with zeros. */
    states: transitions.map(([state, next]) => ({ state, next, ...durations(`state:${state}:${next}`) })),
    /** From admission to the end, by the state it ended in. */
    ends: terminalStates.map((state) => ({ state, ...durations(`end:${state}`) })),
    /** Running requests that went back to the queue, by the reason. */
    requeues: {
      worker_lost: count('requeue:worker_lost'),
      engine_failed: count('requeue:engine_failed'),
      worker_stopped: count('requeue:worker_stopped'),
    },
    /** Workers that were taken for dead. */
    buried: count('buried'),
  };
}

/** How many requests ended in the last `minutes`, the one under way included: at most ten, for longer is not kept. One round trip. */
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
