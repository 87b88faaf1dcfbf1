/** Which of its model's shards a new request goes to: that of which its owner has asked for the least so far. */
export type ChooseShard = (owner: string, request: { shards: readonly string[]; cost: number }) => string;

/** Owners that are remembered: those who asked last. */
const mostOwners = 10_000;

/**
 * So each owner's work is spread evenly over the shards, whatever others do, and its share of each of them is its share of all. Known to
 * this process only: every replica spreads what comes to it. An owner begins anywhere, so that those who ask once are spread, too.
 *
 * @param draw from 0 to below 1.
 */
export function createShardChooser(draw: () => number = Math.random): ChooseShard {
  /** By owner and shard, as far as it is more than the owner's least. */
  const asked = new Map<string, Map<string, number>>();
  return (owner, { shards, cost }) => {
    const [model = ''] = shards;
    if (shards.length === 1) return model;
    const name = `${model} ${owner}`;
    const known = asked.get(name) ?? new Map<string, number>();
    // One that has just come is not to make up for what was before it.
    const least = Math.min(...shards.map((shard) => known.get(shard) ?? Infinity));
    const sums = shards.map((shard) => known.get(shard) ?? (least === Infinity ? draw() * cost : least));
    const base = Math.min(...sums);
    const chosen = sums.indexOf(base);
    asked.delete(name);
    asked.set(name, new Map(shards.map((shard, at) => [shard, sums[at]! - base + (at === chosen ? cost : 0)])));
    if (asked.size > mostOwners) asked.delete(asked.keys().next().value!);
    return shards[chosen]!;
  };
}
