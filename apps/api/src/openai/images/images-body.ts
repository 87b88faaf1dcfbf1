/** Request bodies of OpenAI's image routes: OpenAI's fields and Darkroom's additional ones. */
import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import { compatImageFields, imageRequestSchema, withoutNulls } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidFields } from '../../http/api-error.ts';

/** OpenAI's limit for `partial_images`. */
const maxPartialImages = 3;

const { model, prompt, ...others } = imageRequestSchema.pick({
  model: true,
  prompt: true,
  negative_prompt: true,
  prompt_syntax: true,
  size: true,
  n: true,
  num_inference_steps: true,
  guidance_scale: true,
  guidance_rescale: true,
  seed: true,
  output_format: true,
  output_compression: true,
  loras: true,
  metadata: true,
}).shape;
/** Fields shared with `POST /v1/predict`. The model's card limits their values. */
export const imageFields = { prompt, model, ...others };

export function enumField<const Values extends readonly [string, ...string[]]>(
  values: Values,
  expected: string,
  text: string,
) {
  return z.enum(values, { error: expected }).optional().meta({ description: text });
}

export const partialImagesExpected = `a whole number from 0 to ${maxPartialImages}; any, or "every", with stream_format: "chunked"`;
const trueOrFalse = 'true or false';

/** OpenAI's fields that all image routes accept. */
export const openaiFields = {
  response_format: enumField(
    ['b64_json', 'url'],
    'b64_json or url',
    'The images in base64, or URLs from which to fetch them. Default: b64_json. Streams have no URLs.',
  ),
  stream: z.boolean({ error: trueOrFalse }).optional().meta({ description: 'Server-sent events. Default: false.' }),
  stream_format: enumField(
    ['openai', 'chunked'],
    'openai or chunked',
    'Frames of a stream: OpenAI’s events, or frames of limited size for clients that cannot read large ones. Default: openai.',
  ),
  partial_images: z
    .union([z.int().min(0, { error: partialImagesExpected }), z.literal('every')], { error: partialImagesExpected })
    .optional()
    .meta({
      description: `Number of previews of each image in a stream, spread over its steps: ${partialImagesExpected} (a preview after each step). Default: 0.`,
    }),
  user: z.string({ error: 'text' }).optional().meta({ description: 'Ignored and not stored.' }),
  quality: enumField(
    ['auto', 'standard'],
    'auto or standard (num_inference_steps sets the quality)',
    'Has no effect; accepted because some clients always send it.',
  ),
  background: enumField(['auto', 'opaque'], 'auto or opaque', 'Has no effect: images are always opaque.'),
  moderation: enumField(['auto', 'low'], 'auto or low', 'Has no effect: the operator configures moderation.'),
  style: enumField(
    ['vivid'],
    'vivid (describe the style in the prompt)',
    'Has no effect; accepted because some clients always send OpenAI’s default.',
  ),
};

type Fields = Readonly<Record<string, z.ZodType>>;

/** A parsed request body of an image route. */
export interface ParsedImagesBody {
  /** Body for `submitRequest`, which validates it against the model. */
  image: Record<string, unknown>;
  responseFormat: 'b64_json' | 'url';
  /** Undefined: one JSON response when all images are done. */
  stream: 'openai' | 'chunked' | undefined;
  /** Previews per image; Infinity: one after every step. */
  partialImages: number;
}

/** OpenAI's fields of a request body: those that do not describe the image. */
type OpenaiBody = z.infer<z.ZodObject<typeof openaiFields>>;

export interface ImagesBody {
  /** Schemas by field name, used to parse a form. */
  fields: Fields;
  /** Schema for the OpenAPI document. */
  schema: z.ZodObject;
  /** Throws 400 with all problems. Accepts a body with only image fields wrong: `submitRequest` reports those. */
  parse(body: unknown): ParsedImagesBody;
}

/** @param needed required fields, each with its `expected` text for the error message. */
export function createImagesBody({
  name,
  image,
  openai,
  needed,
}: {
  name: string;
  image: Fields;
  openai: Fields & Partial<typeof openaiFields>;
  needed: Readonly<Record<string, string>>;
}): ImagesBody {
  const fields: Fields = { ...image, ...openai };
  const strictSchema = z.strictObject(fields);
  const known = Object.keys(fields);
  const isImageField = (field: PropertyKey | undefined): boolean =>
    typeof field === 'string' && Object.hasOwn(image, field);
  return {
    fields,
    schema: z
      .strictObject(Object.fromEntries(Object.entries(fields).map(([name, schema]) => [name, schema.clone()])))
      .openapi(name),
    parse(body) {
      const given = withoutNulls(strictSchema, body);
      const { data, error } = strictSchema.safeParse(given);
      if (error !== undefined && error.issues.some(({ path }) => !isImageField(path[0])))
        throw invalidFields(fieldProblems(error.issues, { body: given, known, compatNames: compatImageFields }));
      const all = (data ?? given) as Record<string, unknown> & OpenaiBody;
      const problems = [...missingFields(all, needed), ...combinationProblems(all)];
      if (problems.length > 0) throw invalidFields(problems);
      const { response_format: responseFormat = 'b64_json', stream, stream_format, partial_images = 0 } = all;
      return {
        image: Object.fromEntries(Object.entries(all).filter(([field]) => isImageField(field))),
        responseFormat,
        stream: stream === true ? (stream_format ?? 'openai') : undefined,
        partialImages: partial_images === 'every' ? Infinity : partial_images,
      };
    },
  };
}

/** Reports missing required fields except `prompt`, which `submitRequest` checks against the model. */
function missingFields(
  fields: Readonly<Record<string, unknown>>,
  needed: Readonly<Record<string, string>>,
): FieldProblem[] {
  return Object.entries(needed)
    .filter(([field]) => field !== 'prompt' && fields[field] === undefined)
    .map(([field, expected]) => invalidValue(field, undefined, expected));
}

function exceedsOpenaiLimit(partialImages: OpenaiBody['partial_images']): boolean {
  return partialImages === 'every' || (partialImages ?? 0) > maxPartialImages;
}

/** Reports stream options without `stream: true`, and values that streams or OpenAI's clients do not support. */
function combinationProblems(fields: OpenaiBody): FieldProblem[] {
  const { stream, stream_format, partial_images, response_format } = fields;
  const checks: [isWrong: boolean, field: keyof OpenaiBody, expected: string][] = [
    [stream !== true && stream_format !== undefined, 'stream_format', 'none without stream: true'],
    [stream !== true && (partial_images ?? 0) !== 0, 'partial_images', '0 without stream: true'],
    [
      stream === true && stream_format !== 'chunked' && exceedsOpenaiLimit(partial_images),
      'partial_images',
      partialImagesExpected,
    ],
    [stream === true && response_format === 'url', 'response_format', 'b64_json with stream: true'],
  ];
  return checks
    .filter(([isWrong]) => isWrong)
    .map(([, field, expected]) => invalidValue(field, fields[field], expected));
}
