/**
 * Sampling of latent consistency models: each step estimates the finished latents and adds fresh noise up to the next
 * noise level.
 * Source: Luo et al. 2023, "Latent Consistency Models", Algorithm 3 and appendix C; diffusers `LCMScheduler`.
 */

import { itemAt, numberAt } from '@darkroom/core';
import { createNoiseSchedule } from './sigmas.ts';
import { createOriginalEstimate, levelsOfAlpha } from './original-estimate.ts';
import type { CreateSchedulerOptions, SchedulerRule } from './scheduler.ts';

/** Standard deviation of the data in the boundary condition (Karras et al. 2022). */
const SIGMA_DATA = 0.5;

/**
 * Creates an LCM rule for one row. `predictedOriginal` is the value of the consistency function.
 *
 * @throws RangeError if there are more steps than the model was distilled from, or the first timestep has no signal
 * left and the model predicts noise: x0 is then 0/0.
 */
export function createLcmScheduler(options: CreateSchedulerOptions): SchedulerRule {
  const { config } = options;
  const timesteps = createTimesteps(options);
  const { alphasCumprod } = createNoiseSchedule({
    ...config,
    betaStart: config.betaStart ?? 0.00085,
    betaEnd: config.betaEnd ?? 0.012,
    betaSchedule: config.betaSchedule ?? 'scaled_linear',
  });
  if (config.predictionType === 'epsilon' && alphasCumprod[itemAt(timesteps, 0)] === 0) {
    throw new RangeError('lcm cannot start from zero terminal SNR with a model that predicts noise');
  }
  const clipLimit = config.clipSample === true ? config.clipSampleRange : Number.POSITIVE_INFINITY;
  const estimateOriginal = createOriginalEstimate(config, clipLimit);
  let noise = new Float32Array(0);

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => levelsOfAlpha(itemAt(alphasCumprod, itemAt(timesteps, stepIndex))),
    step(arrays, stepIndex) {
      const { sample, predictedOriginal, fillNoise } = arrays;
      const timestep = itemAt(timesteps, stepIndex);
      const alphaCumprod = itemAt(alphasCumprod, timestep);
      const isLast = stepIndex === timesteps.length - 1;
      const nextAlphaCumprod = isLast ? 1 : itemAt(alphasCumprod, itemAt(timesteps, stepIndex + 1));
      const nextSignal = Math.sqrt(nextAlphaCumprod);
      const nextNoise = Math.sqrt(1 - nextAlphaCumprod);
      // The boundary condition: at timestep 0 the function is the identity.
      const scaled = timestep * config.timestepScaling;
      const skip = SIGMA_DATA ** 2 / (scaled ** 2 + SIGMA_DATA ** 2);
      const out = scaled / Math.sqrt(scaled ** 2 + SIGMA_DATA ** 2);
      if (noise.length !== sample.length) noise = new Float32Array(sample.length);
      // Draw no noise at the last step, like diffusers, so that the generator's state equals torch's.
      if (!isLast) fillNoise(noise);

      estimateOriginal(arrays, Math.sqrt(alphaCumprod), Math.sqrt(1 - alphaCumprod));
      for (let index = 0; index < sample.length; index++) {
        const denoised = out * numberAt(predictedOriginal, index) + skip * numberAt(sample, index);
        predictedOriginal[index] = denoised;
        sample[index] = nextSignal * denoised + (isLast ? 0 : nextNoise * numberAt(noise, index));
      }
    },
  };
}

/**
 * Selects timesteps from those that the model was distilled on, highest first. If `distilledShare` leaves fewer than
 * the requested steps, uses all that are left; diffusers throws in that case.
 */
function createTimesteps({ config, numInferenceSteps: count, distilledShare = 1 }: CreateSchedulerOptions): number[] {
  const { numTrainTimesteps, originalInferenceSteps } = config;
  if (count > originalInferenceSteps) {
    throw new RangeError(
      `${count} steps are more than the ${originalInferenceSteps} that the model was distilled from ` +
        '(original_inference_steps); use fewer steps',
    );
  }
  const distance = Math.floor(numTrainTimesteps / originalInferenceSteps);
  const used = Math.max(Math.floor(originalInferenceSteps * distilledShare), 1);
  const length = Math.min(count, used);
  const stride = used / length;
  return Array.from({ length }, (_, index) => (used - Math.floor(index * stride)) * distance - 1);
}
