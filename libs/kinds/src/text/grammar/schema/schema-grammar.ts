/**
 * JSON Schema as EBNF. xgrammar has a converter of its own, which writes texts that are no JSON (raw control characters where
 * there is a `maxLength`), borders of numbers that do not hold, and passes over what it does not know.
 *
 * What is written is a part of what a schema allows: JSON on one line, properties in the order of the schema. Where a schema
 * names `properties` and says nothing of others, there are no others; a `pattern` is the whole string.
 */
import { choice, GrammarRules, literal, sequence } from './grammar-rules.ts';
import { anyRule, json, jsonText, listOf, otherNameRule, stringRule } from './json-grammar.ts';
import { numberGrammar } from './number-grammar.ts';
import { placeOf, SchemaReferences } from './schema-references.ts';
import { stringGrammar } from './string-grammar.ts';
import { checkEnds } from './endless-schemas.ts';
import { checkDisjoint } from './disjoint-schemas.ts';
import {
  checkOrder,
  constrainingKeywords,
  countOf,
  type JsonType,
  type Schema,
  schemaError,
} from './schema-keywords.ts';
import { isSchema, shortJson, typeKeywords, typesOf, wholeKeywords } from './schema-keywords.ts';

/** Schemas within schemas at most. */
const maxDepth = 64;
/** Characters of a grammar at most: it travels with its request. */
export const maxGrammarLength = 262_144;

interface Here {
  readonly place: string;
  readonly depth: number;
}

/**
 * The grammar of JSON texts that a schema allows.
 *
 * @throws DarkroomError `invalid_request` whose message begins with the place of what cannot be done:
 * `$.properties.age.multipleOf`.
 */
export function schemaGrammar(schema: unknown): string {
  const text = textOf(schema);
  if (text.length <= maxGrammarLength) return text;
  throw schemaError('$', `is too much: a grammar of ${text.length} characters, expected at most ${maxGrammarLength}`);
}

function textOf(schema: unknown): string {
  try {
    return new SchemaWriter(schema).text();
  } catch (error) {
    // The stack is not endless.
    if (error instanceof RangeError) throw schemaError('$', 'is too deep, or has names that are too long');
    throw error;
  }
}

class SchemaWriter {
  readonly #rules = new GrammarRules();
  readonly #schema: unknown;
  /** Rules of references, by the reference. */
  readonly #ruleOf = new Map<string, string>();
  readonly #references: SchemaReferences;

  constructor(schema: unknown) {
    this.#schema = schema;
    this.#references = new SchemaReferences(schema);
  }

  text(): string {
    const root = this.#value(this.#schema, { place: '$', depth: 0 });
    checkEnds(this.#references, this.#ruleOf.keys());
    return this.#rules.textFrom(root);
  }

  /** A rule for the values of a schema. */
  #value(schema: unknown, here: Here): string {
    return this.#rules.rule(this.#expression(schema, here));
  }

  #expression(schema: unknown, here: Here): string {
    const { place, depth } = here;
    if (depth > maxDepth) throw schemaError(place, `is too deep: expected at most ${maxDepth} schemas in each other`);
    if (schema === true) return anyRule(this.#rules);
    if (schema === false) throw schemaError(place, 'is false, and no text is allowed by that');
    if (!isSchema(schema)) throw schemaError(place, `is ${shortJson(schema)}, expected a schema`);
    const keywords = constrainingKeywords(schema, place);
    const whole = wholeKeywords.find((keyword) => keywords.includes(keyword));
    if (whole === undefined) return this.#typed(schema, keywords, here);
    const beside = keywords.find((keyword) => keyword !== whole && !(keyword === 'type' && isListed(whole)));
    if (beside !== undefined) throw schemaError(`${place}.${beside}`, `is not supported beside ${whole}`);
    const within = { ...here, place: `${place}.${whole}` };
    if (whole === '$ref') return this.#reference(schema[whole], within);
    return isListed(whole) ? listed(schema, whole, place) : this.#combined(schema[whole], whole, within);
  }

