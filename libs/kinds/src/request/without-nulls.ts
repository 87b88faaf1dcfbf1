import type { z } from 'zod';

/** Fields of a zod schema's definition that this file reads. */
interface SchemaDef {
  type: string;
  shape?: Record<string, z.ZodType>;
  element?: z.ZodType;
  innerType?: z.ZodType;
  options?: readonly z.ZodType[];
}

/**
 * Removes null fields from a body, because clients send null for absent fields. Removes optional fields of the schema,
 * at any depth, and top-level fields that a loose schema ignores. Required fields, which validation reports, and
 * free-form values such as a JSON Schema keep their nulls.
 *
 * @param schema the schema that parses the result.
 */
export function withoutNulls(schema: z.ZodObject, body: unknown): unknown {
  const rest = withoutKnownNulls(schema, body);
  const { catchall } = schema.def as unknown as { catchall?: { def: SchemaDef } };
  if (catchall?.def.type !== 'unknown' || typeof rest !== 'object' || rest === null || Array.isArray(rest)) return rest;
  return Object.fromEntries(
    Object.entries(rest).filter(([name, value]) => value !== null || Object.hasOwn(schema.shape, name)),
  );
}

function withoutKnownNulls(schema: z.ZodType, body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return body;
  const { type, shape = {}, element, innerType, options = [] } = schema.def as unknown as SchemaDef;
  if (innerType !== undefined) return withoutKnownNulls(innerType, body);
  if (type === 'union') return options.reduce((rest: unknown, option) => withoutKnownNulls(option, rest), body);
  if (element !== undefined && Array.isArray(body))
    return mayHoldObjects(element) ? body.map((item) => withoutKnownNulls(element, item)) : body;
  return type === 'object' && !Array.isArray(body) ? withoutNullFields(shape, body as Record<string, unknown>) : body;
}

function withoutNullFields(shape: Record<string, z.ZodType>, body: Record<string, unknown>): Record<string, unknown> {
  const rest = { ...body };
  for (const [name, field] of Object.entries(shape)) {
    if (!Object.hasOwn(rest, name)) continue;
    if (rest[name] !== null) rest[name] = withoutKnownNulls(field, rest[name]);
    else if (field.safeParse(undefined).success) delete rest[name];
  }
  return rest;
}

/** Returns true if values may contain objects. Lists of other values, which may be long, are not copied. */
function mayHoldObjects(schema: z.ZodType): boolean {
  const { type, element, innerType, options = [] } = schema.def as unknown as SchemaDef;
  const inner = innerType ?? element;
  return type === 'object' || options.some(mayHoldObjects) || (inner !== undefined && mayHoldObjects(inner));
}
