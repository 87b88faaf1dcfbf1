import type { RefusedFile } from '@darkroom/core';
import { type ImageAttachment, type ImageCard, promptSyntaxes } from '@darkroom/kinds';
import type { LoraFile } from '../loras/lora-file.ts';
import type { ModelLoras } from '../loras/model-loras.ts';
import type { DarkroomJson } from './darkroom-json.ts';
import type { DenoiserConfig } from './config/denoiser-config.ts';
import { modelFileError } from '@darkroom/runtime/model-file';
import { type PipelineClass, pipelineFamilies, type PipelineFamily } from './config/pipeline-classes.ts';
import type { ParsedSchedulerConfig } from '../schedulers/config/parse-scheduler-config.ts';
import { fittingSchedulers, schedulerMisfit } from '../schedulers/config/scheduler-misfit.ts';
import type { SchedulerName } from '../schedulers/config/scheduler-config.ts';

// Defaults of diffusers' pipelines.
const defaults: Readonly<Record<PipelineFamily, { steps: number; guidance: number }>> = {
  'stable-diffusion': { steps: 50, guidance: 7.5 },
  'latent-consistency': { steps: 4, guidance: 8.5 },
  'stable-diffusion-xl': { steps: 50, guidance: 5 },
  'stable-diffusion-3': { steps: 28, guidance: 7 },
  cogview4: { steps: 50, guidance: 5 },
};
/** Families whose text encoders are all CLIP: weights of other encoders' tokens have no established meaning. */
const familiesOfClip: readonly PipelineFamily[] = ['stable-diffusion', 'latent-consistency', 'stable-diffusion-xl'];
// Limits that keep a mistyped number from costing hours.
const stepLimits = { min: 1, max: 200 };
const guidanceLimits = { min: 0, max: 30 };

export interface CreateModelCardOptions {
  id: string;
  created: number;
  pipelineClass: PipelineClass;
  denoiser: DenoiserConfig;
  /** Pixels per latent, in each direction. */
  factor: number;
  darkroom: DarkroomJson;
  scheduler: ParsedSchedulerConfig;
  maxPromptTokens: number;
  takes: readonly ImageAttachment[];
  /** Options for decoded images. */
  finishing: Pick<ImageCard, 'safetyChecker' | 'upscales'>;
  loras: Pick<ModelLoras, 'files' | 'refused'>;
  examples: Pick<ImageCard, 'examples'>;
}

/**
 * Builds the model's card.
 *
 * @throws DarkroomError `model_unsupported` if darkroom.json's numbers contradict each other or the model.
 */
export function createModelCard(options: CreateModelCardOptions): ImageCard {
  const { id, created, pipelineClass, darkroom, scheduler, maxPromptTokens, takes, loras, finishing, examples } =
    options;
  const family = pipelineFamilies[pipelineClass];
  const { schedulers, defaultScheduler } = schedulersOf(family, scheduler);
  const { numTrainTimesteps, originalInferenceSteps } = scheduler.config;
  const trainedSteps = defaultScheduler === 'lcm' ? originalInferenceSteps : numTrainTimesteps;
  const maxSteps = Math.min(stepLimits.max, trainedSteps);
  return {
    id,
    created,
    ownedBy: darkroom.ownedBy ?? 'darkroom',
    kind: 'image',
    pipeline: pipelineClass,
    sizes: sizesOf(options),
    steps: limitsOf('steps', darkroom.steps, { ...stepLimits, default: defaults[family].steps, max: maxSteps }),
    guidance: limitsOf('guidance', darkroom.guidance, { ...guidanceLimits, default: defaults[family].guidance }),
    schedulers,
    defaultScheduler,
    maxPromptTokens,
    ...(familiesOfClip.includes(family) && { promptSyntaxes }),
    ...(takes.length > 0 && { takes }),
    ...finishing,
    ...examples,
    ...(loras.files.size > 0 && { loras: [...loras.files.values()].map(cardOfLora) }),
    ...(loras.refused.length > 0 && { refusedFiles: listedFiles(loras.refused) }),
  };
}

