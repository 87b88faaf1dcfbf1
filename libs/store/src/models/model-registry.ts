import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { groupBy, type ModelCard, modelOfShard, numberOfShard, shardName } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Data that belongs to a model's card but is too large for it, such as a tokenizer; `name` as in the card. */
export interface ModelAsset {
  name: string;
  bytes: Uint8Array;
}

/** Publishes a model's card to all APIs and formers. It stays published after the last worker is gone. */
export async function publishModel(store: StoreConnection, card: ModelCard, asset?: ModelAsset): Promise<void> {
  if (asset !== undefined) {
    const bytes = await promisify(gzip)(asset.bytes);
    await store.redis.hset(store.keysOf(card.id).asset, { name: asset.name, bytes });
  }
  await store.redis.hset(systemKeys(store.prefix).models, card.id, JSON.stringify(card));
}

/**
 * Reads an asset; undefined if it has another name: a worker with another version of the model has published its own.
 * One round trip.
 */
export async function readAsset(store: StoreConnection, model: string, name: string): Promise<Buffer | undefined> {
  const [storedName, bytes] = await store.redis.hmgetBuffer(store.keysOf(model).asset, 'name', 'bytes');
  return storedName?.toString() === name && bytes != null ? promisify(gunzip)(bytes) : undefined;
}

/** A model's card and the shards of its queue. */
export interface KnownModel extends ModelCard {
  /** Shards that accept new requests; the first one always does. */
  shards: readonly string[];
}

/** Returns all known models, by id. One round trip. */
export async function listModels(store: StoreConnection): Promise<KnownModel[]> {
  const entries = Object.entries(await store.redis.hgetall(systemKeys(store.prefix).models));
  const open = entries.filter(([name, value]) => isOpenShard(name, value)).map(([name]) => name);
  return entries
    .filter(([name]) => name === modelOfShard(name))
    .map(([id, card]) => {
      const shards = inOrder(open.filter((shard) => modelOfShard(shard) === id));
      return { ...(JSON.parse(card) as ModelCard), shards };
    })
    .toSorted((left, right) => (left.id < right.id ? -1 : 1));
}

/** Returns all shards of all known models, also those that accept no new requests. One round trip. */
export function listShards(store: StoreConnection): Promise<string[]> {
  return store.redis.hkeys(systemKeys(store.prefix).models);
}

/** Returns all shards by model. One round trip. */
export async function listShardsByModel(store: StoreConnection): Promise<ReadonlyMap<string, readonly string[]>> {
  return groupShards(await listShards(store));
}

/** Groups shards by model, in the order of their numbers. */
export function groupShards(shards: readonly string[]): ReadonlyMap<string, readonly string[]> {
  return new Map(groupBy(inOrder(shards), modelOfShard).map((group) => [modelOfShard(group[0]), group]));
}

/** Values that stand in place of a card for further shards of a model. */
const openShard = '1';
const closedShard = '0';

/** Returns whether a shard accepts new requests, by its value in the registry. The first shard always does. */
export function isOpenShard(shard: string, value: string | null | undefined): boolean {
  return shard === modelOfShard(shard) || value === openShard;
}

/**
 * Sets the number of shards that accept new requests of a model. Further shards are closed but stay known, so their
 * requests remain readable. Safe to call twice and concurrently: the last call wins. One round trip, and up to two more
 * if something changes.
 *
 * @param known all existing shards of the model.
 */
export async function setShardCount(
  store: StoreConnection,
  model: string,
  { count, known }: { count: number; known: readonly string[] },
): Promise<void> {
  const wanted = Array.from({ length: count }, (_shard, number) => shardName(model, number));
  const others = [...new Set([...wanted, ...known])].filter((shard) => shard !== model);
  if (others.length === 0) return;
  const key = systemKeys(store.prefix).models;
  const [card, ...values] = await store.redis.hmget(key, model, ...others);
  // The model was forgotten since it was listed.
  if (card === null) return;
  const changed = others
    .map((shard) => [shard, wanted.includes(shard) ? openShard : closedShard] as const)
    .filter(([, value], at) => values[at] !== value);
  if (changed.length === 0) return;
  // A paused model is paused in all its shards.
  const isPaused = (await store.redis.exists(store.keysOf(model).paused)) === 1;
  if (isPaused) await Promise.all(changed.map(([shard]) => store.redis.set(store.keysOf(shard).paused, '1')));
  await store.redis.hset(key, Object.fromEntries(changed));
}

/**
 * Pauses all shards of a model: requests are admitted but not dispatched; running requests and deadlines continue. Safe
 * to call twice.
 */
export async function pauseModel(store: StoreConnection, model: string): Promise<void> {
  await Promise.all((await shardsOf(store, model)).map((shard) => store.redis.set(store.keysOf(shard).paused, '1')));
}

/** Resumes all shards of a model and wakes the formers. Safe to call twice. */
export async function resumeModel(store: StoreConnection, model: string): Promise<void> {
  const resume = async (shard: string): Promise<void> => {
    const { paused, wakeup } = store.keysOf(shard);
    await store.redis.del(paused);
    await store.redis.publish(wakeup, 'resumed');
  };
  await Promise.all((await shardsOf(store, model)).map(resume));
}

/** Returns the shards of a model; of an unknown model, the first. One round trip. */
export async function shardsOf(store: StoreConnection, model: string): Promise<readonly string[]> {
  return (await listShardsByModel(store)).get(model) ?? [model];
}

function inOrder(shards: readonly string[]): string[] {
  return shards.toSorted((left, right) => numberOfShard(left) - numberOfShard(right));
}
