import type { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context/context.ts';
import type { Uploads } from '../body/uploads.ts';
import { countEarly } from './count-submitted.ts';
import type { ApiCall } from '../http/api-env.ts';
import { readFormBody } from '../body/read-form-body.ts';
import { parseJson } from '../body/parse-json.ts';
import { readJsonBody } from '../body/read-json-body.ts';

/** Body of a JSON or form request. */
export interface TakenBody {
  /** A file of a form appears as `cid:<name>` (RFC 2392). */
  body: unknown;
  uploads: Uploads | undefined;
}

const formPattern = /^multipart\/form-data\s*(?:;|$)/i;

/** Field schemas by name. */
type Fields = Readonly<Record<string, z.ZodType>>;

/**
 * Reads a JSON body or a form with images and calls `handle`; releases the uploads afterwards. Throws like
 * `readJsonBody` and `readFormBody`, and 429 for a form past the key's rate limit.
 *
 * @param fieldsOf returns the field schemas, by which the text values of a form are converted.
 */
export async function takeBody<Result>(
  c: ApiCall,
  context: ApiContext,
  fieldsOf: (body: unknown) => Fields | Promise<Fields>,
  handle: (taken: TakenBody) => Promise<Result>,
): Promise<Result> {
  const { config, images } = context;
  const { maxBodyBytes } = config;
  if (!formPattern.test(c.req.header('content-type') ?? '')) {
    const expected = 'application/json or multipart/form-data';
    return handle({ body: await readJsonBody(c, maxBodyBytes, expected), uploads: undefined });
  }
  const { maxFileBytes, files: memory } = images;
  const limits = { fileNames: ['image', 'mask'], maxFileBytes, maxFieldBytes: maxBodyBytes, memory };
  await countEarly(c, context);
  const { fields, uploads } = await readFormBody(c, limits);
  try {
    const known = await fieldsOf(fields);
    const given = Object.entries(fields).map(([name, text]) => [
      name,
      parseFormValue(text, Object.hasOwn(known, name) ? known[name] : undefined),
    ]);
    const named = uploads.names.map((name) => [name, `cid:${name}`]);
    return await handle({ body: Object.fromEntries([...given, ...named]), uploads });
  } finally {
    uploads.release();
  }
}

/** Converts a form value: text if the field accepts it, else parsed as JSON, else text that validation will reject. */
function parseFormValue(text: string, field: z.ZodType | undefined): unknown {
  if (field === undefined || field.safeParse(text).success) return text;
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return text;
    throw error;
  }
}
