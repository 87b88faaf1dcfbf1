/** Bodies of OpenAI's routes of pictures: what its clients send, and fields of our own beside it. */
import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import { foreignPictureFields, pictureSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../../http/api-error.ts';

const maxPartialImages = 3;

const { model, prompt, ...others } = pictureSchema.pick({
  model: true,
  prompt: true,
  negative_prompt: true,
  size: true,
  n: true,
  num_inference_steps: true,
  guidance_scale: true,
  guidance_rescale: true,
  seed: true,
  output_format: true,
  output_compression: true,
  loras: true,
}).shape;
/** As `POST /v1/predict` has them; the model says what they may be. */
export const pictureFields = { prompt, model, ...others };

export function oneOf<const Values extends readonly [string, ...string[]]>(
  values: Values,
  expected: string,
  text: string,
) {
  return z.enum(values, { error: expected }).optional().meta({ description: text });
}

const partialImagesExpected = `a whole number from 0 to ${maxPartialImages}`;
const trueOrFalse = 'true or false';

/** OpenAI's, of every route. */
export const openaiFields = {
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
  moderation: oneOf(
    ['auto', 'low'],
    'auto or low',
    'For clients that always send it: the server decides what is refused.',
  ),
  style: oneOf(['vivid'], 'vivid (the prompt says the style)', 'For clients that always send OpenAI’s default.'),
};

type Fields = Readonly<Record<string, z.ZodType>>;

/** What a route makes of a body. */
export interface ImagesAsked {
  /** For `submitRequest`, which checks it. */
  picture: Record<string, unknown>;
  responseFormat: 'b64_json' | 'url';
  /** Undefined: one answer when all is done. */
  stream: 'openai' | 'chunked' | undefined;
  partialImages: number;
}

/** What every body of these routes may say beside its picture. */
type OpenaiBody = z.infer<z.ZodObject<typeof openaiFields>>;

export interface ImagesBody {
  /** What a form's fields are. */
  fields: Fields;
  /** As it stands in the document: SDKs of OpenAI may send null for what has a default. */
  schema: z.ZodObject;
  /** Throws 400 with all that is wrong; what is wrong with the `picture` alone is said by who knows its model. */
  parse(body: unknown): ImagesAsked;
}

/** `needed`: fields of the picture that must be there, with what they are. */
export function createImagesBody({
  name,
  picture,
  openai,
  needed,
}: {
  name: string;
  picture: Fields;
  openai: Fields & Partial<typeof openaiFields>;
  needed: Readonly<Record<string, string>>;
}): ImagesBody {
  const fields: Fields = { ...picture, ...openai };
  const strictSchema = z.strictObject(fields);
  const known = Object.keys(fields);
  const isPictureField = (field: PropertyKey | undefined): boolean =>
    typeof field === 'string' && Object.hasOwn(picture, field);
  const documented = (field: string, schema: z.ZodType) => (field in needed ? schema.clone() : schema.nullable());
  return {
    fields,
    schema: z
      .strictObject(
        Object.fromEntries(Object.entries(fields).map(([field, schema]) => [field, documented(field, schema)])),
      )
      .openapi(name),
    parse(body) {
      const given = withoutNulls(body, needed);
      const { data, error } = strictSchema.safeParse(given);
      if (error !== undefined && error.issues.some(({ path }) => !isPictureField(path[0])))
        throw invalidFields(fieldProblems(error.issues, { body: given, known, foreignNames: foreignPictureFields }));
      const all = (data ?? given) as Record<string, unknown> & OpenaiBody;
      const problems = [...missingFields(all, needed), ...combinationProblems(all)];
      if (problems.length > 0) throw invalidFields(problems);
      const { response_format: responseFormat = 'b64_json', stream, stream_format, partial_images = 0 } = all;
      return {
        picture: Object.fromEntries(Object.entries(all).filter(([field]) => isPictureField(field))),
        responseFormat,
        stream: stream === true ? (stream_format ?? 'openai') : undefined,
        partialImages: partial_images,
      };
    },
  };
}

function withoutNulls(body: unknown, needed: Readonly<Record<string, string>>): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null || name in needed));
}

/** Prompts are missed by who knows the model. */
function missingFields(
  fields: Readonly<Record<string, unknown>>,
  needed: Readonly<Record<string, string>>,
): FieldProblem[] {
  return Object.entries(needed)
    .filter(([field]) => field !== 'prompt' && fields[field] === undefined)
    .map(([field, expected]) => invalidValue(field, undefined, expected));
}

/** Fields that would silently do nothing. */
function combinationProblems(fields: OpenaiBody): FieldProblem[] {
  const { stream, stream_format, partial_images, response_format } = fields;
  const checks: [isWrong: boolean, field: keyof OpenaiBody, expected: string][] = [
    [stream !== true && stream_format !== undefined, 'stream_format', 'none without stream: true'],
    [stream !== true && (partial_images ?? 0) > 0, 'partial_images', '0 without stream: true'],
    [stream === true && response_format === 'url', 'response_format', 'b64_json with stream: true'],
  ];
  return checks
    .filter(([isWrong]) => isWrong)
    .map(([, field, expected]) => invalidValue(field, fields[field], expected));
}
