import { GrammarProblem } from './grammar-problem.ts';
import { isSchema, type Schema } from './schema-keywords.ts';

const prefix = '#/$defs/';

/**
 * Checks that a prepared schema allows a finite value, which it does not if it requires itself within itself.
 *
 * @param definitions referenced schemas by name.
 */
export function checkEnds(root: unknown, definitions: Schema): void {
  const ending = new Set<string>();
  const names = Object.keys(definitions);
  // Each pass finds at least one more; few schemas have long chains of definitions.
  for (let known = -1; known < ending.size && ending.size < names.length;) {
    known = ending.size;
    for (const name of names) if (!ending.has(name) && canEnd(definitions[name], ending)) ending.add(name);
    if (names.length > 300) break;
  }
  if (names.length <= 300 && !canEnd(root, ending))
    throw new GrammarProblem('requires itself within itself: no value of it has an end', '$');
}

/** Returns whether a schema allows a finite value. @param ending names of definitions that do. */
function canEnd(schema: unknown, ending: ReadonlySet<string>): boolean {
  if (!isSchema(schema) || 'enum' in schema || 'const' in schema) return true;
  const { $ref, allOf, anyOf, oneOf, type } = schema;
  const all = (list: unknown) => !Array.isArray(list) || list.every((part) => canEnd(part, ending));
  const some = (list: unknown) => !Array.isArray(list) || list.some((part) => canEnd(part, ending));
  if (typeof $ref === 'string' && !ending.has($ref.slice(prefix.length))) return false;
  if (!all(allOf) || !some(anyOf) || !some(oneOf)) return false;
  const types: unknown[] = [type ?? 'null'].flat();
  return types.some((name) => {
    if (name === 'object') return all(neededMembers(schema));
    return name === 'array' ? all(neededItems(schema)) : true;
  });
}

/** Returns the schemas of required properties. */
function neededMembers({ properties, required, additionalProperties }: Schema): unknown[] {
  const named = isSchema(properties) ? properties : {};
  const names = Array.isArray(required) ? (required as string[]) : [];
  return names.map((name) => (Object.hasOwn(named, name) ? named[name] : additionalProperties));
}

/** Returns the schemas of required array items. */
function neededItems({ prefixItems = [], items, minItems = 0 }: Schema): unknown[] {
  return [...(prefixItems as unknown[]), items].slice(0, Number(minItems));
}
