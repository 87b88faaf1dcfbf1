/**
 * Schema of the body of `POST /v1/predict` for image models, also for the OpenAPI document. The error text of each
 * check is what was expected; `fieldProblems` prefixes the field's name and the value. `resolveImage` checks the limits
 * of the model.
 */
import { z } from 'zod';
import { finiteNumber, textField, integerField } from '../request/field-types.ts';
import { imageSource } from '../request/brought-images.ts';
import { ignoredFields, maxSeed, requestFields } from '../request/request-fields.ts';
import { outputFormats } from './image-input.ts';
import { upscales } from './upscale.ts';
import { promptSyntaxes } from './webui-prompt.ts';

/** Maximum characters of `prompt` and `negative_prompt`. The model reads far less (`maxPromptTokens` of its card). */
export const maxPromptCharacters = 4000;
/** Default steps between previews. */
export const defaultPreviewEvery = 5;
/** OpenAI's default. */
export const defaultOutputCompression = 100;
const maxSteps = 1000;

// Put `model` first, because error messages list the fields in this order.
const { model, ...otherRequestFields } = requestFields;

const sizePattern = /^(?:auto|[1-9]\d{0,4}x[1-9]\d{0,4})$/;

const previewExpected = `"off" or {"every": a whole number from 1 to ${maxSteps}}`;
const preview = z
  .union([z.literal('off'), z.strictObject({ every: integerField(1, maxSteps) }, { error: previewExpected })], {
    error: previewExpected,
  })
  .meta({
    description: `Number of steps between previews of the unfinished image, or "off". Default: {"every": ${defaultPreviewEvery}}.`,
    example: { every: 2 },
  });

/** `enum`: for the OpenAPI document, which would have the first value only. */
export const upscaleField = z.literal(upscales, { error: upscales.join(' or ') }).meta({ enum: [...upscales] });
/** Maximum adapters of one request. */
export const maxLoras = 8;
/** Maximum absolute scale; larger ones ruin any image. */
export const maxLoraScale = 4;
const lorasExpected = `a list of at most ${maxLoras}, each {"id": one of the model’s loras, "scale": a number}`;
const loras = z
  .array(
    z.strictObject(
      { id: textField(1, 64), scale: finiteNumber(-maxLoraScale, maxLoraScale).optional() },
      { error: 'an object with id and, if not 1, scale' },
    ),
    { error: lorasExpected },
  )
  .max(maxLoras, { error: lorasExpected })
  .meta({
    description: 'LoRA adapters of the model with their scales. Default: none; the default scale is 1.',
    example: [{ id: 'pixels', scale: 0.8 }],
  });

export const embedField = z.boolean({ error: 'true or false' });

/** Strict: a field that is not here is an error, because a misspelled one would silently change the image. */
export const imageRequestSchema = z.strictObject({
  model,
  prompt: textField(1, maxPromptCharacters).meta({
    description: 'Description of the image.',
    example: 'a fox on a green background',
  }),
  negative_prompt: textField(0, maxPromptCharacters)
    .optional()
    .meta({ description: 'Description of what to avoid; no effect at guidance 1. Default: none.' }),
  prompt_syntax: z
    .enum(promptSyntaxes, { error: promptSyntaxes.join(' or ') })
    .optional()
    .meta({
      description:
        'How both prompts are read. "plain": brackets are text. "webui", for models whose `prompt_syntaxes` has it: as by Stable Diffusion web UI, with ' +
        'weights (`(red:1.2)`, `(red)`, `[red]`), adapters (`<lora:pixels:0.8>`), and up to 300 tokens. Default: "plain".',
    }),
  size: z
    .string({ error: '"auto" or "WIDTHxHEIGHT" in pixels' })
    .regex(sizePattern, { error: '"auto" or "WIDTHxHEIGHT" in pixels' })
    .optional()
    .meta({
      description: 'Pixels, within the limits of the model. Default: "auto", the model’s default size.',
      example: '128x128',
    }),
  n: integerField(1, 10)
    .optional()
    .meta({ description: 'Number of images; image i has the seed `seed + i`. Default: 1.', example: 1 }),
  num_inference_steps: integerField(1, maxSteps).optional().meta({
    description: 'Number of denoising steps, within the limits of the model. Default: the model’s.',
    example: 12,
  }),
  guidance_scale: finiteNumber(0, 1000).optional().meta({
    description: 'How closely to follow the prompt; 1 turns guidance off and is twice as fast. Default: the model’s.',
  }),
  guidance_rescale: finiteNumber(0, 1).optional().meta({
    description:
      'Rescales guidance to avoid overexposure; no effect at guidance 1 and on latent consistency models. Default: 0 (off).',
  }),
  seed: integerField(0, maxSeed).optional().meta({
    description: 'The same seed and parameters give the same bytes. Default: random; the result contains it.',
  }),
  scheduler: textField(1, 64).optional().meta({
    description:
      'One of the model’s `schedulers`, also by the names of diffusers, AUTOMATIC1111 and ComfyUI (`Euler a`). Default: the model’s.',
  }),
  output_format: z
    .enum(outputFormats, { error: `one of ${outputFormats.join(', ')}` })
    .optional()
    .meta({ description: 'Default: png.' }),
  output_compression: integerField(0, 100)
    .optional()
    .meta({ description: `Quality of jpeg and webp; png ignores it. Default: ${defaultOutputCompression}.` }),
  output: z.enum(['url', 'inline'], { error: '"url" or "inline"' }).optional().meta({
    description:
      '"inline" returns the images in base64 if the request waits for its result (`Prefer: wait`). Default: "url".',
  }),
  preview: preview.optional(),
  image: imageSource.optional().meta({
    description:
      'The input image, for models whose `takes` has it: PNG, JPEG or WebP, as a data URL, an https URL that the server fetches, the ' +
      '`url` of an image from an earlier request of yours, or a file of a `multipart/form-data` body. The server rotates it by its EXIF orientation, ' +
      'scales it to fill `size` and crops it at the center. With `size: "auto"`, the size is that of the image, within the limits of the model.',
  }),
  mask: imageSource.optional().meta({
    description:
      'The area to repaint, for models whose `takes` has it: an image of the size of `image`, white where to repaint and black where `image` stays.',
  }),
  strength: finiteNumber(0, 1).optional().meta({
    description: 'How much to change `image`: the share of the steps that are run. Default: 0.8, or 1 with a mask.',
  }),
  metadata: z.union([embedField, ignoredFields.metadata.unwrap()], { error: 'true or false' }).optional().meta({
    description:
      'Whether to embed the generation parameters in the file (prompts, seed, steps and so on), readable by common tools. Anyone with the file can then read the prompt. An object, as OpenAI’s clients send it, is ignored. Default: false.',
  }),
  upscale: upscaleField.optional().meta({
    description: 'Factor by which the model’s upscaler enlarges each side (`upscales`). Default: no upscaling.',
  }),
  loras: loras.optional(),
  ...otherRequestFields,
  user: ignoredFields.user,
});

/** A body that was validated against the schema. */
export type ImageBody = z.infer<typeof imageRequestSchema>;

/** Our field names by the names that other systems have for them; error messages suggest them. */
export const compatImageFields: Readonly<Record<string, string>> = {
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
