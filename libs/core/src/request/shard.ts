/**
 * A model may be spread over several shards, each with a queue and workers of its own, in a slot of a Redis Cluster of its own. The first
 * has the model's name, `emoji-sd`; the others are `emoji-sd~1`, `emoji-sd~2`, …: no model is called so, and `~` is as safe in a
 * URL, a file name and a hash tag as what models are called by.
 */

/** So many shards a model may have. */
export const maxShards = 64;

/** `number`: from 0. */
export function shardName(model: string, number: number): string {
  return number === 0 ? model : `${model}~${number}`;
}

export function modelOfShard(shard: string): string {
  return shard.split('~', 1)[0]!;
}

/** From 0. */
export function numberOfShard(shard: string): number {
  return Number(shard.split('~')[1] ?? 0);
}
