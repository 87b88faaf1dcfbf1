import { type Schema, schemaError, shortJson } from './schema-keywords.ts';

/** The references within one schema, as JSON pointers: `#/$defs/town`. */
export class SchemaReferences {
  readonly #schema: unknown;

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
