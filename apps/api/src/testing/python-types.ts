/** Writes the types of the Python client from the schemas of the OpenAPI document. */

export interface Schema {
  $ref?: string;
  type?: string | readonly string[];
  enum?: readonly unknown[];
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  items?: Schema;
  properties?: Readonly<Record<string, Schema>>;
  required?: readonly string[];
  additionalProperties?: boolean | Schema;
  description?: string;
}

const header = `# Generated from /openapi.json by \`npm run generate\`. Do not edit.
"""Types of the API: requests, responses and events. Times are ISO 8601."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict, final

from .files import File

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired
`;

const scalars: Readonly<Record<string, string>> = {
  string: 'str',
  integer: 'int',
  number: 'float',
  boolean: 'bool',
  null: 'None',
};

/** Names as in the TypeScript client. */
const renamed: Readonly<Record<string, string>> = {
  Accepted: 'AcceptedRequest',
  Cancel: 'CanceledRequest',
  Image: 'ImageInfo',
  ImageStatus: 'ImageView',
  TextStatus: 'TextView',
  Request: 'RequestView',
  RequestEvent: 'SentEvent',
};
/** Types that the client extends; the others are final, so that type checkers narrow unions by `"field" in event`. */
const extended: ReadonlySet<string> = new Set(['ImageInfo', 'TextEndEvent']);
/** Fields of requests for clients of other APIs, which the server ignores. */
const ignored: ReadonlySet<string> = new Set(['ImageRequest.user', 'TextRequest.user', 'TextRequest.metadata']);
/** Fields with other types than in JSON: the client takes files, and `metadata` of other APIs is ignored. */
const replaced: Readonly<Record<string, string>> = {
  'ImageRequest.image': 'File | str | None',
  'ImageRequest.mask': 'File | str | None',
  'TextRequest.image': 'File | str | None',
  'ImageRequest.metadata': 'bool | None',
};

/**
 * Returns a Python module with a TypedDict for each schema and each object in it. Objects that may have more fields are
 * mappings, because a TypedDict cannot have unknown fields.
 */
export function pythonTypes(schemas: Readonly<Record<string, Schema>>): string {
  const classes = new Map<string, string>();
  const aliases: string[] = [];

  /** Adds the class after those that its fields name. */
  function addClass(name: string, { description, properties = {}, required = [] }: Schema, isRequest: boolean): void {
    const fields = Object.entries(properties)
      .filter(([field]) => !ignored.has(`${name}.${field}`))
      .map(([field, schema]) => {
        const type = replaced[`${name}.${field}`] ?? typeOf(schema, `${name}${pascal(field)}`, isRequest);
        const declared = required.includes(field) ? type : `NotRequired[${type}]`;
        return `    ${field}: ${declared}\n${docstring(schema.description)}`;
      });
    const decorator = extended.has(name) ? '' : '@final\n';
    classes.set(name, `${decorator}class ${name}(TypedDict):\n${docstring(description)}${fields.join('')}`);
  }

  /** Adds the schema unless it was added, and returns its name. */
  function addSchema(schemaName: string): string {
    const name = renamed[schemaName] ?? schemaName;
    if (classes.has(name)) return name;
    const { anyOf, oneOf, ...schema } = schemas[schemaName]!;
    const members = anyOf ?? oneOf;
    if (members === undefined) addClass(name, schema, schemaName.endsWith('Request'));
    else aliases.push(`${name} = (\n    ${members.map((member) => typeOf(member, name, false)).join('\n    | ')}\n)\n`);
    return name;
  }

  function typeOf(schema: Schema, name: string, isRequest: boolean): string {
    const { $ref, type, anyOf, oneOf, items = {}, properties, additionalProperties } = schema;
    if ($ref !== undefined) {
      return addSchema($ref.split('/').at(-1)!);
    }
    if (schema.enum !== undefined) return `Literal[${schema.enum.map(literal).join(', ')}]`;
    const members = anyOf ?? oneOf;
    if (members !== undefined) return union(members.map((member) => typeOf(member, name, isRequest)));
    if (Array.isArray(type))
      return union(type.map((each: string) => typeOf({ ...schema, type: each }, name, isRequest)));
    if (type === 'array') return `${isRequest ? 'Sequence' : 'list'}[${typeOf(items, name, isRequest)}]`;
    if (type !== 'object') return scalars[String(type)] ?? 'Any';
    if (properties === undefined || Boolean(additionalProperties)) {
      const values = properties === undefined && typeof additionalProperties === 'object' ? additionalProperties : {};
      return `Mapping[str, ${typeOf(values, name, isRequest)}]`;
    }
    addClass(name, schema, isRequest);
    return name;
  }

  for (const name of Object.keys(schemas)) addSchema(name);
  return [header, ...classes.values(), aliases.join('')].join('\n\n');
}

function union(types: readonly string[]): string {
  return [...new Set(types)].join(' | ');
}

function literal(value: unknown): string {
  return value === null ? 'None' : JSON.stringify(value);
}

function pascal(field: string): string {
  return field.replaceAll(/(?:^|_)(\w)/g, (_match, letter: string) => letter.toUpperCase());
}

/** Returns an indented docstring with lines of at most 120 columns; empty if there is nothing to say. */
function docstring(text: string | undefined): string {
  if (text === undefined) return '';
  const lines = text.replaceAll('\\', '\\\\').match(/\S.{0,109}(?= |$)/g) ?? [];
  return `    """${lines.map((line) => line.trim()).join('\n    ')}"""\n`;
}
