import { jsonText } from './json-grammar.ts';
import { isSchema, type Schema, schemaError, typesOf } from './schema-keywords.ts';

interface DisjointOptions {
  place: string;
  /** What a reference leads to. */
  find: (ref: string, place: string) => unknown;
}

/** Schemas of which each is compared with each. */
const maxBranches = 256;

/**
 * Checks that no value fits two branches of `oneOf`: by their types, their values, or those of a property that both require.
 *
 * @throws DarkroomError `invalid_request` naming two that may fit the same.
 */
export function checkDisjoint(branches: readonly unknown[], { place, find }: DisjointOptions): void {
  if (branches.length > maxBranches)
    throw schemaError(place, `has ${branches.length} schemas, expected at most ${maxBranches}: say anyOf`);
  const schemas = branches.map((branch, at) => followed(branch, { place: `${place}.${at}`, find }));
  for (const [at, left] of schemas.entries())
    for (const [further, right] of schemas.slice(at + 1).entries()) {
      if (areDisjoint(left, right)) continue;
      const both = `${at} and ${at + 1 + further}`;
      throw schemaError(place, `is supported where no value fits two of it, and one may fit ${both}: say anyOf`);
    }
}

/** The schema that a chain of references leads to. */
function followed(schema: unknown, { place, find }: DisjointOptions): unknown {
  let found = schema;
  for (let steps = 0; steps < 64 && isSchema(found) && typeof found['$ref'] === 'string'; steps++)
    found = find(found['$ref'], place);
  return found;
}

function areDisjoint(left: unknown, right: unknown): boolean {
  if (!isSchema(left) || !isSchema(right)) return false;
  const [leftValues, rightValues] = [valuesOf(left), valuesOf(right)];
  if (leftValues && rightValues) return !leftValues.some((value) => rightValues.includes(value));
  const [leftTypes, rightTypes] = [allowedTypes(left), allowedTypes(right)];
  if (leftTypes && rightTypes && !leftTypes.some((type) => rightTypes.includes(type))) return true;
  const shared = requiredOf(left).filter((name) => requiredOf(right).includes(name));
  return shared.some((name) => areDisjoint(propertyOf(left, name), propertyOf(right, name)));
}

/** As JSON; undefined if it does not list them. */
function valuesOf(schema: Schema): string[] | undefined {
  const values = 'const' in schema ? [schema['const']] : schema['enum'];
  return Array.isArray(values) ? values.map(jsonText) : undefined;
}

/** An integer is a number too. */
function allowedTypes(schema: Schema): string[] | undefined {
  const { type } = schema;
  const values = 'const' in schema ? [schema['const']] : schema['enum'];
  if (Array.isArray(values)) return values.flatMap(typesOf);
  if (type === undefined) return undefined;
  const names: unknown[] = [type].flat();
  return names.flatMap((name) => (name === 'number' ? ['number', 'integer'] : typeof name === 'string' ? name : []));
}

function requiredOf(schema: Schema): unknown[] {
  // A value of another type need not have it.
  return schema['type'] === 'object' && Array.isArray(schema['required']) ? schema['required'] : [];
}

function propertyOf(schema: Schema, name: unknown): unknown {
  const properties = schema['properties'];
  return isSchema(properties) && typeof name === 'string' ? properties[name] : undefined;
}
