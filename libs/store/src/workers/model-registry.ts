import type { ModelCard } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** Makes a model known to every API and former. It stays known after its last worker has gone. */
export async function publishModel(store: StoreConnection, card: ModelCard): Promise<void> {
  await store.redis.hset(systemKeys(store.prefix).models, card.id, JSON.stringify(card));
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
