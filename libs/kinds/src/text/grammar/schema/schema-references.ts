import { type Schema, schemaError, shortJson } from './schema-keywords.ts';

/** The references within one schema, as JSON pointers: `#/$defs/town`. */
export class SchemaReferences {
  readonly #schema: unknown;
  /** To which others each leads with nothing written before. */
  readonly #leads = new Map<string, Set<string>>();

  constructor(schema: unknown) {
    this.#schema = schema;
  }

  /** @throws DarkroomError `invalid_request` with the place if there is nothing, or it is of another document. */
  find(ref: string, place: string): unknown {
    if (!ref.startsWith('#')) throw schemaError(place, `is ${shortJson(ref)}, expected one into this schema: "#/…"`);
    let found: unknown = this.#schema;
    for (const step of stepsOf(ref)) {
      const isThere = typeof found === 'object' && found !== null && Object.hasOwn(found, step);
      if (!isThere) throw schemaError(place, `leads nowhere: there is no ${shortJson(ref)}`);
      found = (found as Schema)[step];
    }
    return found;
  }

  /** Takes note that one is another, or one of several that may be it. */
  add(from: string, to: string): void {
    this.#leads.set(from, (this.#leads.get(from) ?? new Set()).add(to));
  }

  /** @throws DarkroomError if one of them is itself, and so no value. */
  checkEnds(): void {
    for (const ref of this.#leads.keys())
      if (this.#isReached(ref, ref, new Set()))
        throw schemaError(placeOf(ref), 'leads back to itself, and to no value');
  }

  #isReached(target: string, from: string, seen: Set<string>): boolean {
    seen.add(from);
    return [...(this.#leads.get(from) ?? [])].some(
      (next) => next === target || (!seen.has(next) && this.#isReached(target, next, seen)),
    );
  }
}

export function placeOf(ref: string): string {
  return ['$', ...stepsOf(ref)].join('.');
}

function stepsOf(ref: string): string[] {
  const steps = ref.slice(1).split('/').slice(1);
  return steps.map((step) => decoded(step).replaceAll('~1', '/').replaceAll('~0', '~'));
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step;
  }
}
