import { isSchema, type Schema } from './schema-keywords.ts';

interface DisjointOptions {
  /** Constraints that both schemas share: `{ type, required }`. */
  base: Schema;
  /** Resolves a reference. */
  find: (ref: string) => unknown;
}

/** Returns true if provably no value fits both: by types, by values, or by a property that both require. */
export function areDisjoint(left: unknown, right: unknown, options: DisjointOptions, depth = 0): boolean {
  const [one, other] = [followed(left, options), followed(right, options)];
  if (one === false || other === false) return true;
  if (!isSchema(one) || !isSchema(other) || depth > 4) return false;
  const [oneValues, otherValues] = [valuesOf(one), valuesOf(other)];
  if (oneValues && otherValues) return [...oneValues].every((value) => !otherValues.has(value));
  const [oneTypes, otherTypes] = [typesOf(one, options.base), typesOf(other, options.base)];
  if (oneTypes && otherTypes && !oneTypes.some((type) => otherTypes.includes(type))) return true;
  if (areApart(one, other) || areApart(other, one)) return isOnly('number', oneTypes, otherTypes);
  if (!isOnly('object', oneTypes, otherTypes)) return false;
  const common = namesOf(options.base);
  const [oneNames, otherNames] = [
    [...namesOf(one), ...common],
    [...namesOf(other), ...common],
  ];
  const further = { ...options, base: {} };
  return (
    forbids(one, otherNames) ||
    forbids(other, oneNames) ||
    oneNames.some(
      (name) =>
        otherNames.includes(name) && areDisjoint(propertyOf(one, name), propertyOf(other, name), further, depth + 1),
    )
  );
}

/** Follows a chain of references to its schema. */
function followed(schema: unknown, { find }: DisjointOptions): unknown {
  let found = schema;
  for (let steps = 0; steps < 16 && isSchema(found) && typeof found['$ref'] === 'string'; steps++)
    found = find(found['$ref']);
  return found;
}

/** Returns the values of `enum` or `const` as JSON; undefined without them or if one is an object. */
function valuesOf(schema: Schema): Set<string> | undefined {
  const values = 'const' in schema ? [schema['const']] : schema['enum'];
  // Objects have several JSON texts, so they cannot be compared by their JSON.
  if (!Array.isArray(values) || values.some((value) => typeof value === 'object' && value !== null)) return undefined;
  return new Set(values.map((value) => JSON.stringify(value)));
}

/** Returns the allowed types, with `integer` as `number`; undefined for any type. */
function typesOf(schema: Schema, base: Schema): string[] | undefined {
  const values = 'const' in schema ? [schema['const']] : schema['enum'];
  const type = schema['type'] ?? base['type'];
  if (Array.isArray(values)) return values.map((value) => typeOfValue(value));
  if (type === undefined) return undefined;
  const names: unknown[] = [type].flat();
  return names.flatMap((name) => (name === 'integer' ? 'number' : typeof name === 'string' ? name : []));
}

function typeOfValue(value: unknown): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value;
}

function isOnly(type: string, one: readonly string[] | undefined, other: readonly string[] | undefined): boolean {
  const both = [one, other].map((types) => types?.every((name) => name === type));
  return both.includes(true);
}

/** Returns whether all numbers of `low` are less than those of `high`. */
function areApart(low: Schema, high: Schema): boolean {
  const { maximum, exclusiveMaximum } = low;
  const { minimum, exclusiveMinimum } = high;
  if (numeric(maximum) && numeric(minimum) && maximum < minimum) return true;
  if (numeric(exclusiveMaximum) && numeric(minimum) && exclusiveMaximum <= minimum) return true;
  return numeric(maximum) && numeric(exclusiveMinimum) && maximum <= exclusiveMinimum;
}

function numeric(value: unknown): value is number {
  return typeof value === 'number';
}

function namesOf(schema: Schema): string[] {
  const { required } = schema;
  return Array.isArray(required) ? required.filter((name) => typeof name === 'string').slice(0, 64) : [];
}

/** Returns whether a schema forbids one of the names: by `false`, or by `additionalProperties: false`. */
function forbids(schema: Schema, names: readonly string[]): boolean {
  const { properties, additionalProperties, patternProperties } = schema;
  const known = isSchema(properties) ? properties : {};
  const isClosed = additionalProperties === false && patternProperties === undefined;
  return names.some((name) => (Object.hasOwn(known, name) ? known[name] === false : isClosed));
}

function propertyOf(schema: Schema, name: string): unknown {
  const { properties } = schema;
  return isSchema(properties) && Object.hasOwn(properties, name) ? properties[name] : undefined;
}
