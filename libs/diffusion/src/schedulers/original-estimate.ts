import { numberAt } from '@darkroom/core';
import type { PredictionType, SchedulerConfig } from './config/scheduler-config.ts';
import type { NoiseLevels, SchedulerStepArguments } from './scheduler.ts';

/** Weights of the estimate x0 = ofSample · latents + ofOutput · model output. */
export interface OriginalWeights {
  readonly ofSample: number;
  readonly ofOutput: number;
}

/**
 * Returns the weights of the x0 estimate for latents `signal`·x0 + `noise`·ε, by what the model predicts: the noise,
 * x0, the velocity `signal`·ε − `noise`·x0 (Salimans and Ho 2022), or the flow ε − x0, for which `signal` is 1 −
 * `noise` (Lipman et al. 2022).
 */
export function originalWeights(predictionType: PredictionType, signal: number, noise: number): OriginalWeights {
  switch (predictionType) {
    case 'epsilon':
      return { ofSample: 1 / signal, ofOutput: -noise / signal };
    case 'v_prediction':
      return { ofSample: signal, ofOutput: -noise };
    case 'sample':
      return { ofSample: 0, ofOutput: 1 };
    case 'flow_prediction':
      return { ofSample: 1, ofOutput: -noise };
  }
}

/** Splits a sigma, which is noise over signal, into the two, for latents of variance 1. */
export function levelsOf(sigma: number): NoiseLevels {
  const signal = 1 / Math.sqrt(sigma * sigma + 1);
  return { signal, noise: sigma * signal };
}

/** Splits ᾱ into signal and noise. */
export function levelsOfAlpha(alphaCumprod: number): NoiseLevels {
  return { signal: Math.sqrt(alphaCumprod), noise: Math.sqrt(Math.fround(1 - alphaCumprod)) };
}

type EstimateOriginal = (arrays: SchedulerStepArguments, signal: number, noise: number) => OriginalWeights;

/**
 * Returns a function that writes a step's `predictedOriginal` and returns the weights. The estimate is clipped to ±
 * `clipLimit`; dynamic thresholding replaces the clipping if the config has it.
 */
export function createOriginalEstimate(config: SchedulerConfig, clipLimit = Infinity): EstimateOriginal {
  const { predictionType, thresholding } = config;
  const limit = thresholding ? Infinity : clipLimit;
  const threshold = thresholding ? createDynamicThreshold(config) : undefined;
  return ({ modelOutput, sample, predictedOriginal }, signal, noise) => {
    const weights = originalWeights(predictionType, signal, noise);
    const { ofSample, ofOutput } = weights;
    for (let index = 0; index < sample.length; index++) {
      const original = ofSample * numberAt(sample, index) + ofOutput * numberAt(modelOutput, index);
      predictedOriginal[index] = Math.min(Math.max(original, -limit), limit);
    }
    threshold?.(predictedOriginal);
    return weights;
  };
}

/**
 * Returns a function that limits x0 estimates to −1 … 1: it clips all values to ± s and divides them by s, the
 * configured quantile of their magnitudes, limited to 1 … `sampleMaxValue`. It changes its argument and reuses one
 * buffer between calls.
 * Source: Saharia et al. 2022, "Imagen", section 2.3; diffusers `_threshold_sample`.
 */
function createDynamicThreshold(config: SchedulerConfig): (original: Float32Array) => void {
  let sorted = new Float32Array(0);
  return (original) => {
    if (sorted.length !== original.length) sorted = new Float32Array(original.length);
    for (let index = 0; index < original.length; index++) sorted[index] = Math.abs(numberAt(original, index));
    sorted.sort();
    // torch.quantile interpolates linearly between the two nearest ranks.
    const rank = config.dynamicThresholdingRatio * (sorted.length - 1);
    const below = numberAt(sorted, Math.floor(rank));
    const quantile = below + (numberAt(sorted, Math.ceil(rank)) - below) * (rank - Math.floor(rank));
    // torch.clamp with a minimum above its maximum returns the maximum.
    const limit = Math.min(Math.max(quantile, 1), config.sampleMaxValue);
    for (let index = 0; index < original.length; index++) {
      original[index] = Math.min(Math.max(numberAt(original, index), -limit), limit) / limit;
    }
  };
}
