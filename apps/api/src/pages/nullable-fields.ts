import { lastItem } from '@darkroom/core';
/** A JSON Schema, or any other part of an OpenAPI document. */
type Part = Record<string, unknown>;

/**
 * Marks the optional fields of all request bodies as nullable, in place: `withoutNulls` takes null for "not given".
 *
 * @param document an OpenAPI 3.1 document.
 */
export function markNullableFields(document: object): void {
  const { paths = {}, components = {} } = document as { paths?: Part; components?: { schemas?: Part } };
  const seen = new Set<unknown>();
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null || seen.has(value)) return;
    seen.add(value);
    const { $ref, properties, required = [] } = value as { $ref?: unknown; properties?: Part; required?: string[] };
    if (typeof $ref === 'string') visit(components.schemas?.[lastItem($ref.split('/'))]);
    Object.values(value).forEach(visit);
    for (const [name, schema] of Object.entries(properties ?? {}))
      if (!required.includes(name)) properties![name] = nullable(schema as Part);
  };
  for (const item of Object.values(paths))
    for (const operation of Object.values(item as Part)) visitBodies(operation as Part, visit);
}

function visitBodies({ requestBody }: Part, visit: (schema: unknown) => void): void {
  const { content = {} } = (requestBody ?? {}) as { content?: Part };
  for (const { schema } of Object.values(content) as { schema?: unknown }[]) visit(schema);
}

/** Adds null to a schema. A schema without type, values or parts accepts null already. */
function nullable(schema: Part): Part {
  const { description, type, anyOf = [] } = schema;
  if ([type, ...(anyOf as Part[]).map((part) => part['type'])].flat().includes('null')) return schema;
  const isPlain = typeof type === 'string' && !('enum' in schema) && !('const' in schema);
  if (isPlain) return { ...schema, type: [type, 'null'] };
  if (type === undefined && !['$ref', 'enum', 'const', 'anyOf', 'oneOf', 'allOf'].some((word) => word in schema))
    return schema;
  return { ...(description !== undefined && { description }), anyOf: [schema, { type: 'null' }] };
}
