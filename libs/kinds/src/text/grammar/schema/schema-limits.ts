import { GrammarProblem, shortJson } from './grammar-problem.ts';

/** Limits of one schema. OpenAI's: 10 levels, 5,000 properties, 1,000 enum values, 120,000 characters of names. */
export const schemaLimits = {
  depth: 64,
  properties: 5000,
  enumValues: 10_000,
  nameCharacters: 250_000,
  schemas: 30_000,
} as const;

/** Counts the parts of a schema while it is read; throws at the first limit. */
export class SchemaCounts {
  #properties = 0;
  #enumValues = 0;
  #characters = 0;
  #schemas = 0;

  countSchema(path: string, depth: number): void {
    if (depth > schemaLimits.depth)
      throw new GrammarProblem(`is nested more than ${schemaLimits.depth} levels deep`, path);
    this.#schemas = check(this.#schemas + 1, schemaLimits.schemas, 'schemas');
  }

  countNames(names: readonly unknown[], isProperty = false): void {
    if (isProperty) this.#properties = check(this.#properties + names.length, schemaLimits.properties, 'properties');
    for (const name of names) if (typeof name === 'string') this.#countCharacters(name.length);
  }

  countValues(values: readonly unknown[]): void {
    this.#enumValues = check(this.#enumValues + values.length, schemaLimits.enumValues, 'values of enum and const');
    for (const value of values) this.#countCharacters(typeof value === 'string' ? value.length : lengthOf(value, 0));
  }

  #countCharacters(length: number): void {
    const name = 'characters of names, patterns and values';
    this.#characters = check(this.#characters + length, schemaLimits.nameCharacters, name);
  }
}

function check(count: number, limit: number, name: string): number {
  if (count > limit) throw new GrammarProblem(`the schema is too complex: more than ${limit} ${name}`, '$');
  return count;
}

/** Estimates the characters of a value as JSON. */
function lengthOf(value: unknown, depth: number): number {
  if (depth > schemaLimits.depth) throw new GrammarProblem(`${shortJson(value)} is nested too deep`, '$');
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 4;
  let length = 2;
  for (const [name, one] of Object.entries(value)) length += name.length + 4 + lengthOf(one, depth + 1);
  return length;
}
