import { deleteOldest } from '@darkroom/core';
/** Returns the shard for a new request: the one where the owner's requests have cost the least so far. */
export type ChooseShard = (owner: string, request: { shards: readonly string[]; cost: number }) => string;

/** Owners whose costs are remembered, least recently used evicted first. */
const maxOwners = 10_000;

/**
 * Creates a chooser that spreads each owner's cost evenly over the shards, so that an owner's fair share holds per
 * shard. State is per process. A new owner starts at a random shard, so that owners of one request are spread too.
 *
 * @param draw random number in [0, 1).
 */
export function createShardChooser(draw: () => number = Math.random): ChooseShard {
  /** Cost by owner and shard, minus the owner's minimum over its shards. */
  const costs = new Map<string, Map<string, number>>();
  return (owner, { shards, cost }) => {
    const [model = ''] = shards;
    if (shards.length === 1) return model;
    const name = `${model} ${owner}`;
    const known = costs.get(name) ?? new Map<string, number>();
    // A new shard starts at the minimum: it does not catch up on requests from before it existed.
    const min = Math.min(...shards.map((shard) => known.get(shard) ?? Infinity));
    const totals = new Map(
      shards.map((shard) => [shard, known.get(shard) ?? (min === Infinity ? draw() * cost : min)]),
    );
    const [chosen, base] = [...totals].reduce((left, right) => (right[1] < left[1] ? right : left));
    costs.delete(name);
    costs.set(
      name,
      new Map(Array.from(totals, ([shard, total]) => [shard, total - base + (shard === chosen ? cost : 0)])),
    );
    if (costs.size > maxOwners) deleteOldest(costs);
    return chosen;
  };
}
