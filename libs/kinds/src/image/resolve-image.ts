import { type FieldProblem, invalidValue } from '@darkroom/core';
import type { ResolveResult } from '../request/kind.ts';
import type { RequestPolicy } from '../request/request-fields.ts';
import { resolveBody } from '../request/resolve-body.ts';
import { findScheduler } from './find-scheduler.ts';
import { defaultStrength, maxLoraRank, type ImageAttachment, type ImageCard, type ImageInput } from './image-input.ts';
import {
  defaultOutputCompression,
  defaultPreviewEvery,
  compatImageFields,
  type ImageBody,
  imageRequestSchema,
} from './image-request-schema.ts';
import { maxUpscaledSide, outputSize, type Upscale } from './upscale.ts';
import { promptProblems, withLoraTags } from './resolve-prompt.ts';

/** Validates a request body against the schema, then against the model's capabilities. Does not load input images. */
export function resolveImage(body: unknown, card: ImageCard, options: RequestPolicy): ResolveResult<ImageInput> {
  const expected = expectedValues(card);
  return resolveBody(body, {
    schema: imageRequestSchema,
    options,
    expected,
    compatNames: compatImageFields,
    problemsOf: (request) => [
      ...limitProblems(request, card, expected),
      ...imageProblems(request, card),
      ...optionProblems(request, card),
      ...promptProblems(request, card),
      ...loraProblems(withLoraTags(request), card, request.loras?.length),
    ],
    inputOf: (request) => fillDefaults(withLoraTags(request), card, options),
  });
}

/** Fields that the model limits further than the schema. */
const limitedFields = ['size', 'num_inference_steps', 'guidance_scale', 'scheduler', 'upscale'] as const;
type ExpectedValues = Record<(typeof limitedFields)[number], string>;

function expectedValues({ sizes, steps, guidance, schedulers, upscales = [] }: ImageCard): ExpectedValues {
  return {
    size: `"auto" or "WIDTHxHEIGHT", each side a multiple of ${sizes.multiple} from ${sizes.min} to ${sizes.max}`,
    num_inference_steps: `a whole number from ${steps.min} to ${steps.max}`,
    guidance_scale: `a number from ${guidance.min} to ${guidance.max}`,
    scheduler: `one of ${schedulers.join(', ')}`,
    upscale:
      upscales.length === 0
        ? 'none: the model has no upscaler'
        : `${upscales.join(' or ')}, and no side of more than ${maxUpscaledSide} pixels then`,
  };
}

/** Returns problems with values beyond the limits of the model. */
function limitProblems(request: ImageBody, card: ImageCard, expected: ExpectedValues): FieldProblem[] {
  const { sizes, steps, guidance, schedulers } = card;
  const { upscale, scheduler } = request;
  const { width, height } = sizeOf(request, card);
  const isMultiple = width % sizes.multiple === 0 && height % sizes.multiple === 0;
  const isMet = {
    size: isMultiple && isWithin(width, sizes) && isWithin(height, sizes),
    num_inference_steps: isWithin(request.num_inference_steps, steps),
    guidance_scale: isWithin(request.guidance_scale, guidance),
    scheduler: scheduler === undefined || findScheduler(scheduler, schedulers) !== undefined,
    upscale: upscale === undefined || isUpscalable({ width, height, upscale }, card),
  };
  return limitedFields
    .filter((field) => !isMet[field])
    .map((field) => invalidValue(field, request[field], expected[field]));
}

/** Returns problems with input images that the model does not support or that are missing. */
function imageProblems(request: ImageBody, card: ImageCard): FieldProblem[] {
  const { image, mask, strength } = request;
  const takes = (what: ImageAttachment): boolean => card.takes?.includes(what) ?? false;
  const problems: FieldProblem[] = [];
  if (image !== undefined && !takes('image'))
    problems.push(invalidValue('image', image, `none: ${card.id} draws from prompts only`));
  if (mask !== undefined && (image === undefined || !takes('mask')))
    problems.push(
      invalidValue(
        'mask',
        mask,
        image === undefined ? 'an image too: mask needs an image' : `none: ${card.id} takes no masks`,
      ),
    );
  for (const file of card.needs ?? []) {
    if (request[file] === undefined) problems.push(invalidValue(file, undefined, `one: ${card.id} needs it`));
  }
  if (strength !== undefined && image === undefined)
    problems.push(invalidValue('strength', strength, 'an image too: strength needs an image'));
  return problems;
}

