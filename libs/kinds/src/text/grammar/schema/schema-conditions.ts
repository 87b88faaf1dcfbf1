/** Rewrites conditions of a schema into keywords that llguidance supports; the result never allows more values. */
import { GrammarProblem } from './grammar-problem.ts';
import { areDisjoint } from './disjoint-schemas.ts';
import { isSchema, type Schema, typeList } from './schema-keywords.ts';

type Find = (ref: string) => unknown;

/** Maximum dependencies of one schema: each doubles the number of branches. */
const maxDependencies = 6;

/** Rewrites `not`, `dependencies`, `propertyNames`, `unevaluatedProperties` and overlapping `oneOf`. */
export function expandConditions(schema: Schema, path: string, find: Find): Schema {
  let expanded = schema;
  if ('oneOf' in expanded) expanded = withoutOneOf(expanded, path, find);
  if ('not' in expanded) expanded = withoutNot(expanded, path);
  if ('propertyNames' in expanded) expanded = withoutPropertyNames(expanded, path);
  if ('unevaluatedProperties' in expanded) expanded = withoutUnevaluated(expanded, path);
  for (const keyword of ['dependencies', 'dependentRequired', 'dependentSchemas'])
    if (keyword in expanded) expanded = withoutDependencies(expanded, keyword, path);
  return expanded;
}

function without(schema: Schema, ...keywords: readonly string[]): Schema {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !keywords.includes(name)));
}

/** Adds schemas that values must fit. */
function and(schema: Schema, ...others: readonly Schema[]): Schema {
  const all = Array.isArray(schema['allOf']) ? (schema['allOf'] as unknown[]) : [];
  return { ...schema, allOf: [...all, ...others] };
}

/** Replaces `oneOf` by `anyOf` if its branches exclude each other; makes branches that only require names exclusive. */
function withoutOneOf(schema: Schema, path: string, find: Find): Schema {
  const branches = schema['oneOf'];
  if (!Array.isArray(branches) || branches.length === 0) return schema;
  const rest = without(schema, 'oneOf');
  const base = { type: rest['type'], required: rest['required'] };
  const clash = overlapOf(branches, base, find);
  const rewritten = clash === undefined ? branches : branchesOfNames(branches, schema);
  if (rewritten === undefined)
    throw new GrammarProblem(
      `is supported where no value fits two of its schemas, and one may fit ${clash!.join(' and ')}: use anyOf`,
      `${path}.oneOf`,
    );
  const typed = clash === undefined ? rest : { ...rest, type: 'object' };
  return 'anyOf' in rest ? and(typed, { anyOf: rewritten }) : { ...typed, anyOf: rewritten };
}

/** Returns the indexes of two branches that may overlap; undefined if all are disjoint. */
function overlapOf(branches: readonly unknown[], base: Schema, find: Find): [number, number] | undefined {
  // Comparing each branch with each takes quadratic time.
  if (branches.length > maxCompared) return [0, 1];
  for (const [at, left] of branches.entries())
    for (let other = at + 1; other < branches.length; other++)
      if (!areDisjoint(left, branches[other], { base, find })) return [at, other];
  return undefined;
}

const maxCompared = 256;

/** For branches `{required}`: forbids in each a property of every other one; returns undefined for other branches. */
function branchesOfNames(branches: readonly unknown[], schema: Schema): Schema[] | undefined {
  const names = branches.map((branch) => requiredOnly(branch));
  if (names.includes(undefined) || branches.length > 32) return undefined;
  const made = names.flatMap((required, at) => {
    const others = names.filter((_, other) => other !== at);
    const forbidden = others.map((other) => other!.find((name) => !required!.includes(name)));
    if (forbidden.includes(undefined)) return [];
    const { not } = branches[at] as Schema;
    return [{ ...absent(forbidden as string[], schema), required, ...(not !== undefined && { not }) }];
  });
  return made.length === 0 ? undefined : made;
}

/** Returns the required names if the schema has no other constraint than `not`; undefined otherwise. */
function requiredOnly(schema: unknown): string[] | undefined {
  if (!isSchema(schema) || !Array.isArray(schema['required'])) return undefined;
  const isPlain = Object.keys(schema).every(
    (name) => ['required', 'not', 'description', 'title'].includes(name) || schema[name] === 'object',
  );
  return isPlain ? (schema['required'] as string[]) : undefined;
}

