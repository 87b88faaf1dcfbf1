import { DarkroomError } from '@darkroom/core';
import { maxUpscaledSide, outputSize, type PictureCard, upscales } from '@darkroom/kinds';
import { z } from 'zod';
import { schedulerNames } from '../schedulers/scheduler.ts';

/** The fields of `PictureInput` that decide what the picture is; those about files are for the encoder. */
const schema = z.object({
  prompt: z.string(),
  negativePrompt: z.string(),
  width: z.number().int(),
  height: z.number().int(),
  n: z.number().int().min(1).max(10),
  numInferenceSteps: z.number().int(),
  guidanceScale: z.number(),
  // Absent in requests that were queued before there was such a field.
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

/** What a picture pipeline reads of a request. */
export type PictureRequest = z.infer<typeof schema>;

/**
 * Checks a request once more where it is served: the door did so by the model's card, but a queue outlives deployments.
 *
 * @throws DarkroomError `invalid_request` naming the field.
 */
export function checkPictureRequest(input: unknown, card: PictureCard): PictureRequest {
  const { sizes, steps, guidance, schedulers } = card;
  const result = schema.safeParse(input);
  if (!result.success) {
    const { path, message } = result.error.issues[0]!;
    throw invalid(`${path.join('.')}: ${message}`, result.error);
  }
  const request = result.data;
  if (!schedulers.includes(request.scheduler)) {
    throw invalid(`scheduler: ${request.scheduler} cannot serve this model; expected one of ${schedulers.join(', ')}`);
  }
  checkAttachments(request, card);
  assertWithin('numInferenceSteps', request.numInferenceSteps, steps);
  assertWithin('guidanceScale', request.guidanceScale, guidance);
  for (const side of ['width', 'height'] as const) {
    assertWithin(side, request[side], sizes);
    if (request[side] % sizes.multiple !== 0) throw invalid(`${side} must be a multiple of ${sizes.multiple}`);
  }
  const { upscale } = request;
  if (upscale !== undefined) {
    if (card.upscales?.includes(upscale) !== true) throw invalid(`upscale: the model has no upscaler for ${upscale}`);
    const larger = outputSize(request);
    for (const side of ['width', 'height'] as const) assertWithin(side, larger[side], { min: 1, max: maxUpscaledSide });
  }
  return request;
}

function checkAttachments({ image, mask, strength }: PictureRequest, { takes = [] }: PictureCard): void {
  const asked = Object.entries({ image, mask }).flatMap(([name, isThere]) => (isThere === true ? [name] : []));
  const other = asked.find((name) => takes.every((taken) => taken !== name));
  if (other !== undefined) throw invalid(`${other}: this model takes ${takes.join(' and ') || 'no pictures'}`);
  if (mask === true && image === undefined) throw invalid('mask: there is no image that it is of');
  if (image === true && strength === undefined)
    throw invalid('strength: is missing, which a request with an image has');
}

function assertWithin(field: string, value: number, { min, max }: { min: number; max: number }): void {
  if (value < min || value > max) throw invalid(`${field} must be ${min} … ${max}, not ${value}`);
}

function invalid(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'diffusion.create-rows', message, cause);
}
