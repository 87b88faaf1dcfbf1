/** The view of an image model in the list of models. */
import { z } from 'zod';
import { imageAttachments, type ImageCard, imageOptions, type LoraCard } from './image-input.ts';
import { upscaleField } from './image-request-schema.ts';
import { promptSyntaxes } from './webui-prompt.ts';

const count = z.int().min(0);
const pixels = z.int().min(1);
const range = z.strictObject({ min: z.number(), max: z.number() });

/** Schema of an adapter in `/v1/models`. */
const loraSchema = z.strictObject({
  id: z.string(),
  rank: z.int().min(0),
  name: z.string().optional().meta({ description: 'File name, if it cannot be the id.' }),
  left_out: z.array(z.string()).optional().meta({
    description:
      'Parts of the adapter that are ignored, such as `text_encoder`, because that part of the model does not support adapters.',
  }),
});

function loraView({ id, rank, name, leftOut }: LoraCard): z.output<typeof loraSchema> {
  return {
    id,
    rank,
    ...(name !== undefined && { name }),
    ...(leftOut !== undefined && { left_out: [...leftOut] }),
  };
}

/** Fields of a model. */
export const imageModelShape = {
  sizes: z.strictObject({ multiple: pixels, min: pixels, max: pixels }),
  steps: range,
  guidance: range,
  schedulers: z.array(z.string()).meta({ description: 'Values that `scheduler` accepts.' }),
  max_prompt_tokens: count,
  prompt_syntaxes: z.array(z.enum(promptSyntaxes)).meta({ description: 'Values that `prompt_syntax` accepts.' }),
  takes: z
    .array(z.enum(imageAttachments))
    .optional()
    .meta({ description: 'Input files that requests may have; absent without any.' }),
  needs: z
    .array(z.enum(imageAttachments))
    .optional()
    .meta({ description: 'Input files that each request must have; absent without any.' }),
  unsupported: z.array(z.enum(imageOptions)).optional().meta({
    description: 'Fields that requests must not have, because the server of the model does not support them.',
  }),
  upscales: z
    .array(upscaleField)
    .meta({ description: 'Values that `upscale` accepts; empty if the model has no upscaler.' }),
  safety_checker: z.enum(['black', 'refuse']).nullable().meta({
    description:
      'Effect of the model’s safety checker on a flagged image: `black` replaces it, `refuse` fails the request. null: no checker.',
  }),
  loras: z
    .array(loraSchema)
    .optional()
    .meta({ description: 'Adapters that `loras` accepts, with their ranks; absent without any.' }),
  examples: z
    .array(z.strictObject({ prompt: z.string(), seed: count, image: z.string() }))
    .optional()
    .meta({
      description:
        'Prompts that the model draws well with its defaults. `image` is a thumbnail as a data URL. Absent without any.',
    }),
  defaults: z.strictObject({
    size: z.string(),
    num_inference_steps: count,
    guidance_scale: z.number(),
    scheduler: z.string(),
  }),
};

/** Returns the capabilities of a model. */
export function modelView(card: ImageCard): z.infer<z.ZodObject<typeof imageModelShape>> {
  const { sizes, steps, guidance } = card;
  return {
    sizes: { multiple: sizes.multiple, min: sizes.min, max: sizes.max },
    steps: { min: steps.min, max: steps.max },
    guidance: { min: guidance.min, max: guidance.max },
    schedulers: [...card.schedulers],
    max_prompt_tokens: card.maxPromptTokens,
    prompt_syntaxes: [...(card.promptSyntaxes ?? (['plain'] as const))],
    ...(card.takes === undefined || card.takes.length === 0 ? {} : { takes: [...card.takes] }),
    ...(card.needs !== undefined && { needs: [...card.needs] }),
    ...(card.unsupported !== undefined && { unsupported: [...card.unsupported] }),
    upscales: [...(card.upscales ?? [])],
    safety_checker: card.safetyChecker ?? null,
    ...(card.loras && { loras: card.loras.map(loraView) }),
    ...(card.examples && { examples: [...card.examples] }),
    defaults: {
      size: `${sizes.default.width}x${sizes.default.height}`,
      num_inference_steps: steps.default,
      guidance_scale: guidance.default,
      scheduler: card.defaultScheduler,
    },
  };
}
