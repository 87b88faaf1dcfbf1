import { type FieldProblem, invalidValue } from '@darkroom/core';
import type { ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { resolveBody } from '../resolve-body.ts';
import type { PictureCard } from './picture-card.ts';
import type { PictureInput } from './picture-input.ts';
import {
  defaultOutputCompression,
  defaultPreviewEvery,
  foreignPictureFields,
  type PictureRequest,
  pictureSchema,
} from './picture-schema.ts';

/** Checks a request's body against the schema and then against what its model can do. */
export function resolvePicture(body: unknown, card: PictureCard, options: RequestOptions): ResolveResult<PictureInput> {
  const expected = expectations(card);
  return resolveBody(body, {
    schema: pictureSchema,
    options,
    expected,
    foreignNames: foreignPictureFields,
    problemsOf: (request) => limitProblems(request, card, expected),
    inputOf: (request) => fillDefaults(request, card, options),
  });
}

type LimitedField = 'size' | 'num_inference_steps' | 'guidance_scale' | 'scheduler';

function expectations({ sizes, steps, guidance, schedulers }: PictureCard): Record<LimitedField, string> {
  return {
    size: `"auto" or "WIDTHxHEIGHT", each side a multiple of ${sizes.multiple} from ${sizes.min} to ${sizes.max}`,
    num_inference_steps: `a whole number from ${steps.min} to ${steps.max}`,
    guidance_scale: `a number from ${guidance.min} to ${guidance.max}`,
    scheduler: `one of ${schedulers.join(', ')}`,
  };
}

function limitProblems(
  request: PictureRequest,
  card: PictureCard,
  expected: Record<LimitedField, string>,
): FieldProblem[] {
  const { sizes, steps, guidance, schedulers } = card;
  const isSide = (pixels: number): boolean =>
    pixels >= sizes.min && pixels <= sizes.max && pixels % sizes.multiple === 0;
  const { width, height } = sizeOf(request, card);
  const isAllowed: Record<LimitedField, boolean> = {
    size: isSide(width) && isSide(height),
    num_inference_steps: isWithin(request.num_inference_steps, steps),
    guidance_scale: isWithin(request.guidance_scale, guidance),
    scheduler: request.scheduler === undefined || schedulers.includes(request.scheduler),
  };
  return (Object.keys(isAllowed) as LimitedField[])
    .filter((field) => !isAllowed[field])
    .map((field) => invalidValue(field, request[field], expected[field]));
}

function isWithin(value: number | undefined, { min, max }: { min: number; max: number }): boolean {
  return value === undefined || (value >= min && value <= max);
}

function sizeOf({ size = 'auto' }: PictureRequest, card: PictureCard): { width: number; height: number } {
  if (size === 'auto') return card.sizes.default;
  const [width = 0, height = 0] = size.split('x').map(Number);
  return { width, height };
}

function fillDefaults(request: PictureRequest, card: PictureCard, { drawSeed }: RequestOptions): PictureInput {
  const preview = request.preview ?? { every: defaultPreviewEvery };
  const { width, height } = sizeOf(request, card);
  return {
    prompt: request.prompt,
    negativePrompt: request.negative_prompt ?? '',
    width,
    height,
    n: request.n ?? 1,
    numInferenceSteps: request.num_inference_steps ?? card.steps.default,
    guidanceScale: request.guidance_scale ?? card.guidance.default,
    guidanceRescale: request.guidance_rescale ?? 0,
    seed: request.seed ?? drawSeed(),
    scheduler: request.scheduler ?? card.defaultScheduler,
    outputFormat: request.output_format ?? 'png',
    outputCompression: request.output_compression ?? defaultOutputCompression,
    previewEvery: preview === 'off' ? 0 : preview.every,
  };
}
