import { pairUp, valueOfKey } from '@darkroom/core';
import type { TerminalState } from '@darkroom/core';
import type { ModelStats, PoolThroughput, QueueCounters } from './read-stats.ts';

/** Sums the stats of a model's shards; the stats of one shard are returned as they are. */
export function sumStats(shards: readonly ModelStats[]): ModelStats {
  const [first, ...others] = shards;
  if (first === undefined) throw new RangeError('sumStats expects at least one shard');
  return others.reduce((sum, shard) => {
    const oldest = [sum.oldestQueuedAtMs, shard.oldestQueuedAtMs].filter((atMs) => atMs !== undefined);
    return {
      model: sum.model,
      workers: sumFields(sum.workers, shard.workers),
      slots: sum.slots + shard.slots,
      freeSlots: sum.freeSlots + shard.freeSlots,
      pace: sum.pace && shard.pace ? sumPaces(sum.pace, shard.pace) : (sum.pace ?? shard.pace),
      loadMs: sum.loadMs === undefined ? shard.loadMs : Math.max(sum.loadMs, shard.loadMs ?? 0),
      queued: sum.queued + shard.queued,
      running: sum.running + shard.running,
      // Owners may have requests in several shards, so a sum would count them twice: use the max.
      waitingOwners: Math.max(sum.waitingOwners, shard.waitingOwners),
      oldestQueuedAtMs: oldest.length === 0 ? undefined : Math.min(...oldest),
      outbox: sum.outbox + shard.outbox,
      isPaused: sum.isPaused,
      shards: sum.shards + shard.shards,
      waitingShards: sum.waitingShards + shard.waitingShards,
    };
  }, first);
}

/** Sums rates and costs, and averages the rest weighted by workers. */
function sumPaces(left: PoolThroughput, right: PoolThroughput): PoolThroughput {
  const workers = left.workers + right.workers;
  const mean = (one: number, other: number): number => (one * left.workers + other * right.workers) / workers;
  const both = (name: 'costPerMs' | 'stepMs' | 'share', join: (one: number, other: number) => number) => ({
    slow: join(left[name].slow, right[name].slow),
    fast: join(left[name].fast, right[name].fast),
  });
  return {
    workers,
    capacity: mean(left.capacity, right.capacity),
    costPerMs: both('costPerMs', (one, other) => one + other),
    stepMs: both('stepMs', mean),
    share: both('share', mean),
    remainingCost: left.remainingCost + right.remainingCost,
  };
}

/** Sums the counters of a model's shards. */
export function sumCounters(shards: readonly QueueCounters[]): QueueCounters {
  const [first, ...others] = shards;
  if (first === undefined) throw new RangeError('sumCounters expects at least one shard');
  return others.reduce(
    (sum, shard) => ({
      // Every shard lists all transitions, in the same order.
      states: pairUp(sum.states, shard.states).map(([state, other]) => ({ ...state, ...sumDurations(state, other) })),
      ends: pairUp(sum.ends, shard.ends).map(([end, other]) => ({ ...end, ...sumDurations(end, other) })),
      requeues: sumFields(sum.requeues, shard.requeues),
      reaped: sum.reaped + shard.reaped,
    }),
    first,
  );
}

export function sumEnded(shards: readonly Record<TerminalState, number>[]): Record<TerminalState, number> {
  return shards.reduce(sumFields);
}

type Durations = Pick<QueueCounters['ends'][number], 'counts' | 'sum'>;

function sumDurations(left: Durations, right: Durations): Durations {
  const counts = pairUp(left.counts, right.counts).map(([count, other]) => count + other);
  return { counts, sum: left.sum + right.sum };
}

function sumFields<Fields extends Record<string, number>>(left: Fields, right: Fields): Fields {
  const others = new Map(Object.entries(right));
  const sums = Object.entries(left).map(([name, value]) => [name, value + valueOfKey(others, name)]);
  return Object.fromEntries(sums) as Fields;
}
