/**
 * DDIM with eta = 0: deterministic, first order.
 * Source: Song et al. 2020, "Denoising Diffusion Implicit Models", equation 12; diffusers `DDIMScheduler`.
 *
 * Known limits: eta is 0, so `fillNoise` is never called.
 */

import { createDynamicThreshold } from './dynamic-threshold.ts';
import { createNoiseSchedule } from './schedule/noise-schedule.ts';
import { originalWeights } from './original-weights.ts';
import { assertStepCount, countSteps } from './count-steps.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
import { roundHalfEven, spacedTimesteps } from './schedule/timestep-grid.ts';

/**
 * Makes a DDIM scheduler for one row.
 *
 * @throws RangeError if the number of steps does not suit the model, or if the first timestep has no trace of the
 * picture left (`rescaleBetasZeroSnr`) and the model predicts noise: x0 is then 0/0.
 */
export function createDdimScheduler({ config, numInferenceSteps }: CreateSchedulerOptions): Scheduler {
  const { numTrainTimesteps, predictionType, thresholding } = config;
  assertStepCount(numInferenceSteps, numTrainTimesteps);
  const timesteps = spacedTimesteps(
    { ...config, timestepSpacing: config.timestepSpacing ?? 'leading' },
    numInferenceSteps,
    roundHalfEven,
  );
  const { alphasCumprod } = createNoiseSchedule(config);
  if (timesteps[0]! >= numTrainTimesteps) {
    throw new RangeError(
      `${numInferenceSteps} steps of leading spacing with offset ${config.stepsOffset} start at timestep ` +
        `${timesteps[0]!}, beyond the last of the model, ${numTrainTimesteps - 1}; use fewer steps`,
    );
  }
  if (predictionType === 'epsilon' && alphasCumprod[timesteps[0]!] === 0) {
    throw new RangeError('ddim cannot start from zero terminal SNR with a model that predicts noise');
  }
  const finalAlphaCumprod = (config.setAlphaToOne ?? true) ? 1 : alphasCumprod[0]!;
  // Not the next entry of timesteps: with linspace spacing and with offsets diffusers, too, steps by this distance.
  const distance = Math.floor(numTrainTimesteps / numInferenceSteps);
  const clipLimit = (config.clipSample ?? true) ? config.clipSampleRange : Number.POSITIVE_INFINITY;
  const threshold = thresholding === null ? undefined : createDynamicThreshold(thresholding);

  return countSteps({
    name: 'ddim',
    timesteps,
    initNoiseSigma: 1,
    step({ modelOutput, sample, predictedOriginal }, stepIndex) {
      const timestep = timesteps[stepIndex]!;
      const previous = timestep - distance;
      const alphaCumprod = alphasCumprod[timestep]!;
      const previousAlphaCumprod = previous >= 0 ? alphasCumprod[previous]! : finalAlphaCumprod;
      const signal = Math.sqrt(alphaCumprod);
      const noise = Math.sqrt(1 - alphaCumprod);
      const previousSignal = Math.sqrt(previousAlphaCumprod);
      const previousNoise = Math.sqrt(1 - previousAlphaCumprod);

      const { ofSample, ofOutput } = originalWeights(predictionType, signal, noise);
      // The noise is not derived again from the clipped x0 (diffusers: use_clipped_model_output = False).
      const noiseOfSample = (1 - signal * ofSample) / noise;
      const noiseOfOutput = (-signal * ofOutput) / noise;

      for (let index = 0; index < sample.length; index++) {
        const original = ofSample * sample[index]! + ofOutput * modelOutput[index]!;
        predictedOriginal[index] = threshold ? original : Math.min(Math.max(original, -clipLimit), clipLimit);
      }
      threshold?.(predictedOriginal);
      for (let index = 0; index < sample.length; index++) {
        const epsilon = noiseOfSample * sample[index]! + noiseOfOutput * modelOutput[index]!;
        sample[index] = previousSignal * predictedOriginal[index]! + previousNoise * epsilon;
      }
    },
  });
}
