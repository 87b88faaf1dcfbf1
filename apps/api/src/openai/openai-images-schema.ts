/** The body of `POST /v1/images/generations`: what OpenAI's clients send, and the fields of our own that stand beside it. */
import { type FieldProblem, fieldProblems } from '@darkroom/core';
import { foreignPictureFields, pictureSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';

export const maxPartialImages = 3;

const { model, prompt, negative_prompt, size, n, num_inference_steps, seed } = pictureSchema.shape;
const { guidance_scale, guidance_rescale, output_format, output_compression } = pictureSchema.shape;
/** As `POST /v1/predict` has them; the model says what they may be. */
const pictureFields = {
  prompt,
  model,
  negative_prompt,
  size,
  n,
  num_inference_steps,
  guidance_scale,
  guidance_rescale,
  seed,
  output_format,
  output_compression,
};

function oneOf<const Values extends readonly [string, ...string[]]>(values: Values, expected: string, text: string) {
  return z.enum(values, { error: expected }).optional().meta({ description: text });
}

const partialImagesExpected = `a whole number from 0 to ${maxPartialImages}`;
const trueOrFalse = 'true or false';

/** Fields of this route alone. */
const openaiFields = {
  response_format: oneOf(
    ['b64_json', 'url'],
    'b64_json or url',
    'The pictures themselves, or where to fetch them. Default: b64_json. Streams have no url.',
  ),
  stream: z.boolean({ error: trueOrFalse }).optional().meta({ description: 'Server-sent events. Default: false.' }),
  stream_format: oneOf(
    ['openai', 'chunked'],
    'openai or chunked',
    'What a stream is made of: events as of OpenAI, or frames that are small enough for every client. Default: openai.',
  ),
  partial_images: z
    .int({ error: partialImagesExpected })
    .min(0, { error: partialImagesExpected })
    .max(maxPartialImages, { error: partialImagesExpected })
    .optional()
    .meta({ description: 'How often a stream shows a picture before it is done, spread over its steps. Default: 0.' }),
  user: z.string({ error: 'text' }).optional().meta({ description: 'Ignored, and kept nowhere.' }),
  quality: oneOf(
    ['auto', 'standard'],
    'auto or standard (num_inference_steps says how much work a picture is)',
    'For clients that always send it.',
  ),
  background: oneOf(['auto', 'opaque'], 'auto or opaque', 'For clients that always send it: pictures are opaque.'),
  moderation: oneOf(['auto', 'low'], 'auto or low', 'For clients that always send it: nothing is moderated.'),
  style: oneOf(['vivid'], 'vivid (the prompt says the style)', 'For clients that always send OpenAI’s default.'),
};

const strictSchema = z.strictObject({ ...pictureFields, ...openaiFields });
const known = Object.keys(strictSchema.shape);

/** As it stands in the document: SDKs of OpenAI may send null for what has a default. */
export const imagesBodySchema = z
  .strictObject({
    prompt: prompt.clone(),
    ...Object.fromEntries(
      Object.entries(strictSchema.shape)
        .filter(([name]) => name !== 'prompt')
        .map(([name, schema]) => [name, schema.nullable()]),
    ),
  })
  .openapi('ImagesRequest');

/** What this route makes of a body. */
export interface ImagesRequest {
  /** For `submitRequest`, which checks it. */
  picture: Readonly<Record<string, unknown>>;
  responseFormat: 'b64_json' | 'url';
  /** Undefined: one answer when all is done. */
  stream: 'openai' | 'chunked' | undefined;
  partialImages: number;
}

export type ParseImagesBodyResult =
  | { status: 'parsed'; request: ImagesRequest }
  | { status: 'invalid'; problems: readonly FieldProblem[] };

export function parseImagesBody(body: unknown): ParseImagesBodyResult {
  const given = withoutNulls(body);
  const { data, error } = strictSchema.safeParse(given);
  // What is wrong with the picture alone is said by `submitRequest`, which knows the model.
  if (error !== undefined && error.issues.some(({ path }) => !isPictureField(path[0])))
    return {
      status: 'invalid',
      problems: fieldProblems(error.issues, { body: given, known, foreignNames: foreignPictureFields }),
    };
  const fields = (data ?? given) as z.infer<typeof strictSchema>;
  const problems = combinationProblems(fields);
  if (problems.length > 0) return { status: 'invalid', problems };
  const { response_format = 'b64_json', stream = false, stream_format = 'openai', partial_images = 0 } = fields;
  return {
    status: 'parsed',
    request: {
      picture: Object.fromEntries(Object.entries(fields).filter(([name]) => isPictureField(name))),
      responseFormat: response_format,
      stream: stream ? stream_format : undefined,
      partialImages: partial_images,
    },
  };
}

function isPictureField(name: PropertyKey | undefined): boolean {
  return typeof name === 'string' && Object.hasOwn(pictureFields, name);
}

function withoutNulls(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null || name === 'prompt'));
}

/** Fields that would silently do nothing. */
function combinationProblems(fields: z.infer<typeof strictSchema>): FieldProblem[] {
  const { stream, stream_format, partial_images, response_format } = fields;
  const problems: FieldProblem[] = [];
  const add = (field: string, value: unknown, expected: string): void => {
    problems.push({
      field,
      code: 'invalid_value',
      message: `${field} is ${JSON.stringify(value)}, expected ${expected}`,
    });
  };
  if (stream !== true && stream_format !== undefined) add('stream_format', stream_format, 'none without stream: true');
  if (stream !== true && (partial_images ?? 0) > 0) add('partial_images', partial_images, '0 without stream: true');
  if (stream === true && response_format === 'url') add('response_format', 'url', 'b64_json with stream: true');
  return problems;
}
