import type { ModelCard } from '@darkroom/core';
import type { Kind } from './kind.ts';
import { picture } from './picture/picture.ts';
import { text } from './text/text.ts';

/** The kinds that a process knows. One that it does not know is of a newer version: requests and models of it are shown without what is its own. */
export interface Kinds {
  readonly all: readonly Kind[];
  /** By the `kind` of an envelope. */
  of(id: string): Kind | undefined;
  ofModel(card: ModelCard): Kind | undefined;
}

export function createKinds(all: readonly Kind[]): Kinds {
  const byId = new Map(all.map((kind) => [kind.id, kind]));
  return { all, of: (id) => byId.get(id), ofModel: (card) => byId.get(card.kind) };
}

/** All there are. */
export const kinds: Kinds = createKinds([picture, text]);
