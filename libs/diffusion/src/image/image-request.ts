import { DarkroomError, itemAt } from '@darkroom/core';
import { maxUpscaledSide, outputSize, type ImageCard, upscales } from '@darkroom/kinds';
import { z } from 'zod';
import { schedulerNames } from '../schedulers/config/scheduler-config.ts';

/** The fields of `ImageInput` that pipelines read. The fields for output files are left to the file encoder. */
const schema = z.object({
  prompt: z.string(),
  negativePrompt: z.string(),
  promptSyntax: z.literal('webui').optional(),
  width: z.number().int(),
  height: z.number().int(),
  n: z.number().int().min(1).max(10),
  numInferenceSteps: z.number().int(),
  guidanceScale: z.number(),
  guidanceRescale: z.number().min(0).max(1).default(0),
  seed: z
    .number()
    .int()
    .min(0)
    .max(2 ** 32 - 1),
  scheduler: z.enum(schedulerNames),
  previewEvery: z.number().int().min(0),
  image: z.literal(true).optional(),
  mask: z.literal(true).optional(),
  strength: z.number().min(0).max(1).optional(),
  loras: z
    .array(z.object({ id: z.string(), scale: z.number() }))
    .min(1)
    .optional(),
  upscale: z.literal(upscales).optional(),
});

/** The fields of a request that an image pipeline reads. */
export type ImageRowInput = z.infer<typeof schema>;

/**
 * Validates a request again, in the worker: an API of another version may have accepted it.
 *
 * @throws DarkroomError `invalid_request` naming the field.
 */
export function checkImageRequest(input: unknown, card: ImageCard): ImageRowInput {
  const { sizes, steps, guidance, schedulers } = card;
  const result = schema.safeParse(input);
  if (!result.success) {
    const { path, message } = itemAt(result.error.issues, 0);
    throw invalid(`${path.join('.')}: ${message}`, result.error);
  }
  const request = result.data;
  if (!schedulers.includes(request.scheduler)) {
    throw invalid(`scheduler: ${request.scheduler} cannot serve this model; expected one of ${schedulers.join(', ')}`);
  }
  if (request.promptSyntax !== undefined && card.promptSyntaxes?.includes(request.promptSyntax) !== true)
    throw invalid(`promptSyntax: this model does not read ${request.promptSyntax}`);
  checkAttachments(request, card);
  assertInRange('numInferenceSteps', request.numInferenceSteps, steps);
  assertInRange('guidanceScale', request.guidanceScale, guidance);
  for (const side of ['width', 'height'] as const) {
    assertInRange(side, request[side], sizes);
    if (request[side] % sizes.multiple !== 0) throw invalid(`${side} must be a multiple of ${sizes.multiple}`);
  }
  const { upscale } = request;
  if (upscale !== undefined) {
    if (card.upscales?.includes(upscale) !== true) throw invalid(`upscale: the model has no upscaler for ${upscale}`);
    const larger = outputSize(request);
    for (const side of ['width', 'height'] as const)
      assertInRange(side, larger[side], { min: 1, max: maxUpscaledSide });
  }
  return request;
}

function checkAttachments({ image, mask, strength }: ImageRowInput, { takes = [] }: ImageCard): void {
  const requested = Object.entries({ image, mask }).flatMap(([name, isPresent]) => (isPresent === true ? [name] : []));
  const other = requested.find((name) => takes.every((taken) => taken !== name));
  if (other !== undefined) throw invalid(`${other}: this model takes ${takes.join(' and ') || 'no images'}`);
  if (mask === true && image === undefined) throw invalid('mask: requires image, which is missing');
  if (image === true && strength === undefined) throw invalid('strength: is missing; it is required with image');
}

function assertInRange(field: string, value: number, { min, max }: { min: number; max: number }): void {
  if (value < min || value > max) throw invalid(`${field} must be ${min} … ${max}, not ${value}`);
}

function invalid(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'diffusion.create-rows', message, cause);
}
