import {
  type RequestState,
  requestStates,
  requestTransitions,
  type TerminalState,
  terminalStates,
} from '@darkroom/core';
import { pairsToMap } from './request-fields.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** How a model is doing. */
export interface ModelStats {
  model: string;
  /** Workers by what they do; `silent` ones have no heartbeat and are not buried yet. */
  workers: Readonly<Record<'loading' | 'idle' | 'busy' | 'draining' | 'silent', number>>;
  /** Rows that idle and busy workers can step at once, and those of them that are free. */
  rows: number;
  freeRows: number;
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
  /** What became of requests, since Redis began. */
  tally: Tally;
}

/** A histogram of durations. */
export interface TalliedDurations {
  /** Upper bounds of the buckets, without the infinite one. */
  boundsMs: readonly number[];
  /** How many fell into each bucket; one more than there are bounds. */
  counts: readonly number[];
  sumMs: number;
}

/** Counted by the scripts that change states (includes/tally.lua). */
export interface Tally {
  /** How long requests were in `state` before they went on to `next`. */
  states: readonly ({ state: RequestState; next: RequestState } & TalliedDurations)[];
  /** From admission to the end, by the state it ended in. */
  ends: readonly ({ state: TerminalState } & TalliedDurations)[];
  /** Running requests that went back to the queue, by the reason. */
  requeues: Readonly<Record<'worker_lost' | 'engine_failed' | 'worker_stopped', number>>;
  /** Workers whose heartbeat stopped. */
  buried: number;
}

/** One round trip. */
export async function readStats(store: StoreConnection, model: string): Promise<ModelStats> {
  const reply = (await runScript(store.redis, 'read-stats', store.keysOf(model).base)) as [
    ...(number | string)[],
    number[],
    string[],
  ];
  const tallied = pairsToMap(reply.pop() as string[]);
  const boundsMs = reply.pop() as number[];
  const counts = reply as (number | string)[];
  const oldest = counts[10];
  const at = (position: number): number => Number(counts[position] ?? 0);
  return {
    model,
    workers: { loading: at(0), idle: at(1), busy: at(2), draining: at(3), silent: at(4) },
    rows: at(5),
    freeRows: at(6),
    queued: at(7),
    running: at(8),
    waitingOwners: at(9),
    oldestQueuedAtMs: oldest === '' || oldest === undefined ? undefined : Number(oldest),
    outbox: at(11),
    isPaused: at(12) === 1,
    tally: decodeTally(tallied, boundsMs),
  };
}

function decodeTally(fields: ReadonlyMap<string, string>, boundsMs: readonly number[]): Tally {
  const count = (field: string): number => Number(fields.get(field) ?? 0);
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