function withoutNot(schema: Schema, path: string): Schema {
  const { not } = schema;
  const rest = without(schema, 'not');
  if (not === false) return rest;
  if (isSchema(not)) {
    const keywords = Object.keys(not);
    const [only] = keywords;
    if (keywords.length === 1 && only === 'required' && Array.isArray(not['required'])) {
      const names = not['required'] as string[];
      const isObject = [schema['type']].flat().includes('object') && [schema['type']].flat().length === 1;
      if (isObject && names.length > 0 && names.length <= 32)
        return and(rest, { anyOf: names.map((name) => absent([name], schema)) });
    }
    if (keywords.length === 1 && only === 'type') {
      const excluded = typeList(not['type'], `${path}.not.type`);
      const given = rest['type'] === undefined ? typeList('any', path) : typeList(rest['type'], `${path}.type`);
      const left = given.filter((name) => !excluded.includes(name));
      if (left.length > 0 && !excluded.includes('integer'))
        return { ...rest, type: excluded.includes('number') ? left.filter((name) => name !== 'integer') : left };
    }
  }
  throw new GrammarProblem('is not supported', `${path}.not`);
}

function withoutPropertyNames(schema: Schema, path: string): Schema {
  const { propertyNames: names, additionalProperties: other = true } = schema;
  const rest = without(schema, 'propertyNames', 'additionalProperties');
  const at = `${path}.propertyNames`;
  if (names === true) return without(schema, 'propertyNames');
  if (!isSchema(names)) throw new GrammarProblem('is not supported', at);
  const constraints = without(names, 'type', 'title', 'description', '$comment');
  const [only, ...more] = Object.keys(constraints);
  if (only === undefined) return without(schema, 'propertyNames');
  for (const keyword of ['properties', 'required', 'patternProperties'])
    if (keyword in schema) throw new GrammarProblem(`is not supported beside ${keyword}`, at);
  if (more.length === 0 && only === 'enum' && Array.isArray(constraints['enum'])) {
    const known = constraints['enum'].filter((name) => typeof name === 'string');
    return { ...rest, properties: Object.fromEntries(known.map((name) => [name, other])), additionalProperties: false };
  }
  if (more.length === 0 && only === 'pattern' && typeof constraints['pattern'] === 'string')
    return { ...rest, patternProperties: { [constraints['pattern']]: other }, additionalProperties: false };
  throw new GrammarProblem('is supported as pattern or enum', at);
}

function withoutUnevaluated(schema: Schema, path: string): Schema {
  const { unevaluatedProperties: other } = schema;
  const rest = without(schema, 'unevaluatedProperties');
  if (other === true) return rest;
  const applicators = ['$ref', 'allOf', 'anyOf', 'oneOf', 'if', 'dependentSchemas'].filter((name) => name in schema);
  if (applicators.length > 0)
    throw new GrammarProblem(`is not supported beside ${applicators[0]}`, `${path}.unevaluatedProperties`);
  return 'additionalProperties' in rest ? rest : { ...rest, additionalProperties: other };
}

/** Rewrites each dependency: either the property is absent, or the dependent schema holds. */
function withoutDependencies(schema: Schema, keyword: string, path: string): Schema {
  const dependencies = schema[keyword];
  const rest = without(schema, keyword);
  if (!isSchema(dependencies)) throw new GrammarProblem('is not an object', `${path}.${keyword}`);
  const entries = Object.entries(dependencies).filter(([, needed]) => needed !== true && !isEmpty(needed));
  if (entries.length === 0) return rest;
  const only = [schema['type']].flat();
  if (entries.length > maxDependencies || only.length !== 1 || only[0] !== 'object')
    throw new GrammarProblem(
      `is supported beside "type": "object", with ${maxDependencies} at most`,
      `${path}.${keyword}`,
    );
  const conditions = entries.map(([name, needed]) => {
    const present = Array.isArray(needed) ? { type: 'object', required: needed } : needed;
    return { anyOf: [present, absent([name], schema)] };
  });
  return and(rest, ...conditions);
}

/** Returns a schema of objects without these properties; keeps it open to others if the schema has no `properties`. */
function absent(names: readonly string[], schema: Schema): Schema {
  const properties = Object.fromEntries(names.map((name) => [name, false]));
  return { type: 'object', properties, ...(!('properties' in schema) && { additionalProperties: true }) };
}

function isEmpty(needed: unknown): boolean {
  return Array.isArray(needed) ? needed.length === 0 : isSchema(needed) && Object.keys(needed).length === 0;
}
