import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { groupBy, type ModelCard, modelOfShard, numberOfShard, shardName } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** What readers of a card need and is too large for it, such as a tokenizer: under the name that the card has for it. */
export interface ModelAsset {
  name: string;
  bytes: Uint8Array;
}

/** Makes a model known to every API and former. It stays known after its last worker has gone. */
export async function publishModel(store: StoreConnection, card: ModelCard, asset?: ModelAsset): Promise<void> {
  if (asset !== undefined) {
    const bytes = await promisify(gzip)(asset.bytes);
    await store.redis.hset(store.keysOf(card.id).asset, { name: asset.name, bytes });
  }
  await store.redis.hset(systemKeys(store.prefix).models, card.id, JSON.stringify(card));
}

/** Undefined when there is none of that name: a worker with another version of the model has published its own. One round trip. */
export async function readAsset(store: StoreConnection, model: string, name: string): Promise<Buffer | undefined> {
  const [kept, bytes] = await store.redis.hmgetBuffer(store.keysOf(model).asset, 'name', 'bytes');
  return kept?.toString() === name && bytes != null ? promisify(gunzip)(bytes) : undefined;
}

/** A model and where its requests go. */
export interface KnownModel extends ModelCard {
  /** Those that new requests may be in; always its first one. */
  shards: readonly string[];
}

/** All known models, by id. One round trip. */
export async function listModels(store: StoreConnection): Promise<KnownModel[]> {
  const entries = Object.entries(await store.redis.hgetall(systemKeys(store.prefix).models));
  const open = entries.filter(([name, value]) => isOpenShard(name, value)).map(([name]) => name);
  // Cards of before there were kinds have none: all were of pictures.
  return entries
    .filter(([name]) => name === modelOfShard(name))
    .map(([id, card]) => {
      const shards = inOrder(open.filter((shard) => modelOfShard(shard) === id));
      return { kind: 'picture', ...(JSON.parse(card) as Omit<ModelCard, 'kind'>), shards };
    })
    .toSorted((left, right) => (left.id < right.id ? -1 : 1));
}

/** All shards of all known models, those that take no new requests included. One round trip. */
export function listShards(store: StoreConnection): Promise<string[]> {
  return store.redis.hkeys(systemKeys(store.prefix).models);
}

/** The same by their models. One round trip. */
export async function listShardsByModel(store: StoreConnection): Promise<ReadonlyMap<string, readonly string[]>> {
  return groupShards(await listShards(store));
}

/** By models, each with its first shard first. */
export function groupShards(shards: readonly string[]): ReadonlyMap<string, readonly string[]> {
  return new Map(groupBy(inOrder(shards), modelOfShard).map((group) => [modelOfShard(group[0]!), group]));
}

/** What stands in place of a card where there is another shard of a model. */
const openShard = '1';
const closedShard = '0';

/** By what stands there: new requests go to it. Its first one always takes them. */
export function isOpenShard(shard: string, value: string | null | undefined): boolean {
  return shard === modelOfShard(shard) || value === openShard;
}

/**
 * Has new requests of a model go to so many shards. Those beyond take none any more, and stay known: what is in them can be asked for.
 * Safe to call twice, and by several; whoever comes last is right. One round trip, and one more if something changes.
 *
 * @param known all shards of it there are.
 */
export async function spreadModel(
  store: StoreConnection,
  model: string,
  { count, known }: { count: number; known: readonly string[] },
): Promise<void> {
  const wanted = Array.from({ length: count }, (_shard, number) => shardName(model, number));
  const others = [...new Set([...wanted, ...known])].filter((shard) => shard !== model);
  if (others.length === 0) return;
  const key = systemKeys(store.prefix).models;
  const values = await store.redis.hmget(key, ...others);
  const changed = others
    .map((shard) => [shard, wanted.includes(shard) ? openShard : closedShard] as const)
    .filter(([, value], at) => values[at] !== value);
  if (changed.length === 0) return;
  // What is paused is paused in all of them.
  const isPaused = (await store.redis.exists(store.keysOf(model).paused)) === 1;
  if (isPaused) await Promise.all(changed.map(([shard]) => store.redis.set(store.keysOf(shard).paused, '1')));
  await store.redis.hset(key, Object.fromEntries(changed));
}

/** A paused model takes requests in and starts none. What runs goes on, and deadlines do too. Of all its shards. Safe to call twice. */
export async function pauseModel(store: StoreConnection, model: string): Promise<void> {
  await Promise.all((await shardsOf(store, model)).map((shard) => store.redis.set(store.keysOf(shard).paused, '1')));
}

/** Wakes the formers. Safe to call twice. */
export async function resumeModel(store: StoreConnection, model: string): Promise<void> {
  const resume = async (shard: string): Promise<void> => {
    const { paused, wakeup } = store.keysOf(shard);
    await store.redis.del(paused);
    await store.redis.publish(wakeup, 'resumed');
  };
  await Promise.all((await shardsOf(store, model)).map(resume));
}

/** The shards of a model, of one that nobody knows its first. One round trip. */
export async function shardsOf(store: StoreConnection, model: string): Promise<readonly string[]> {
  return (await listShardsByModel(store)).get(model) ?? [model];
}

function inOrder(shards: readonly string[]): string[] {
  return shards.toSorted((left, right) => numberOfShard(left) - numberOfShard(right));
}