  #combined(branches: unknown, keyword: 'anyOf' | 'oneOf' | 'allOf', here: Here): string {
    const { place, depth } = here;
    if (!Array.isArray(branches) || branches.length === 0) throw schemaError(place, 'is no list of schemas');
    if (keyword === 'allOf' && branches.length > 1)
      throw schemaError(place, `has ${branches.length} schemas, and is supported with one: write them as one`);
    if (keyword === 'oneOf') checkDisjoint(branches, { place, find: (ref, at) => this.#references.find(ref, at) });
    const within = (at: number) => ({ ...here, depth: depth + 1, place: `${place}.${at}` });
    return choice(branches.map((branch, at) => this.#value(branch, within(at))));
  }

  #reference(ref: unknown, here: Here): string {
    if (typeof ref !== 'string') throw schemaError(here.place, `is ${shortJson(ref)}, expected a text`);
    const known = this.#ruleOf.get(ref);
    if (known !== undefined) return known;
    const target = this.#references.find(ref, here.place);
    const name = this.#rules.reserve();
    this.#ruleOf.set(ref, name);
    const within = { place: placeOf(ref), depth: here.depth + 1 };
    this.#rules.define(name, this.#expression(target, within));
    return name;
  }

  /** Without a type those are meant that the keywords speak of. */
  #typed(schema: Schema, keywords: readonly string[], here: Here): string {
    const { place } = here;
    if (keywords.length === 0) return anyRule(this.#rules);
    const said = schema['type'] ?? impliedTypes(keywords);
    const types = Array.isArray(said) ? said : [said];
    const unknown = types.find((type) => typeof type !== 'string' || !Object.hasOwn(typeKeywords, type));
    if (unknown !== undefined || types.length === 0)
      throw schemaError(
        `${place}.type`,
        `is ${shortJson(said)}, expected some of ${Object.keys(typeKeywords).join(', ')}`,
      );
    return choice([...new Set(types as JsonType[])].map((type) => this.#ofType(type, schema, here)));
  }

  #ofType(type: JsonType, schema: Schema, here: Here): string {
    switch (type) {
      case 'object':
        return this.#object(schema, here);
      case 'array':
        return this.#array(schema, here);
      case 'string':
        return stringGrammar(this.#rules, schema, here.place);
      case 'number':
      case 'integer':
        return numberGrammar(type, schema, here.place);
      case 'boolean':
      case 'null':
        return json[type];
    }
  }

  #array(schema: Schema, here: Here): string {
    const { place, depth } = here;
    const isTuple = Array.isArray(schema['items']);
    const [first, rest] = isTuple ? (['items', 'additionalItems'] as const) : (['prefixItems', 'items'] as const);
    const prefix = schema[first] ?? [];
    if (!Array.isArray(prefix)) throw schemaError(`${place}.${first}`, `is ${shortJson(prefix)}, expected a list`);
    const more = schema[rest] ?? prefix.length === 0;
    const least = countOf(schema, 'minItems', place, 0);
    const most = Math.min(countOf(schema, 'maxItems', place, Infinity), more === false ? prefix.length : Infinity);
    checkOrder(least, most, { place, keywords: 'minItems, maxItems and items' });
    const within = (step: string) => ({ place: `${place}.${step}`, depth: depth + 1 });
    const items = prefix.slice(0, most).map((item, at) => this.#value(item, within(`${first}.${at}`)));
    const other = most > items.length ? this.#value(more, within(rest)) : undefined;
    if (items.length > 0) return this.#tuple(items, other, { least, most });
    return listOf(this.#rules, other ?? '""', { open: '[', close: ']', least, most });
  }

  /** Items of their own, and then those that are alike. */
  #tuple(
    items: readonly string[],
    other: string | undefined,
    { least, most }: { least: number; most: number },
  ): string {
    const count = items.length;
    const next = other && sequence(['", "', other]);
    let tail = next ? this.#rules.repeat(next, Math.max(least - count, 0), most - count) : '""';
    for (let at = count - 1; at >= 0; at--) {
      const item = sequence([at === 0 ? '' : '", "', items[at]!, tail].filter(Boolean));
      tail = this.#rules.rule(at < least ? item : `(${item})?`);
    }
    return sequence(['"["', tail, '"]"']);
  }

  #object(schema: Schema, here: Here): string {
    const { place, depth } = here;
    const { properties, required, other } = membersOf(schema, place);
    const within = (step: string) => ({ place: `${place}.${step}`, depth: depth + 1 });
    const members = [...properties].map(([name, value]) => {
      const step = Object.hasOwn(schema['properties'] ?? {}, name) ? `properties.${name}` : 'required';
      return { text: sequence([literal(`${JSON.stringify(name)}: `), this.#value(value, within(step))]), name };
    });
    const extra = this.#otherMember(schema, [...properties.keys()], { other, within });
    let tail = extra === undefined ? '""' : `${this.#rules.rule(sequence(['", "', extra]))}*`;
    let head = extra === undefined ? '""' : `(${sequence([extra, tail])})?`;
    for (const { text, name } of members.toReversed()) {
      const isRequired = required.has(name);
      const first = sequence([text, tail]);
      head = this.#rules.rule(isRequired ? first : choice([first, head]));
      const next = sequence(['", "', text]);
      tail = this.#rules.rule(sequence([isRequired ? next : `(${next})?`, tail]));
    }
    return sequence(['"{"', head, '"}"']);
  }

  /** A property that the schema does not name; undefined if there is none. */
  #otherMember(
    schema: Schema,
    names: readonly string[],
    { other, within }: { other: unknown; within: (step: string) => Here },
  ): string | undefined {
    if (other === false) return undefined;
    const { propertyNames } = schema;
    if (propertyNames !== undefined && names.length > 0)
      throw schemaError(within('propertyNames').place, 'is not supported beside properties and required');
    const name =
      propertyNames === undefined ? this.#otherName(names) : this.#name(propertyNames, within('propertyNames'));
    return this.#rules.rule(sequence([name, '": "', this.#value(other, within('additionalProperties'))]));
  }

  #otherName(names: readonly string[]): string {
    return names.length === 0 ? stringRule(this.#rules) : otherNameRule(this.#rules, names);
  }

  /** Names are texts, whether the schema of them says so or not. */
  #name(schema: unknown, here: Here): string {
    if (schema === true) return stringRule(this.#rules);
    return this.#value(
      isSchema(schema) && !wholeKeywords.some((keyword) => keyword in schema) ? { type: 'string', ...schema } : schema,
      here,
    );
  }
}

/** The properties in their order: those named, and then those that are required without being named. */
function membersOf(schema: Schema, place: string) {
  const { properties: named, required: names = [] } = schema;
  if (named !== undefined && !isSchema(named))
    throw schemaError(`${place}.properties`, `is ${shortJson(named)}, expected an object`);
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string'))
    throw schemaError(`${place}.required`, `is ${shortJson(names)}, expected names`);
  const other = schema['additionalProperties'] ?? named === undefined;
  const properties = new Map(Object.entries(named ?? {}));
  for (const name of names) {
    if (properties.has(name)) continue;
    if (other === false)
      throw schemaError(`${place}.required`, `names ${shortJson(name)}, which is none of the properties`);
    properties.set(name, other);
  }
  return { properties, required: new Set<string>(names), other };
}

/** One of the values of `enum` or `const`. */
function listed(schema: Schema, keyword: 'enum' | 'const', place: string): string {
  const values: unknown = keyword === 'const' ? [schema['const']] : schema['enum'];
  if (!Array.isArray(values))
    throw schemaError(`${place}.${keyword}`, `is ${shortJson(values)}, expected a list of values`);
  const { type } = schema;
  const types = type === undefined ? undefined : [type].flat();
  const fitting = values.filter((value) => types === undefined || typesOf(value).some((name) => types.includes(name)));
  if (fitting.length === 0) throw schemaError(`${place}.${keyword}`, 'has no value that its schema allows');
  return choice([...new Set(fitting.map(jsonText))].map(literal));
}

function impliedTypes(keywords: readonly string[]): JsonType[] {
  const types = Object.entries(typeKeywords) as [JsonType, readonly string[]][];
  return types.flatMap(([type, own]) =>
    type !== 'integer' && own.some((keyword) => keywords.includes(keyword)) ? type : [],
  );
}

function isListed(keyword: string): keyword is 'enum' | 'const' {
  return keyword === 'enum' || keyword === 'const';
}
