import { isSchema, type Schema, schemaError } from './schema-keywords.ts';
import { placeOf, type SchemaReferences } from './schema-references.ts';

/** References of a schema at most. */
const maxReferences = 1000;

/**
 * Checks that a value can be written to its end of each schema that is referred to, and of the whole: not if it requires
 * itself within itself, as a list whose every entry must have a next one.
 *
 * @throws DarkroomError `invalid_request` with the place of one that cannot end.
 */
export function checkEnds(references: SchemaReferences, used: Iterable<string>): void {
  const refs = ['#', ...used];
  if (refs.length > maxReferences)
    throw schemaError('$', `has ${refs.length} references, expected at most ${maxReferences}`);
  const ending = new Set<string>();
  for (let known = -1; known < ending.size;) {
    known = ending.size;
    for (const ref of refs) if (!ending.has(ref) && canEnd(references.find(ref, '$'), ending)) ending.add(ref);
  }
  const endless = refs.find((ref) => !ending.has(ref));
  if (endless !== undefined)
    throw schemaError(placeOf(endless), 'requires itself within itself: no text of it has an end');
}

/** @param ending references to schemas that can. */
function canEnd(schema: unknown, ending: ReadonlySet<string>): boolean {
  if (!isSchema(schema) || 'enum' in schema || 'const' in schema) return true;
  if (typeof schema['$ref'] === 'string') return ending.has(schema['$ref']);
  const branches = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf'];
  if (Array.isArray(branches)) return branches.some((branch) => canEnd(branch, ending));
  const types: unknown = schema['type'] ?? ['object', 'array'];
  const others = [types].flat().some((type) => type !== 'object' && type !== 'array');
  return others || neededBy(schema).every((needed) => canEnd(needed, ending));
}

/** Schemas of what an object or an array must have. */
function neededBy(schema: Schema): unknown[] {
  const { properties = {}, required = [], items, prefixItems = [], minItems = 0, type } = schema;
  const named = isSchema(properties) ? properties : {};
  const members = (required as string[]).map((name) => named[name] ?? schema['additionalProperties']);
  const prefix = (Array.isArray(items) ? items : prefixItems) as unknown[];
  const rest = Array.isArray(items) ? schema['additionalItems'] : items;
  const entries = [...prefix, rest].slice(0, Number(minItems));
  return [...(type === 'array' ? [] : members), ...(type === 'object' ? [] : entries)];
}
