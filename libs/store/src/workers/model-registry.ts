import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { ModelCard } from '@darkroom/core';
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

/** Cards of all known models, by id. One round trip. */
export async function listModels(store: StoreConnection): Promise<ModelCard[]> {
  const cards = await store.redis.hvals(systemKeys(store.prefix).models);
  // Cards of before there were kinds have none: all were of pictures.
  return cards
    .map((card) => ({ kind: 'picture', ...(JSON.parse(card) as object) }) as ModelCard)
    .toSorted((left, right) => (left.id < right.id ? -1 : 1));
}

/** The ids of all known models. One round trip. */
export function listModelIds(store: StoreConnection): Promise<string[]> {
  return store.redis.hkeys(systemKeys(store.prefix).models);
}

/** A paused model takes requests in and starts none. What runs goes on, and deadlines do too. Safe to call twice. */
export async function pauseModel(store: StoreConnection, model: string): Promise<void> {
  await store.redis.set(store.keysOf(model).paused, '1');
}

/** Wakes the formers. Safe to call twice. */
export async function resumeModel(store: StoreConnection, model: string): Promise<void> {
  const { paused, wakeup } = store.keysOf(model);
  await store.redis.del(paused);
  await store.redis.publish(wakeup, 'resumed');
}