/** Cards are read often, so only the first files and the beginning of each reason are listed. */
const maxListedFiles = 50;
const maxReason = 300;

function listedFiles(refused: readonly RefusedFile[]): RefusedFile[] {
  return refused.slice(0, maxListedFiles).map(({ file, reason }) => ({ file, reason: reason.slice(0, maxReason) }));
}

function cardOfLora({ id, name, rank, leftOut }: LoraFile): NonNullable<ImageCard['loras']>[number] {
  return { id, rank, ...(name !== id && { name }), ...(leftOut.length > 0 && { leftOut }) };
}

/**
 * Families with a single scheduler: consistency models were distilled for theirs, and CogView4's pipeline prescribes
 * sigmas and timesteps that only one scheduler accepts.
 */
const onlySchedulers: Partial<Record<PipelineFamily, SchedulerName>> = {
  'latent-consistency': 'lcm',
  cogview4: 'flow_match_euler',
};
/** Families whose models always have a config for this scheduler; any other config belongs to another model. */
const usualSchedulers: typeof onlySchedulers = { 'stable-diffusion-3': 'flow_match_euler', ...onlySchedulers };

function schedulersOf(family: PipelineFamily, { config, defaultScheduler }: ParsedSchedulerConfig) {
  const usual = usualSchedulers[family];
  const misfit = usual && schedulerMisfit(usual, config);
  if (misfit !== undefined) throw modelFileError('scheduler/scheduler_config.json', misfit);
  const only = onlySchedulers[family];
  if (only !== undefined) return { schedulers: [only], defaultScheduler: only };
  return { schedulers: fittingSchedulers(config), defaultScheduler };
}

function limitsOf(field: string, given: DarkroomJson['steps'], fallback: ImageCard['steps']) {
  const min = given?.min ?? fallback.min;
  const max = given?.max ?? fallback.max;
  const value = given?.default ?? Math.min(Math.max(fallback.default, min), max);
  if (min <= value && value <= max) return { min, max, default: value };
  throw modelFileError('darkroom.json', `${field}.default: ${value} is not in ${min} … ${max}`);
}

function sizesOf({ denoiser, factor, darkroom: { sizes } }: CreateModelCardOptions): ImageCard['sizes'] {
  const [latentHeight, latentWidth] = denoiser.sampleSize;
  const needed = factor * denoiser.multiple;
  const multiple = sizes?.multiple ?? needed;
  if (multiple % needed !== 0) {
    throw modelFileError('darkroom.json', `sizes.multiple: ${multiple} is not a multiple of ${needed} pixels`);
  }
  const byDefault = sizes?.default ?? { width: latentWidth * factor, height: latentHeight * factor };
  const limit = Math.floor(((denoiser.maxSide ?? Number.POSITIVE_INFINITY) * factor) / multiple) * multiple;
  const min = sizes?.min ?? roundUp(Math.min(byDefault.width, byDefault.height) / 2, multiple);
  const max = sizes?.max ?? Math.min(roundUp(Math.max(byDefault.width, byDefault.height) * 2, multiple), limit);
  if (max > limit) {
    throw modelFileError(
      'darkroom.json',
      `sizes.max: ${max} is more than ${limit}, the maximum of ${denoiser.configFile}`,
    );
  }
  const { width, height } = byDefault;
  const allowed = { 'sizes.min': min, 'sizes.max': max, 'sizes.default.width': width, 'sizes.default.height': height };
  for (const [field, value] of Object.entries(allowed)) {
    if (value % multiple === 0 && value >= min && value <= max) continue;
    throw modelFileError('darkroom.json', `${field}: ${value} is not a multiple of ${multiple} in ${min} … ${max}`);
  }
  return { multiple, min, max, default: byDefault };
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
