import type { PredictionType, SchedulerConfig } from './config/scheduler-config.ts';
import type { NoiseLevels, SchedulerStepArguments } from './scheduler.ts';

/** x0 = ofSample · latents + ofOutput · model output. */
export interface OriginalWeights {
  readonly ofSample: number;
  readonly ofOutput: number;
}

/**
 * How the estimate of the finished latents follows from latents that are `signal`·x0 + `noise`·ε, whatever it is that
 * the model says: the noise, the finished latents, the velocity `signal`·ε − `noise`·x0 (Salimans and Ho 2022), or the
 * flow ε − x0, for which `signal` is 1 − `noise` (Lipman et al. 2022).
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

/** A sigma is noise over signal of the latents whose variance is 1; this splits it into the two. */
export function levelsOf(sigma: number): NoiseLevels {
  const signal = 1 / Math.sqrt(sigma * sigma + 1);
  return { signal, noise: sigma * signal };
}

/** The same of ᾱ. */
export function levelsOfAlpha(alphaCumprod: number): NoiseLevels {
  return { signal: Math.sqrt(alphaCumprod), noise: Math.sqrt(Math.fround(1 - alphaCumprod)) };
}

type EstimateOriginal = (arrays: SchedulerStepArguments, signal: number, noise: number) => OriginalWeights;

/**
 * Makes a function that writes `predictedOriginal` of a step and says by which weights: within ± `clipLimit`, or pressed
 * into its range by dynamic thresholding, which takes the place of clipping.
 */
export function createOriginalEstimate(config: SchedulerConfig, clipLimit = Infinity): EstimateOriginal {
  const { predictionType, thresholding } = config;
  const limit = thresholding ? Infinity : clipLimit;
  const threshold = thresholding ? createDynamicThreshold(config) : undefined;
  return ({ modelOutput, sample, predictedOriginal }, signal, noise) => {
    const weights = originalWeights(predictionType, signal, noise);
    const { ofSample, ofOutput } = weights;
    for (let index = 0; index < sample.length; index++) {
      const original = ofSample * sample[index]! + ofOutput * modelOutput[index]!;
      predictedOriginal[index] = Math.min(Math.max(original, -limit), limit);
    }
    threshold?.(predictedOriginal);
    return weights;
  };
}

/**
 * Makes a function that presses x0 estimates into −1 … 1 by their own extremes: all values are clipped to ± s and divided
 * by s, the quantile of their magnitudes that the config asks for, within 1 … `sampleMaxValue`.
 * Source: Saharia et al. 2022, "Imagen", section 2.3; diffusers `_threshold_sample`.
 *
 * @returns changes the array it is given; keeps one array of its own between calls, so that steps allocate nothing.
 */
function createDynamicThreshold(config: SchedulerConfig): (original: Float32Array) => void {
  let sorted = new Float32Array(0);
  return (original) => {
    if (sorted.length !== original.length) sorted = new Float32Array(original.length);
    for (let index = 0; index < original.length; index++) sorted[index] = Math.abs(original[index]!);
    sorted.sort();
    // torch.quantile: by straight line between the two nearest ranks.
    const rank = config.dynamicThresholdingRatio * (sorted.length - 1);
    const below = sorted[Math.floor(rank)]!;
    const quantile = below + (sorted[Math.ceil(rank)]! - below) * (rank - Math.floor(rank));
    // torch.clamp with a minimum above its maximum gives the maximum.
    const limit = Math.min(Math.max(quantile, 1), config.sampleMaxValue);
    for (let index = 0; index < original.length; index++) {
      original[index] = Math.min(Math.max(original[index]!, -limit), limit) / limit;
    }
  };
}
