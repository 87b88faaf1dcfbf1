import type { Clock, ModelCard } from '@darkroom/core';
import { listModels } from '@darkroom/store';
import { createCached } from './cached.ts';
import type { AskStore } from '../server/store-guard.ts';

/** The models there are. Cards change when a worker brings a new model, so they are read again every second at most. */
export interface ModelCatalog {
  list(): Promise<readonly ModelCard[]>;
  /** Past the cache: for a model that is not in it, which may have come this moment. */
  reload(): Promise<readonly ModelCard[]>;
}

const maxAgeMs = 1000;

export function createModelCatalog(askStore: AskStore, clock: Clock): ModelCatalog {
  const cards = createCached({ load: () => askStore(listModels), maxAgeMs, clock });
  return { list: () => cards.get(), reload: () => cards.reload() };
}
