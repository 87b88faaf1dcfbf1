/**
 * A model may have several shards, each with its own queue, workers and slot of a Redis Cluster. The first is named
 * like the model (`emoji-sd`), the others `emoji-sd~1`, `emoji-sd~2`, …. Model ids contain no `~`, which is safe in a
 * URL, a file name and a hash tag.
 */

/** Max shards of a model. */
export const maxShards = 64;

/** Returns the name of a shard; `number` counts from 0. */
export function shardName(model: string, number: number): string {
  return number === 0 ? model : `${model}~${number}`;
}

export function modelOfShard(shard: string): string {
  return shard.split('~', 1)[0]!;
}

/** Returns the number of a shard, counted from 0. */
export function numberOfShard(shard: string): number {
  return Number(shard.split('~')[1] ?? 0);
}
