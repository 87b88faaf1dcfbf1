/**
 * The body of `POST /v1/predict`: checks every request, and yields the OpenAPI document. The error text of each check
 * says what is expected; `fieldProblems` puts the field's name and the value before it. What depends on the model is
 * checked after this, by `resolvePicture`.
 */
import { z } from 'zod';
import { finiteNumber, textOf, wholeNumber } from '../field-types.ts';
import { maxSeed, requestFields } from '../request-fields.ts';
import { outputFormats } from './picture-input.ts';
import { upscales } from './upscale.ts';

/** Characters of `prompt` and `negative_prompt`. The model reads far less (`maxPromptTokens` of its card). */
export const maxPromptCharacters = 4000;
/** Steps. */
export const defaultPreviewEvery = 5;
/** OpenAI's default. */
export const defaultOutputCompression = 100;
const maxSteps = 1000;

// The model is the first of all fields, also where an error lists them.
const { model, ...otherRequestFields } = requestFields;

const sizePattern = /^(?:auto|[1-9]\d{0,4}x[1-9]\d{0,4})$/;

const previewExpected = `"off" or {"every": a whole number from 1 to ${maxSteps}}`;
const preview = z
  .union([z.literal('off'), z.strictObject({ every: wholeNumber(1, maxSteps) }, { error: previewExpected })], {
    error: previewExpected,
  })
  .meta({
    description: `A small picture of the work so far every so many steps, or "off". Default: {"every": ${defaultPreviewEvery}}.`,
    example: { every: 2 },
  });

/** `cid:` names a part of a form (RFC 2392), and only what comes in one has such. */
const picturePattern = /^(?:data:[^,]{0,100};base64,|https?:\/\/|\/v1\/predict\/|cid:)/i;
const pictureExpected = 'a picture: a data URL in base64, or an https URL';
const pictureSource = z.string({ error: pictureExpected }).regex(picturePattern, { error: pictureExpected });
const upscaleExpected = upscales.join(' or ');
/** Adapters of one request. */
export const maxLoras = 8;
/** More than a picture stands, on either side. */
const maxLoraScale = 4;
const lorasExpected = `a list of at most ${maxLoras}, each {"id": one of the model’s loras, "scale": a number}`;
const loras = z
  .array(
    z.strictObject(
      { id: textOf(1, 64), scale: finiteNumber(-maxLoraScale, maxLoraScale).optional() },
      { error: 'an object with id and, if not 1, scale' },
    ),
    { error: lorasExpected },
  )
  .max(maxLoras, { error: lorasExpected })
  .meta({
    description: 'Adapters (LoRA) of the model, each with how much of it is added. Default: none; a scale of 1.',
    example: [{ id: 'pixels', scale: 0.8 }],
  });

/** Strict: a field that is not here is an error, because a misspelled one would silently change the picture. */
export const pictureSchema = z.strictObject({
  model,
  prompt: textOf(1, maxPromptCharacters).meta({
    description: 'What to draw.',
    example: 'a fox on a green background',
  }),
  negative_prompt: textOf(0, maxPromptCharacters)
    .optional()
    .meta({ description: 'What to stay away from; without effect at guidance 1. Default: none.' }),
  size: z
    .string({ error: '"auto" or "WIDTHxHEIGHT" in pixels' })
    .regex(sizePattern, { error: '"auto" or "WIDTHxHEIGHT" in pixels' })
    .optional()
    .meta({
      description: 'Pixels, within the limits of the model. Default: "auto", its own size.',
      example: '128x128',
    }),
  n: wholeNumber(1, 10)
    .optional()
    .meta({ description: 'Pictures; picture i has the seed `seed + i`. Default: 1.', example: 1 }),
  num_inference_steps: wholeNumber(1, maxSteps)
    .optional()
    .meta({ description: 'Within the limits of the model. Default: its own.', example: 12 }),
  guidance_scale: finiteNumber(0, 1000).optional().meta({
    description: 'How closely to follow the prompt; 1 is without guidance and costs half. Default: the model’s.',
  }),
  guidance_rescale: finiteNumber(0, 1).optional().meta({
    description:
      'How far guidance is kept from overexposing the picture; without effect at guidance 1 and on latent consistency models. Default: 0.',
  }),
  seed: wholeNumber(0, maxSeed)
    .optional()
    .meta({ description: 'The same seed and parameters give the same bytes. Default: random; the result tells it.' }),
  scheduler: textOf(1, 64).optional().meta({ description: 'One of the model’s `schedulers`. Default: its own.' }),
  output_format: z
    .enum(outputFormats, { error: `one of ${outputFormats.join(', ')}` })
    .optional()
    .meta({ description: 'Default: png.' }),
  output_compression: wholeNumber(0, 100)
    .optional()
    .meta({ description: `Quality of jpeg and webp; png ignores it. Default: ${defaultOutputCompression}.` }),
  output: z.enum(['url', 'inline'], { error: '"url" or "inline"' }).optional().meta({
    description:
      '"inline" puts the pictures into an answer that waits for them (`Prefer: wait`), in base64. Default: "url".',
  }),
  preview: preview.optional(),
  image: pictureSource.optional().meta({
    description:
      'The picture to begin with, for models whose `takes` has it: PNG, JPEG or WebP, as a data URL, an https URL that the server fetches, the ' +
      '`url` of a picture that a request of yours has made, or a file of a `multipart/form-data`. It is turned as its EXIF says and made to fill ' +
      '`size`: what is too much is cut evenly. With `size: "auto"` it is its own size, within the limits of the model.',
  }),
  mask: pictureSource.optional().meta({
    description:
      'Where to paint anew, for models whose `takes` has it: a picture of the size of `image`, white there and black where `image` stays.',
  }),
  strength: finiteNumber(0, 1).optional().meta({
    description: 'How far to go from `image`: the share of the steps that are taken. Default: 0.8, or 1 with a mask.',
  }),
  metadata: z.boolean({ error: 'true or false' }).optional().meta({
    description:
      'Whether the file says how its picture was made: prompts, seed, steps and all else, as common tools read it. Whoever gets the file then has the prompt. Default: the server’s, which is false where nobody has set it.',
  }),
  upscale: z.literal(upscales, { error: upscaleExpected }).optional().meta({
    description:
      'How many times as large the picture becomes each way, by an upscaler that the model has (`upscales`). Default: not at all.',
  }),
  loras: loras.optional(),
  ...otherRequestFields,
});

/** A body that passed the schema. */
export type PictureRequest = z.infer<typeof pictureSchema>;

/** Our fields by what people used to other systems call them. */
export const foreignPictureFields: Readonly<Record<string, string>> = {
  width: 'size',
  height: 'size',
  cfg: 'guidance_scale',
  cfg_scale: 'guidance_scale',
  sampler: 'scheduler',
  sampler_name: 'scheduler',
  batch_size: 'n',
  num_images: 'n',
  num_outputs: 'n',
  quality: 'output_compression',
  init_image: 'image',
  image_url: 'image',
  mask_image: 'mask',
  mask_url: 'mask',
  denoising_strength: 'strength',
  prompt_strength: 'strength',
};
