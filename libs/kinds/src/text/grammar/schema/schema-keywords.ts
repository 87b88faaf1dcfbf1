import { DarkroomError } from '@darkroom/core';

export type Schema = Readonly<Record<string, unknown>>;

/** They say nothing of what a text may be. */
const annotations = new Set(
  '$schema $id $comment $defs definitions title description default example examples deprecated readOnly writeOnly discriminator'.split(
    ' ',
  ),
);

/** Keywords of each type of value. */
export const typeKeywords = {
  object: ['properties', 'required', 'additionalProperties', 'propertyNames'],
  array: ['items', 'prefixItems', 'additionalItems', 'minItems', 'maxItems'],
  string: ['minLength', 'maxLength', 'pattern', 'format'],
  number: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  integer: ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
  boolean: [],
  null: [],
} as const satisfies Record<string, readonly string[]>;

export type JsonType = keyof typeof typeKeywords;

/** Each of these stands alone, beside annotations; `enum` and `const` also beside `type`. */
export const wholeKeywords = ['$ref', 'anyOf', 'oneOf', 'allOf', 'enum', 'const'] as const;

const known: readonly string[] = ['type', ...wholeKeywords, ...new Set(Object.values(typeKeywords).flat())];

/** What cannot be done with a schema, and where: `$.properties.age.multipleOf`. */
export function schemaError(place: string, problem: string): DarkroomError {
  return new DarkroomError('invalid_request', 'text.schema-grammar', `${place}: ${problem}`);
}

/**
 * The keywords of a schema that say what a text may be.
 *
 * @throws DarkroomError `invalid_request` naming one that is not known, and its place.
 */
export function constrainingKeywords(schema: Schema, place: string): string[] {
  return Object.keys(schema).filter((keyword) => {
    if (annotations.has(keyword) || keyword.startsWith('x-')) return false;
    // Said by many who mean nothing by it.
    if ((keyword === 'uniqueItems' || keyword === 'nullable') && schema[keyword] === false) return false;
    if (known.includes(keyword)) return true;
    throw schemaError(`${place}.${keyword}`, `is not supported; of JSON Schema there are ${known.join(', ')}`);
  });
}

/** A count that a keyword says. */
export function countOf(schema: Schema, keyword: string, place: string, otherwise: number): number {
  const value = schema[keyword] ?? otherwise;
  if (value === otherwise || (Number.isInteger(value) && (value as number) >= 0 && (value as number) < 2 ** 31))
    return value as number;
  throw schemaError(`${place}.${keyword}`, `is ${shortJson(value)}, expected a whole number, at least 0`);
}

/** @throws DarkroomError if nothing is between two borders. */
export function checkOrder(
  least: number,
  most: number,
  { place, keywords }: { place: string; keywords: string },
): void {
  if (least > most) throw schemaError(place, `${keywords} leave nothing: ${least} is more than ${most}`);
}

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The types that a value is of. */
export function typesOf(value: unknown): JsonType[] {
  if (value === null) return ['null'];
  if (Array.isArray(value)) return ['array'];
  if (typeof value === 'number') return Number.isInteger(value) ? ['integer', 'number'] : ['number'];
  return [typeof value as JsonType];
}

/** A value as errors say it. */
export function shortJson(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}
