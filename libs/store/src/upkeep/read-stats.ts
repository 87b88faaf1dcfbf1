import {
  type RequestState,
  requestStates,
  requestTransitions,
  type TerminalState,
  terminalStates,
} from '@darkroom/core';
import { workerLists } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** How a model is doing. */
export interface ModelStats {
  model: string;
  /** Workers by what they do; `silent` ones were not heard of lately and are among the others until they are buried. */
  workers: Readonly<Record<'loading' | 'idle' | 'busy' | 'draining' | 'silent', number>>;
  /** Room of idle and busy workers, and what nobody has taken of it. */
  slots: number;
  freeSlots: number;
  /** How fast these are; undefined before a first step. */
  pace: PoolPace | undefined;
  /** Requests that wait, and those that run. */
  queued: number;
  running: number;
  /** Owners with waiting requests. */
  waitingOwners: number;
  /** When the oldest waiting request was admitted; undefined when none waits. */
  oldestQueuedAtMs: number | undefined;
  /** Events that no webhook-sender has taken. */
  outbox: number;
  /** An operator has it hand nothing out. */
  isPaused: boolean;
}

/** How fast the idle and busy workers of a model are that have taken steps. Means and sums, which are kept as they change. */
export interface PoolPace {
  workers: number;
  /** Slots of one of them. */
  capacity: number;
  /** Cost that all of them work off in a millisecond, at the slow and the fast end of what is usual. */
  costPerMs: { slow: number; fast: number };
  /** From one step of a row to its next. */
  stepMs: { slow: number; fast: number };
  /** Cost of what is left of the requests they have. */
  remainingCost: number;
}

/** The same cost for any number of workers and requests. Two round trips. */
export async function readStats(store: StoreConnection, model: string): Promise<ModelStats> {
  const { redis } = store;
  const keys = store.keysOf(model);
  const [[count, patience], room, queued, open, lines, oldest, outbox, paused, ...lists] = await Promise.all([
    redis.hmget(keys.swept, 'count', 'patience'),
    redis.hgetall(keys.room),
    redis.zcard(keys.waiting),
    redis.zcard(keys.deadlines),
    redis.hget(keys.shares, 'lines'),
    redis.zrange(keys.waiting, '0', '0', 'WITHSCORES'),
    redis.xlen(keys.webhooks),
    redis.exists(keys.paused),
    ...workerLists.map((list) => redis.zcard(keys.workers[list])),
  ]);
  const [draining = 0, loading = 0, busy = 0, idle = 0] = lists;
  const silent = await redis.zcount(keys.heard, '-inf', `(${Number(count ?? 0) - Number(patience ?? 0)}`);
  return {
    model,
    workers: { loading, idle, busy, draining, silent },
    slots: Number(room['capacity'] ?? 0),
    freeSlots: Number(room['free'] ?? 0),
    pace: decodePace(room),
    queued,
    running: Math.max(0, open - queued),
    waitingOwners: Number(lines ?? 0),
    oldestQueuedAtMs: oldest[1] === undefined ? undefined : Number(oldest[1]),
    outbox,
    isPaused: paused === 1,
  };
}

function decodePace(room: Readonly<Record<string, string>>): PoolPace | undefined {
  const sum = (field: string): number => Number(room[field] ?? 0);
  const workers = sum('paced');
  if (workers < 1) return undefined;
  return {
    workers,
    capacity: sum('capacity') / sum('workers'),
    costPerMs: { slow: sum('slowRate'), fast: sum('fastRate') },
    stepMs: { slow: sum('slowStepMs') / workers, fast: sum('fastStepMs') / workers },
    remainingCost: Math.max(0, sum('remainingCost')),
  };
}

/** A histogram of durations. */
export interface TalliedDurations {
  /** Upper bounds of the buckets, without the infinite one. */
  boundsMs: readonly number[];
  /** How many fell into each bucket; one more than there are bounds. */
  counts: readonly number[];
  sumMs: number;
}

/** Counted by the scripts that change states (includes/tally.lua), since Redis began. */
export interface Tally {
  /** How long requests were in `state` before they went on to `next`. */
  states: readonly ({ state: RequestState; next: RequestState } & TalliedDurations)[];
  /** From admission to the end, by the state it ended in. */
  ends: readonly ({ state: TerminalState } & TalliedDurations)[];
  /** Running requests that went back to the queue, by the reason. */
  requeues: Readonly<Record<'worker_lost' | 'engine_failed' | 'worker_stopped', number>>;
  /** Workers that were taken for dead. */
  buried: number;
}

/** As in includes/tally.lua. */
const boundsMs = [
  10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000,
  3_600_000,
];

/** One round trip. */
export async function readTally(store: StoreConnection, model: string): Promise<Tally> {
  const fields = await store.redis.hgetall(store.keysOf(model).tally);
  const count = (field: string): number => Number(fields[field] ?? 0);
  const durations = (name: string): TalliedDurations => ({
    boundsMs,
    counts: Array.from({ length: boundsMs.length + 1 }, (_value, index) => count(`${name}:${index + 1}`)),
    sumMs: count(`${name}:ms`),
  });
  return {
    // All there may be, from the beginning and with zeros.
    states: requestStates.flatMap((state) =>
      requestTransitions[state].map((next) => ({ state, next, ...durations(`state:${state}:${next}`) })),
    ),
    ends: terminalStates.map((state) => ({ state, ...durations(`end:${state}`) })),
    requeues: {
      worker_lost: count('requeue:worker_lost'),
      engine_failed: count('requeue:engine_failed'),
      worker_stopped: count('requeue:worker_stopped'),
    },
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
