/**
 * Ancestral sampling with Euler steps: each step goes below the next noise level and adds fresh noise back up to it.
 * Source: k-diffusion `sample_euler_ancestral` (Crowson 2022); diffusers `EulerAncestralDiscreteScheduler`.
 *
 * It draws noise: its rows need their generator's snapshot beside the scheduler's to resume.
 */

import { createNoiseSchedule } from './schedule/noise-schedule.ts';
import { originalWeights } from './original-weights.ts';
import { assertStepCount, countSteps } from './count-steps.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
import { interpolateSigma } from './schedule/sigma-grid.ts';
import { spacedTimesteps } from './schedule/timestep-grid.ts';

/**
 * Makes an ancestral Euler scheduler for one row.
 *
 * Prediction type `sample` works as in `euler`; diffusers leaves it out of this class.
 *
 * @throws RangeError if the number of steps does not suit the model.
 */
export function createEulerAncestralScheduler({ config, numInferenceSteps }: CreateSchedulerOptions): Scheduler {
  assertStepCount(numInferenceSteps, config.numTrainTimesteps);
  const { predictionType } = config;
  const timesteps = spacedTimesteps(config, numInferenceSteps).map(Math.fround);
  const trained = createNoiseSchedule(config).sigmas;
  const sigmas = Float32Array.from([...timesteps.map((timestep) => interpolateSigma(trained, timestep)), 0]);
  const maxSigma = sigmas[0]!;
  let noise = new Float32Array(0);

  return countSteps({
    name: 'euler_ancestral',
    timesteps,
    // Leading spacing does not start at the last timestep, so something of the picture is in the first latents.
    initNoiseSigma: config.timestepSpacing === 'leading' ? Math.hypot(maxSigma, 1) : maxSigma,
    inputScaleAt: (stepIndex) => 1 / Math.sqrt(sigmas[stepIndex]! ** 2 + 1),
    step({ modelOutput, sample, predictedOriginal, fillNoise }, stepIndex) {
      const sigma = sigmas[stepIndex]!;
      const next = sigmas[stepIndex + 1]!;
      // The share of the next noise level that is drawn anew, and the rest, which the step goes down to.
      const up = Math.sqrt((next ** 2 * (sigma ** 2 - next ** 2)) / sigma ** 2);
      const down = Math.sqrt(next ** 2 - up ** 2);
      const change = down - sigma;
      // The model's input has the variance 1; these latents are that much larger.
      const scale = Math.sqrt(sigma * sigma + 1);
      const { ofSample, ofOutput } = originalWeights(predictionType, 1 / scale, sigma / scale);
      if (noise.length !== sample.length) noise = new Float32Array(sample.length);
      // Drawn at the last step, too, where it counts for nothing: the generator then stands where torch's does.
      fillNoise(noise);

      for (let index = 0; index < sample.length; index++) {
        const value = sample[index]!;
        const original = (ofSample / scale) * value + ofOutput * modelOutput[index]!;
        const derivative = (value - original) / sigma;
        predictedOriginal[index] = original;
        sample[index] = value + derivative * change + noise[index]! * up;
      }
    },
  });
}
