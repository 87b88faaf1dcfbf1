import { lastItem } from '@darkroom/core';
import type { EngineKind } from '../engine-kind.ts';
import { imageEngine } from './image/image-engine.ts';
import { textEngine } from './text/text-engine.ts';

/** The kinds of work that an engine or a worker can run. */
export class EngineKinds {
  readonly #all: readonly [EngineKind, ...EngineKind[]];

  /** @param all the first one that detects a directory reads it; if none does, the last one reports what is missing. */
  constructor(all: readonly [EngineKind, ...EngineKind[]]) {
    this.#all = all;
  }

  /** Returns the kind with an id, as in envelopes and cards. @throws Error if there is none. */
  of(id: string): EngineKind {
    const kind = this.#all.find((each) => each.id === id);
    if (kind === undefined) throw new Error(`there is no engine kind ${id}`);
    return kind;
  }

  /** Returns the kind of the model in a directory. */
  async detect(directory: string): Promise<EngineKind> {
    for (const kind of this.#all) if (await kind.detect(directory)) return kind;
    return lastItem(this.#all);
  }
}

/** All kinds. */
export const engineKinds = new EngineKinds([textEngine, imageEngine]);