/** Returns problems with fields that the server of the model does not support. An empty negative prompt is none. */
function optionProblems(request: ImageBody, { id, unsupported = [] }: ImageCard): FieldProblem[] {
  return unsupported
    .filter((field) => request[field] !== undefined && request[field] !== '')
    .map((field) => invalidValue(field, request[field], `none: the server that runs ${id} does not support it`));
}

/**
 * Returns problems with unknown and repeated adapters; without these, a problem if the sum of ranks is too high.
 *
 * @param inField number of adapters that are in the field `loras`; the prompt names the others.
 */
function loraProblems({ loras = [] }: ImageBody, card: ImageCard, inField = 0): FieldProblem[] {
  const ranks = new Map(card.loras?.map(({ id, rank }) => [id, rank]));
  const there = ranks.size === 0 ? 'no loras: the model has none' : `one of ${[...ranks.keys()].join(', ')}`;
  const problems = loras.flatMap(({ id }, at) => {
    const isTwice = loras.findIndex((other) => other.id === id) < at;
    if (ranks.has(id) && !isTwice) return [];
    return [invalidValue(at < inField ? `loras.${at}.id` : 'prompt', id, isTwice ? 'each lora once' : there)];
  });
  const rank = loras.reduce((sum, { id }) => sum + (ranks.get(id) ?? 0), 0);
  if (problems.length > 0 || rank <= maxLoraRank) return problems;
  return [invalidValue('loras', loras, `ranks of at most ${maxLoraRank} together, not ${rank}`)];
}

function isUpscalable(size: { width: number; height: number; upscale: Upscale }, card: ImageCard): boolean {
  const { width, height } = outputSize(size);
  return card.upscales?.includes(size.upscale) === true && Math.max(width, height) <= maxUpscaledSide;
}

function isWithin(value: number | undefined, { min, max }: { min: number; max: number }): boolean {
  return value === undefined || (value >= min && value <= max);
}

function sizeOf({ size = 'auto' }: ImageBody, card: ImageCard): { width: number; height: number } {
  if (size === 'auto') return card.sizes.default;
  const [width = 0, height = 0] = size.split('x').map(Number);
  return { width, height };
}

function fillDefaults(request: ImageBody, card: ImageCard, { drawSeed }: RequestPolicy): ImageInput {
  const preview = request.preview ?? { every: defaultPreviewEvery };
  const { width, height } = sizeOf(request, card);
  return {
    prompt: request.prompt,
    negativePrompt: request.negative_prompt ?? '',
    ...(request.prompt_syntax === 'webui' && { promptSyntax: 'webui' }),
    width,
    height,
    n: request.n ?? 1,
    numInferenceSteps: request.num_inference_steps ?? card.steps.default,
    guidanceScale: request.guidance_scale ?? card.guidance.default,
    guidanceRescale: request.guidance_rescale ?? 0,
    seed: request.seed ?? drawSeed(),
    scheduler: (request.scheduler && findScheduler(request.scheduler, card.schedulers)) ?? card.defaultScheduler,
    outputFormat: request.output_format ?? 'png',
    outputCompression: request.output_compression ?? defaultOutputCompression,
    previewEvery: preview === 'off' ? 0 : preview.every,
    ...imagesOf(request),
    ...(request.metadata === true && { metadata: true }),
    ...(request.upscale !== undefined && { upscale: request.upscale }),
    ...(request.loras?.length && { loras: request.loras.map(({ id, scale = 1 }) => ({ id, scale })) }),
  };
}

function imagesOf({ image, mask, strength }: ImageBody): Pick<ImageInput, 'image' | 'mask' | 'strength'> {
  if (image === undefined) return {};
  const hasMask = mask !== undefined;
  return { image: true, ...(hasMask ? { mask: true } : {}), strength: strength ?? defaultStrength(hasMask) };
}
