import type { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context.ts';
import type { Uploads } from '../pictures/uploads.ts';
import { countEarly } from '../submit/count-submitted.ts';
import type { ApiCall } from './api-env.ts';
import { isForm, readFormBody } from './read-form-body.ts';
import { readJsonBody } from './read-json-body.ts';

/** A body that came as JSON, or as a form. */
export interface TakenBody {
  /** A file of a form stands in it as `cid:` and its name (RFC 2392). */
  body: unknown;
  uploads: Uploads | undefined;
}

/** By name. */
type Fields = Readonly<Record<string, z.ZodType>>;

/**
 * Reads a body that is JSON or a form with pictures, and does with it what is to be done. What came in files is there until then, or until somebody lets go of it sooner. `fieldsOf`: what fields are, for a form, where everything is text. Throws as `readJsonBody` and `readFormBody`, and 429 for a form of a key that has sent too much.
 */
export async function takeBody<Result>(
  c: ApiCall,
  context: ApiContext,
  fieldsOf: (body: unknown) => Fields | Promise<Fields>,
  handle: (taken: TakenBody) => Promise<Result>,
): Promise<Result> {
  const { config, pictures } = context;
  const { maxBodyBytes } = config;
  if (!isForm(c)) {
    const expected = 'application/json or multipart/form-data';
    return handle({ body: await readJsonBody(c, maxBodyBytes, expected), uploads: undefined });
  }
  const { maxFileBytes, files: room } = pictures;
  const limits = { fileNames: ['image', 'mask'], maxFileBytes, maxFieldBytes: maxBodyBytes, room };
  await countEarly(c, context);
  const { fields, uploads } = await readFormBody(c, limits);
  try {
    const known = await fieldsOf(fields);
    const given = Object.entries(fields).map(([name, text]) => [name, valueOf(text, known[name])]);
    const named = uploads.names.map((name) => [name, `cid:${name}`]);
    return await handle({ body: Object.fromEntries([...given, ...named]), uploads });
  } finally {
    uploads.release();
  }
}

/** Text where the field takes this text; else the JSON that it is; else text, which is then wrong. */
function valueOf(text: string, field: z.ZodType | undefined): unknown {
  if (field === undefined || field.safeParse(text).success) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
