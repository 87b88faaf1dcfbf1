/**
 * DDIM with eta = 0: deterministic, first order.
 * Source: Song et al. 2020, "Denoising Diffusion Implicit Models", equation 12; diffusers `DDIMScheduler`.
 *
 * Known limits: eta is 0, so `fillNoise` is never called.
 */

import { itemAt, numberAt } from '@darkroom/core';
import { createNoiseSchedule, spacedTimesteps } from './sigmas.ts';
import { createOriginalEstimate, levelsOfAlpha } from './original-estimate.ts';
import type { CreateSchedulerOptions, SchedulerRule } from './scheduler.ts';
import { roundHalfEven } from './numpy.ts';

/**
 * Creates a DDIM rule for one row.
 *
 * @throws RangeError if the first timestep is beyond the model's last, or has no signal left (`rescaleBetasZeroSnr`)
 * and the model predicts noise: x0 is then 0/0.
 */
export function createDdimScheduler({ config, numInferenceSteps }: CreateSchedulerOptions): SchedulerRule {
  const { numTrainTimesteps, timestepSpacing } = config;
  const spacing = { ...config, timestepSpacing: timestepSpacing ?? ('leading' as const) };
  const timesteps = spacedTimesteps(spacing, { count: numInferenceSteps, round: roundHalfEven });
  const { alphasCumprod } = createNoiseSchedule(config);
  const first = itemAt(timesteps, 0);
  if (first >= numTrainTimesteps) {
    throw new RangeError(
      `${numInferenceSteps} steps of leading spacing with offset ${config.stepsOffset} start at timestep ` +
        `${first}, beyond the last of the model, ${numTrainTimesteps - 1}; use fewer steps`,
    );
  }
  if (config.predictionType === 'epsilon' && itemAt(alphasCumprod, first) === 0) {
    throw new RangeError('ddim cannot start from zero terminal SNR with a model that predicts noise');
  }
  const finalAlphaCumprod = (config.setAlphaToOne ?? true) ? 1 : itemAt(alphasCumprod, 0);
  // As in diffusers, not the next entry of timesteps: the two differ with linspace spacing and with offsets.
  const distance = Math.floor(numTrainTimesteps / numInferenceSteps);
  const clipLimit = (config.clipSample ?? true) ? config.clipSampleRange : Number.POSITIVE_INFINITY;
  const estimateOriginal = createOriginalEstimate(config, clipLimit);

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => levelsOfAlpha(itemAt(alphasCumprod, itemAt(timesteps, stepIndex))),
    step(arrays, stepIndex) {
      const { modelOutput, sample, predictedOriginal } = arrays;
      const timestep = itemAt(timesteps, stepIndex);
      const previous = timestep - distance;
      const alphaCumprod = itemAt(alphasCumprod, timestep);
      const previousAlphaCumprod = previous >= 0 ? itemAt(alphasCumprod, previous) : finalAlphaCumprod;
      const signal = Math.sqrt(alphaCumprod);
      const noise = Math.sqrt(1 - alphaCumprod);
      const previousSignal = Math.sqrt(previousAlphaCumprod);
      const previousNoise = Math.sqrt(1 - previousAlphaCumprod);

      const { ofSample, ofOutput } = estimateOriginal(arrays, signal, noise);
      // The noise is not recomputed from the clipped x0 (diffusers: use_clipped_model_output = False).
      const noiseOfSample = (1 - signal * ofSample) / noise;
      const noiseOfOutput = (-signal * ofOutput) / noise;
      for (let index = 0; index < sample.length; index++) {
        const epsilon = noiseOfSample * numberAt(sample, index) + noiseOfOutput * numberAt(modelOutput, index);
        sample[index] = previousSignal * numberAt(predictedOriginal, index) + previousNoise * epsilon;
      }
    },
  };
}
