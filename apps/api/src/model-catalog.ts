import type { Clock, ModelCard } from '@darkroom/core';
import { listModels } from '@darkroom/store';
import type { AskStore } from './store-guard.ts';

/** The models there are. Cards change when a worker brings a new model, so they are read again every second at most. */
export interface ModelCatalog {
  list(): Promise<readonly ModelCard[]>;
  /** Past the cache: for a model that is not in it, which may have come this moment. */
  reload(): Promise<readonly ModelCard[]>;
}

const maxAgeMs = 1000;

export function createModelCatalog(askStore: AskStore, clock: Clock): ModelCatalog {
  let cached: { cards: Promise<readonly ModelCard[]>; readAtMs: number } | undefined;
  const reload = (): Promise<readonly ModelCard[]> => {
    const entry = { cards: askStore(listModels), readAtMs: clock.now() };
    cached = entry;
    // A failure is for those who asked, not for everybody in the next second.
    entry.cards.catch(() => {
      if (cached === entry) cached = undefined;
    });
    return entry.cards;
  };
  return {
    list: () => (cached !== undefined && clock.now() - cached.readAtMs < maxAgeMs ? cached.cards : reload()),
    reload,
  };
}
