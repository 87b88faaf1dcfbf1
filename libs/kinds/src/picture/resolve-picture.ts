import { type FieldProblem, invalidValue } from '@darkroom/core';
import type { ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { resolveBody } from '../resolve-body.ts';
import {
  defaultStrength,
  maxLoraRank,
  type PictureAttachment,
  type PictureCard,
  type PictureInput,
} from './picture-input.ts';
import {
  defaultOutputCompression,
  defaultPreviewEvery,
  foreignPictureFields,
  type PictureRequest,
  pictureSchema,
} from './picture-schema.ts';
import { maxUpscaledSide, outputSize } from './upscale.ts';

/** Checks a request's body against the schema and then against what its model can do. Of pictures to begin with, that they may be there: not they themselves. */
export function resolvePicture(body: unknown, card: PictureCard, options: RequestOptions): ResolveResult<PictureInput> {
  const limits = limitsOf(card);
  return resolveBody(body, {
    schema: pictureSchema,
    options,
    expected: Object.fromEntries(limits.map(({ field, expected }) => [field, expected])),
    foreignNames: foreignPictureFields,
    problemsOf: (request) => [
      ...limits
        .filter(({ isMet }) => !isMet(request))
        .map(({ field, expected }) => invalidValue(field, request[field], expected)),
      ...pictureProblems(request, card),
      ...loraProblems(request, card),
    ],
    inputOf: (request) => fillDefaults(request, card, options),
  });
}

interface Limit {
  field: keyof PictureRequest;
  expected: string;
  isMet: (request: PictureRequest) => boolean;
}

/** What the model takes of what the schema lets through. */
function limitsOf(card: PictureCard): Limit[] {
  const { sizes, steps, guidance, schedulers } = card;
  const isSide = (pixels: number): boolean => isWithin(pixels, sizes) && pixels % sizes.multiple === 0;
  return [
    {
      field: 'size',
      expected: `"auto" or "WIDTHxHEIGHT", each side a multiple of ${sizes.multiple} from ${sizes.min} to ${sizes.max}`,
      isMet: (request) => Object.values(sizeOf(request, card)).every(isSide),
    },
    {
      field: 'num_inference_steps',
      expected: `a whole number from ${steps.min} to ${steps.max}`,
      isMet: (request) => isWithin(request.num_inference_steps, steps),
    },
    {
      field: 'guidance_scale',
      expected: `a number from ${guidance.min} to ${guidance.max}`,
      isMet: (request) => isWithin(request.guidance_scale, guidance),
    },
    {
      field: 'scheduler',
      expected: `one of ${schedulers.join(', ')}`,
      isMet: ({ scheduler }) => scheduler === undefined || schedulers.includes(scheduler),
    },
    {
      field: 'upscale',
      expected: upscaleExpected(card),
      isMet: (request) => isUpscalable(request, card),
    },
  ];
}

/** Pictures to begin with that the model does not take, or that are not there. */
function pictureProblems(request: PictureRequest, card: PictureCard): FieldProblem[] {
  const { image, mask, strength } = request;
  const takes = (what: PictureAttachment): boolean => card.takes?.includes(what) ?? false;
  const problems: FieldProblem[] = [];
  if (image !== undefined && !takes('image'))
    problems.push(invalidValue('image', image, `none: ${card.id} draws from prompts only`));
  if (mask !== undefined && (image === undefined || !takes('mask')))
    problems.push(
      invalidValue('mask', mask, image === undefined ? 'none without an image' : `none: ${card.id} takes no masks`),
    );
  if (strength !== undefined && image === undefined)
    problems.push(invalidValue('strength', strength, 'none without an image'));
  return problems;
}

/** One each of those that are not there or there twice; if all are, one for all whose ranks are too many together. */
function loraProblems({ loras = [] }: PictureRequest, card: PictureCard): FieldProblem[] {
  const ranks = new Map(card.loras?.map(({ id, rank }) => [id, rank]));
  const there = ranks.size === 0 ? 'no loras: the model has none' : `one of ${[...ranks.keys()].join(', ')}`;
  const problems = loras.flatMap(({ id }, at) => {
    const isTwice = loras.findIndex((other) => other.id === id) < at;
    if (ranks.has(id) && !isTwice) return [];
    return [invalidValue(`loras.${at}.id`, id, isTwice ? 'each lora once' : there)];
  });
  const rank = loras.reduce((sum, { id }) => sum + (ranks.get(id) ?? 0), 0);
  if (problems.length > 0 || rank <= maxLoraRank) return problems;
  return [invalidValue('loras', loras, `ranks of at most ${maxLoraRank} together, not ${rank}`)];
}

function upscaleExpected({ upscales = [] }: PictureCard): string {
  if (upscales.length === 0) return 'none: the model has no upscaler';
  return `${upscales.join(' or ')}, and no side of more than ${maxUpscaledSide} pixels then`;
}

function isUpscalable(request: PictureRequest, card: PictureCard): boolean {
  const { upscale } = request;
  if (upscale === undefined) return true;
  const { width, height } = outputSize({ ...sizeOf(request, card), upscale });
  return card.upscales?.includes(upscale) === true && Math.max(width, height) <= maxUpscaledSide;
}

function isWithin(value: number | undefined, { min, max }: { min: number; max: number }): boolean {
  return value === undefined || (value >= min && value <= max);
}

function sizeOf({ size = 'auto' }: PictureRequest, card: PictureCard): { width: number; height: number } {
  if (size === 'auto') return card.sizes.default;
  const [width = 0, height = 0] = size.split('x').map(Number);
  return { width, height };
}

function fillDefaults(
  request: PictureRequest,
  card: PictureCard,
  { drawSeed, embedMetadata = false }: RequestOptions,
): PictureInput {
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
    ...picturesOf(request),
    ...((request.metadata ?? embedMetadata) && { metadata: true }),
    ...(request.upscale !== undefined && { upscale: request.upscale }),
    ...(request.loras?.length && { loras: request.loras.map(({ id, scale = 1 }) => ({ id, scale })) }),
  };
}

function picturesOf({ image, mask, strength }: PictureRequest): Pick<PictureInput, 'image' | 'mask' | 'strength'> {
  if (image === undefined) return {};
  const hasMask = mask !== undefined;
  return { image: true, ...(hasMask ? { mask: true } : {}), strength: strength ?? defaultStrength(hasMask) };
}
