import { GrammarProblem, shortJson } from './grammar-problem.ts';
import { regexSource } from './regex-source.ts';
import { stringFormats } from './string-formats.ts';
import type { SchemaCounts } from './schema-limits.ts';

export type Schema = Readonly<Record<string, unknown>>;
/** Keywords of the prepared schema. */
type Part = Readonly<Record<string, unknown>>;
/** Prepares a subschema; `step` is its path below the current schema. */
type Child = (value: unknown, step: string) => unknown;

const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'];
const numbers = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf'];
/** Patterns that libraries emit for a format, and replacements without lookahead. A replacement matches less. */
const knownPatterns = new Map([
  [
    String.raw`^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$`,
    String.raw`^[A-Za-z0-9_+-]+(\.[A-Za-z0-9_+-]+)*@([A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z]{2,}$`,
  ],
  [
    String.raw`^(?=.{1,253}\.?$)[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[-0-9a-zA-Z]{0,61}[0-9a-zA-Z])?)*\.?$`,
    String.raw`^[a-z0-9]{1,30}(-[a-z0-9]{1,20})?(\.[a-z0-9]{1,30}(-[a-z0-9]{1,20})?){0,3}$`,
  ],
]);

export function isSchema(value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value of `type` as a list. Expands `any` (older drafts) to all types. */
export function typeList(value: unknown, path: string): string[] {
  const names: unknown[] = [value].flat();
  if (names.includes('any')) return types;
  for (const name of names)
    if (typeof name !== 'string' || !types.includes(name))
      throw new GrammarProblem(`is ${shortJson(name)}, expected some of ${types.join(', ')}`, path);
  if (names.length === 0) throw new GrammarProblem('is an empty list', path);
  // `number` includes `integer`.
  return (names as string[]).filter((name) => name !== 'integer' || !names.includes('number'));
}

/** Converts an array keyword, or a limit on a length or count; returns {} for other keywords. */
export function arrayKeywords(schema: Schema, keyword: string, path: string, child: Child): Part {
  const value = schema[keyword];
  const list = (items: readonly unknown[]) => items.map((item, at) => child(item, `${keyword}.${at}`));
  switch (keyword) {
    case 'items':
      return Array.isArray(value) ? { prefixItems: list(value) } : { items: child(value, keyword) };
    case 'additionalItems':
      return Array.isArray(schema['items']) ? { items: child(value, keyword) } : {};
    case 'prefixItems':
      if (!Array.isArray(value)) throw new GrammarProblem(`is ${shortJson(value)}, expected a list`, path);
      return { prefixItems: list(value) };
    case 'minItems':
    case 'maxItems':
    case 'minLength':
    case 'maxLength':
    case 'minProperties':
    case 'maxProperties':
      return { [keyword]: countOf(value, path) };
    default:
      return {};
  }
}

function countOf(value: unknown, path: string): number {
  if (Number.isInteger(value) && (value as number) >= 0) return Math.min(value as number, 2 ** 31 - 1);
  throw new GrammarProblem(`is ${shortJson(value)}, expected a whole number, at least 0`, path);
}

/** Converts a number keyword; returns {} for others. Draft 4: `exclusiveMinimum: true` makes `minimum` exclusive. */
export function numberKeywords(schema: Schema, keyword: string, path: string): Part {
  if (!numbers.includes(keyword)) return {};
  const value = schema[keyword];
  const inclusive = { exclusiveMinimum: 'minimum', exclusiveMaximum: 'maximum' }[keyword];
  if (inclusive !== undefined && typeof value === 'boolean') {
    const bound = schema[inclusive];
    return value && typeof bound === 'number' ? { [keyword]: bound } : {};
  }
  if (typeof value !== 'number' || !Number.isFinite(value))
    throw new GrammarProblem(`is ${shortJson(value)}, expected a number`, path);
  if (keyword === 'multipleOf' && value <= 0)
    throw new GrammarProblem(`is ${shortJson(value)}, expected a number above 0`, path);
  return { [keyword]: value };
}

/** Converts `pattern` or `format`; returns {} for other keywords. */
export function stringKeywords(schema: Schema, keyword: string, path: string, counts?: SchemaCounts): Part {
  const value = schema[keyword];
  if (keyword === 'format') return formatPart(value, 'pattern' in schema);
  if (keyword !== 'pattern') return {};
  if (typeof value !== 'string') throw new GrammarProblem(`is ${shortJson(value)}, expected a text`, path);
  counts?.countNames([value]);
  return { pattern: patternSource(value, path, false) };
}

/** Translates a pattern. @param searched true if a match anywhere suffices, as for names in `patternProperties`. */
export function patternSource(pattern: string, path: string, searched: boolean): string {
  try {
    return `^${regexSource(knownPatterns.get(pattern) ?? pattern, searched)}$`;
  } catch (error) {
    throw error instanceof GrammarProblem ? new GrammarProblem(error.message, path) : error;
  }
}

/** Converts a format to a pattern. If the schema also has a `pattern`, a string must match both. */
function formatPart(format: unknown, hasPattern: boolean): Part {
  const pattern = stringFormats.get(String(format));
  if (pattern === undefined) return {};
  if (!hasPattern) return { pattern: `^${regexSource(pattern)}$` };
  // Drop our pattern for `uri`: the schema's own pattern often matches URIs that ours does not.
  return format === 'uri' ? { format } : { allOf: [{ type: 'string', pattern: `^${regexSource(pattern)}$` }] };
}
