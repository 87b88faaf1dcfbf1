import type { ModelCard } from '@darkroom/core';
import type { z } from 'zod';
import type { DarkroomJson } from './darkroom-json.ts';
import type { unetConfigSchema } from './model-configs.ts';
import { modelFileError } from './model-file.ts';
import type { ParsedSchedulerConfig } from './schedulers/scheduler-config.ts';
import { fittingSchedulers } from './schedulers/scheduler-misfit.ts';
import type { TokenizerFiles } from './tokenizer/tokenizer-files.ts';

// What a diffusers pipeline does when it is not told otherwise, and limits that keep a mistyped number from costing hours.
const defaultSteps = { min: 1, max: 200, default: 50 };
const defaultGuidance = { min: 0, max: 30, default: 7.5 };

/** What the files of a model say about it. */
export interface CreateModelCardOptions {
  id: string;
  created: number;
  pipelineClass: string;
  unet: z.infer<typeof unetConfigSchema>;
  /** Pixels of the picture for one of the latents, each way. */
  factor: number;
  darkroom: DarkroomJson;
  scheduler: ParsedSchedulerConfig;
  tokenizer: TokenizerFiles;
}

/**
 * Puts the model's card together.
 *
 * @throws DarkroomError `model_unsupported` if darkroom.json's numbers contradict each other or the model.
 */
export function createModelCard(options: CreateModelCardOptions): ModelCard {
  const { id, created, pipelineClass, darkroom, scheduler, tokenizer } = options;
  const { numTrainTimesteps, originalInferenceSteps } = scheduler.config;
  const trainedSteps = scheduler.defaultScheduler === 'lcm' ? originalInferenceSteps : numTrainTimesteps;
  const maxSteps = Math.min(defaultSteps.max, trainedSteps);
  return {
    id,
    created,
    ownedBy: darkroom.ownedBy ?? 'darkroom',
    pipeline: pipelineClass,
    sizes: sizesOf(options),
    steps: limitsOf('steps', darkroom.steps, { ...defaultSteps, max: maxSteps }),
    guidance: limitsOf('guidance', darkroom.guidance, defaultGuidance),
    schedulers: fittingSchedulers(scheduler.config),
    defaultScheduler: scheduler.defaultScheduler,
    maxPromptTokens: tokenizer.maxTokens,
  };
}

interface Limits {
  min: number;
  max: number;
  default: number;
}

function limitsOf(field: string, given: DarkroomJson['steps'], absent: Limits): Limits {
  const min = given?.min ?? absent.min;
  const max = given?.max ?? absent.max;
  const value = given?.default ?? Math.min(Math.max(absent.default, min), max);
  if (min <= value && value <= max) return { min, max, default: value };
  throw modelFileError('darkroom.json', `${field}.default: ${value} is not in ${min} … ${max}`);
}

function sizesOf({ unet, factor, darkroom: { sizes } }: CreateModelCardOptions): ModelCard['sizes'] {
  const [latentHeight, latentWidth] =
    typeof unet.sample_size === 'number' ? [unet.sample_size, unet.sample_size] : unet.sample_size;
  // The UNet halves the latents once between two levels, and an odd side would not come back to its size.
  const needed = factor * 2 ** (unet.block_out_channels.length - 1);
  const multiple = sizes?.multiple ?? needed;
  if (multiple % needed !== 0) {
    throw modelFileError('darkroom.json', `sizes.multiple: ${multiple} is not a multiple of ${needed} pixels`);
  }
  const byDefault = sizes?.default ?? { width: latentWidth * factor, height: latentHeight * factor };
  const min = sizes?.min ?? roundUp(Math.min(byDefault.width, byDefault.height) / 2, multiple);
  const max = sizes?.max ?? roundUp(Math.max(byDefault.width, byDefault.height) * 2, multiple);
  const allowed = { 'sizes.min': min, 'sizes.max': max, ...prefixed(byDefault) };
  for (const [field, value] of Object.entries(allowed)) {
    if (value % multiple === 0 && value >= min && value <= max) continue;
    throw modelFileError('darkroom.json', `${field}: ${value} is not a multiple of ${multiple} in ${min} … ${max}`);
  }
  return { multiple, min, max, default: byDefault };
}

function prefixed({ width, height }: { width: number; height: number }): Record<string, number> {
  return { 'sizes.default.width': width, 'sizes.default.height': height };
}

function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}
