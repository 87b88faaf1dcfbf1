import type { Clock } from '@darkroom/core';
import { listModelIds, type ModelStats, readStats } from '@darkroom/store';
import { type Cached, createCached } from '../server/cached.ts';
import type { AskStore } from '../server/store-guard.ts';

/** How all models are doing, by id. */
export type ModelPools = Cached<ReadonlyMap<string, ModelStats>>;

export function createModelPools(askStore: AskStore, clock: Clock): ModelPools {
  return createCached(clock, () =>
    askStore(async (store) => {
      const models = await listModelIds(store);
      const stats = await Promise.all(models.map((model) => readStats(store, model)));
      return new Map(stats.map((pool) => [pool.model, pool]));
    }),
  );
}
