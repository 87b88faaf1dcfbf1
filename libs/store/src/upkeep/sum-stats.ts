import type { TerminalState } from '@darkroom/core';
import type { ModelStats, PoolPace, Tally } from './read-stats.ts';

/** A model from its shards; of one it is that. */
export function sumStats(shards: readonly ModelStats[]): ModelStats {
  const [first, ...others] = shards;
  if (first === undefined) throw new RangeError('no shard');
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
      // One with requests in two of them is one: no shard has more than there are.
      waitingOwners: Math.max(sum.waitingOwners, shard.waitingOwners),
      oldestQueuedAtMs: oldest.length === 0 ? undefined : Math.min(...oldest),
      outbox: sum.outbox + shard.outbox,
      isPaused: sum.isPaused,
      shards: sum.shards + shard.shards,
      waitingShards: sum.waitingShards + shard.waitingShards,
    };
  }, first);
}

/** What workers have in common by how many have it. */
function sumPaces(left: PoolPace, right: PoolPace): PoolPace {
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

/** A model's from its shards. */
export function sumTallies(shards: readonly Tally[]): Tally {
  const [first, ...others] = shards;
  if (first === undefined) throw new RangeError('no shard');
  return others.reduce(
    (sum, shard) => ({
      // All there may be are in each, in the same order.
      states: sum.states.map((state, at) => ({ ...state, ...sumDurations(state, shard.states[at]!) })),
      ends: sum.ends.map((end, at) => ({ ...end, ...sumDurations(end, shard.ends[at]!) })),
      requeues: sumFields(sum.requeues, shard.requeues),
      buried: sum.buried + shard.buried,
    }),
    first,
  );
}

export function sumEnded(shards: readonly Record<TerminalState, number>[]): Record<TerminalState, number> {
  return shards.reduce(sumFields);
}

type Durations = Pick<Tally['ends'][number], 'counts' | 'sum'>;

function sumDurations(left: Durations, right: Durations): Durations {
  return { counts: left.counts.map((count, at) => count + right.counts[at]!), sum: left.sum + right.sum };
}

function sumFields<Fields extends Record<string, number>>(left: Fields, right: Fields): Fields {
  return Object.fromEntries(Object.entries(left).map(([name, value]) => [name, value + right[name]!])) as Fields;
}
