import type { ModelCard } from '@darkroom/core';
import { modelsKey } from './keys.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** Makes a model known to every API and former. It stays known after its last worker has gone. */
export async function publishModel(store: StoreConnection, card: ModelCard): Promise<void> {
  await store.redis.hset(modelsKey(store.prefix), card.id, JSON.stringify(card));
}

/** Cards of all known models, by id. One round trip. */
export async function listModels(store: StoreConnection): Promise<ModelCard[]> {
  const cards = await store.redis.hvals(modelsKey(store.prefix));
  return cards.map((card) => JSON.parse(card) as ModelCard).toSorted((left, right) => (left.id < right.id ? -1 : 1));
}

/** The ids of all known models. One round trip. */
export function listModelIds(store: StoreConnection): Promise<string[]> {
  return store.redis.hkeys(modelsKey(store.prefix));
}

/** The live workers of a model and what they could take. */
export interface ModelPool {
  model: string;
  /** Registered, weights not loaded yet. */
  loading: number;
  idle: number;
  busy: number;
  /** Rows that leases could fill right now. */
  freeRows: number;
  /** Requests that wait. */
  queued: number;
  /** Jobs that a former could take: requests that wait and no former holds, and what became of canceled ones. */
  takeable: number;
  /** Rows of the first of these, in the order they are given out, no more of them than there are free rows. */
  nextRows: number[];
  /** An operator has paused it: nothing is to be taken or leased. */
  isPaused: boolean;
}

export async function readPool(store: StoreConnection, model: string): Promise<ModelPool> {
  const reply = (await runScript(store.redis, 'read-pool', store.keysOf(model).base)) as [
    ...number[],
    number[],
    number,
  ];
  const isPaused = reply.pop() === 1;
  const nextRows = reply.pop() as number[];
  const [loading = 0, idle = 0, busy = 0, freeRows = 0, queued = 0, takeable = 0] = reply as number[];
  return { model, loading, idle, busy, freeRows, queued, takeable, nextRows, isPaused };
}

/** Pools of all known models: one round trip for the names, one for all pools. */
export async function readPools(store: StoreConnection): Promise<ModelPool[]> {
  const models = await listModelIds(store);
  return Promise.all(models.map((model) => readPool(store, model)));
}
