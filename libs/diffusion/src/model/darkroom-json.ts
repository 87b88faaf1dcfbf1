import { z } from 'zod';

const weights = z.tuple([z.number(), z.number(), z.number()]);

const limits = (number: z.ZodNumber) =>
  z
    .strictObject({ min: number.optional(), max: number.optional(), default: number.optional() })
    .refine(({ min = -Infinity, max = Infinity }) => min <= max, 'min is above max');

/** Limits of `examples`: every client that lists the models downloads them. */
export const maxExamples = 6;
export const maxExampleBytes = 8192;

/** Path of a thumbnail in the model's directory: one folder, so that a download finds it. */
export const exampleImagePattern = /^examples\/[\w-][\w.-]*\.(?:webp|png|jpg)$/;
const expectedImage = 'expected the path of a .webp, .png or .jpg file in examples/';

const example = z.strictObject({
  prompt: z.string().min(1).max(300),
  seed: z
    .number()
    .int()
    .min(0)
    .max(2 ** 32 - 1),
  image: z.string().regex(exampleImagePattern, expectedImage),
});

/**
 * Schema of `darkroom.json`: Darkroom's own file in a model's directory, for fields that diffusers does not have. The
 * file and each of its fields are optional.
 */
export const darkroomJsonSchema = z.strictObject({
  $comment: z.string().optional(),
  ownedBy: z.string().min(1).optional(),
  steps: limits(z.number().int().min(1)).optional(),
  guidance: limits(z.number().min(0)).optional(),
  /** Pixels. */
  sizes: z
    .strictObject({
      multiple: z.number().int().min(1).optional(),
      min: z.number().int().min(1).optional(),
      max: z.number().int().min(1).optional(),
      default: z.strictObject({ width: z.number().int().min(1), height: z.number().int().min(1) }).optional(),
    })
    .optional(),
  /** Maps scaled latents z to RGB in 0…1: z · matrix + bias, with one matrix row per latent channel. */
  preview: z.strictObject({ matrix: z.array(weights).min(1), bias: weights }).optional(),
  /** Prompts that the model draws well with its defaults, which the page offers as thumbnails. */
  examples: z.array(example).max(maxExamples).optional(),
});

export type DarkroomJson = z.infer<typeof darkroomJsonSchema>;
