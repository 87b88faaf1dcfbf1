/**
 * Prepares a client's JSON Schema for llguidance: drops annotations, converts older drafts to 2020-12, moves references
 * into `$defs`, translates patterns, and rejects unsupported keywords with their path.
 */
import { GrammarProblem, shortJson } from './grammar-problem.ts';
import { checkEnds } from './endless-schemas.ts';
import { expandConditions } from './schema-conditions.ts';
import { SchemaCounts } from './schema-limits.ts';
import {
  arrayKeywords,
  isSchema,
  numberKeywords,
  patternSource,
  type Schema,
  stringKeywords,
  typeList,
} from './schema-keywords.ts';
import { SchemaReferences } from './schema-references.ts';

/** Keywords that constrain a value and are not supported. */
const unsupported = ['if', 'contains', 'uniqueItems', 'unevaluatedItems', '$dynamicRef', '$recursiveRef'] as const;

/** @throws GrammarProblem whose message starts with the path: `$.properties.age.contains`. */
export function prepareSchema(schema: unknown): Schema {
  if (schema === true) return {};
  if (schema === false) throw new GrammarProblem('is false: it allows nothing', '$');
  return new SchemaReader(schema).read();
}

class SchemaReader {
  readonly #root: unknown;
  readonly #counts = new SchemaCounts();
  readonly #references: SchemaReferences;
  /** Names in `$defs` of referenced schemas. */
  readonly #names = new Map<unknown, string>();
  readonly #open: { schema: unknown; name: string; path: string }[] = [];

  constructor(root: unknown) {
    this.#root = root;
    this.#references = new SchemaReferences(root);
  }

  read(): Schema {
    const root = this.#value(this.#root, '$', 0);
    const definitions: Record<string, unknown> = {};
    for (let next = this.#open.pop(); next !== undefined; next = this.#open.pop())
      definitions[next.name] = this.#value(next.schema, next.path, 0);
    checkEnds(root, definitions);
    return { ...(isSchema(root) ? root : {}), ...(this.#names.size > 0 && { $defs: definitions }) };
  }

  #value(schema: unknown, path: string, depth: number): unknown {
    this.#counts.countSchema(path, depth);
    if (typeof schema === 'boolean') return schema;
    if (!isSchema(schema)) throw new GrammarProblem(`is ${shortJson(schema)}, expected a schema`, path);
    const expanded = expandConditions(schema, path, (ref) => this.#references.find(ref, `${path}.$ref`));
    for (const keyword of unsupported)
      if (keyword in expanded && constrains(expanded, keyword))
        throw new GrammarProblem('is not supported', `${path}.${keyword}`);
    const child = (value: unknown, step: string) => this.#value(value, `${path}.${step}`, depth + 1);
    const out: Record<string, unknown> = {};
    // Keep the order: properties are generated in the order of the schema.
    for (const keyword of Object.keys(expanded)) this.#keyword(expanded, keyword, { path, out, child });
    return out;
  }

  #keyword(schema: Schema, keyword: string, { path, out, child }: Reading): void {
    const value = schema[keyword];
    const at = `${path}.${keyword}`;
    switch (keyword) {
      case 'type':
        out['type'] = typeList(value, at);
        break;
      case '$ref':
        out['$ref'] = this.#reference(value, at);
        break;
      case 'enum':
      case 'const':
        out[keyword] = this.#values(value, keyword, at);
        break;
      case 'anyOf':
      case 'allOf':
      case 'oneOf':
        merge(out, { [keyword]: listOf(value, at).map((each, index) => child(each, `${keyword}.${index}`)) });
        break;
      case 'properties':
      case 'patternProperties':
        out[keyword] = this.#members(value, keyword, at, child);
        break;
      case 'required':
        if (!Array.isArray(value)) break;
        this.#counts.countNames(value);
        if (!value.every((name) => typeof name === 'string'))
          throw new GrammarProblem(`is ${shortJson(value)}, expected names`, at);
        out['required'] = [...new Set(value)];
        break;
      case 'additionalProperties':
        out[keyword] = child(value, keyword);
        break;
      default:
        merge(out, {
          ...arrayKeywords(schema, keyword, at, child),
          ...numberKeywords(schema, keyword, at),
          ...stringKeywords(schema, keyword, at, this.#counts),
        });
    }
  }

  #reference(ref: unknown, path: string): string {
    if (typeof ref !== 'string') throw new GrammarProblem(`is ${shortJson(ref)}, expected a reference`, path);
    const schema = this.#references.find(ref, path);
    let name = this.#names.get(schema);
    if (name === undefined) {
      name = `d${this.#names.size}`;
      this.#names.set(schema, name);
      this.#open.push({ schema, name, path: ref.startsWith('#/') ? `$${ref.slice(1).replaceAll('/', '.')}` : '$' });
    }
    return `#/$defs/${name}`;
  }

  #values(value: unknown, keyword: 'enum' | 'const', path: string): unknown {
    const values = keyword === 'const' ? [value] : listOf(value, path);
    this.#counts.countValues(values);
    return value;
  }

  #members(value: unknown, keyword: string, path: string, child: Reading['child']): Schema {
    if (!isSchema(value)) throw new GrammarProblem(`is ${shortJson(value)}, expected an object`, path);
    this.#counts.countNames(Object.keys(value), true);
    const members = Object.entries(value).map(([name, schema]) => {
      const key = keyword === 'properties' ? name : patternSource(name, `${path}.${name}`, true);
      return [key, child(schema, `${keyword}.${name}`)];
    });
    return Object.fromEntries(members) as Schema;
  }
}

interface Reading {
  readonly path: string;
  readonly out: Record<string, unknown>;
  readonly child: (value: unknown, step: string) => unknown;
}

/** Adds a part; concatenates `allOf`. */
function merge(out: Record<string, unknown>, part: Schema): void {
  const all = [out['allOf'], part['allOf']].filter((list) => Array.isArray(list));
  Object.assign(out, part, all.length > 1 && { allOf: all.flat() });
}

/** Returns whether a keyword constrains anything. */
function constrains(schema: Schema, keyword: (typeof unsupported)[number]): boolean {
  if (keyword === 'uniqueItems') return schema[keyword] === true;
  return keyword !== 'if' || 'then' in schema || 'else' in schema;
}

function listOf(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value) || value.length === 0)
    throw new GrammarProblem(`is ${shortJson(value)}, expected a list`, path);
  return value;
}
