import type { ModelCard } from '@darkroom/core';
import type { Kind } from './request/kind.ts';
import { imageKind } from './image/image.ts';
import { text } from './text/text.ts';

/**
 * The kinds that a process supports. A newer version may have stored requests and models of unknown kinds; these are
 * shown without kind-specific fields.
 *
 * @example
 *   const kinds = createKinds([imageKind, text]);
 *   kinds.ofBody({ messages: [] })?.id; // text
 */
export interface Kinds {
  readonly all: readonly Kind[];
  /** Returns the kind by the `kind` of an envelope. */
  of(id: string): Kind | undefined;
  ofModel(card: ModelCard): Kind | undefined;
  /** Returns the only kind whose exclusive fields a body uses, such as `messages` for text; undefined if ambiguous. */
  ofBody(body: unknown): Kind | undefined;
}

export function createKinds(all: readonly Kind[]): Kinds {
  const byId = new Map(all.map((kind) => [kind.id, kind]));
  const uses = new Map<string, Kind[]>();
  for (const kind of all) {
    for (const field of Object.keys(kind.bodySchema.shape)) uses.set(field, [...(uses.get(field) ?? []), kind]);
  }
  return {
    all,
    of: (id) => byId.get(id),
    ofModel: (card) => byId.get(card.kind),
    ofBody(body) {
      if (typeof body !== 'object' || body === null) return undefined;
      const owners = new Set<Kind>();
      for (const [field, value] of Object.entries(body)) {
        const [owner, ...others] = uses.get(field) ?? [];
        if (owner !== undefined && others.length === 0 && value !== null && value !== undefined) owners.add(owner);
      }
      return owners.size === 1 ? [...owners][0] : undefined;
    },
  };
}

/** All kinds. */
export const kinds: Kinds = createKinds([imageKind, text]);
