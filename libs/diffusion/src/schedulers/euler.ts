/**
 * Euler's method on the probability flow ODE, without churn: deterministic, first order. The ancestral variant steps
 * below the next noise level and adds fresh noise up to it.
 * Source: Karras et al. 2022, "Elucidating the Design Space", Algorithm 2 with S_churn = 0; diffusers
 * `EulerDiscreteScheduler`. k-diffusion `sample_euler_ancestral` (Crowson 2022); diffusers
 * `EulerAncestralDiscreteScheduler`.
 *
 * Latents have the scale x0 + sigma·noise, so the model's input is scaled down at each step.
 */

import { itemAt, lastItem, numberAt } from '@darkroom/core';
import type { SchedulerConfig, SchedulerName } from './config/scheduler-config.ts';
import { originalWeights } from './original-estimate.ts';
import { createNoiseSchedule } from './sigmas.ts';
import { interpolateSigma, scheduledSigmas, type SigmaGrid, sigmaToTimestep } from './sigmas.ts';
import { spacedTimesteps } from './sigmas.ts';
import type { CreateSchedulerOptions, SchedulerRule } from './scheduler.ts';

/**
 * Creates an Euler rule for one row. The ancestral variant also supports prediction type `sample`, unlike diffusers.
 */
export function createEulerScheduler(
  { config, numInferenceSteps }: CreateSchedulerOptions,
  name: SchedulerName,
): SchedulerRule {
  const isAncestral = name === 'euler_ancestral';
  // The ancestral class has no options for sigmas.
  const fields = isAncestral ? { ...config, sigmaSchedule: null, finalSigmasType: 'zero' as const } : config;
  const { timesteps, sigmas } = createGrid(fields, numInferenceSteps);
  const maxSigma = itemAt(sigmas, 0);
  let noise = new Float32Array(0);

  return {
    timesteps,
    // Leading spacing does not start at the last timestep, so the first latents contain some signal.
    initNoiseSigma: config.timestepSpacing === 'leading' ? Math.hypot(maxSigma, 1) : maxSigma,
    levelsAt: (stepIndex) => ({ signal: 1, noise: itemAt(sigmas, stepIndex) }),
    inputScaleAt: (stepIndex) => 1 / Math.sqrt(itemAt(sigmas, stepIndex) ** 2 + 1),
    step({ modelOutput, sample, predictedOriginal, fillNoise }, stepIndex) {
      const sigma = itemAt(sigmas, stepIndex);
      const next = itemAt(sigmas, stepIndex + 1);
      // Splits the next noise level into fresh noise (up) and the level that the step goes down to.
      const up = isAncestral ? Math.sqrt((next ** 2 * (sigma ** 2 - next ** 2)) / sigma ** 2) : 0;
      const down = isAncestral ? Math.sqrt(next ** 2 - up ** 2) : next;
      const change = down - sigma;
      // The model's input has variance 1; these latents are larger by this factor.
      const scale = Math.sqrt(sigma * sigma + 1);
      const { ofSample, ofOutput } = originalWeights(config.predictionType, 1 / scale, sigma / scale);
      if (noise.length !== sample.length) noise = new Float32Array(sample.length);
      // Also drawn at the last step, where its factor is 0, so that the generator's state equals torch's.
      if (isAncestral) fillNoise(noise);

      for (let index = 0; index < sample.length; index++) {
        const value = numberAt(sample, index);
        const original = (ofSample / scale) * value + ofOutput * numberAt(modelOutput, index);
        const derivative = (value - original) / sigma;
        predictedOriginal[index] = original;
        sample[index] = value + derivative * change + numberAt(noise, index) * up;
      }
    },
  };
}

function createGrid(config: SchedulerConfig, count: number): SigmaGrid {
  const trained = createNoiseSchedule(config).sigmas;
  let timesteps = spacedTimesteps(config, { count }).map(Math.fround);
  let sigmas = timesteps.map((timestep) => interpolateSigma(trained, timestep));
  if (config.sigmaSchedule !== null) {
    const logSigmas = trained.map(Math.log);
    sigmas = scheduledSigmas(config.sigmaSchedule, { sigmaMax: itemAt(sigmas, 0), sigmaMin: lastItem(sigmas), count });
    timesteps = sigmas.map((sigma) => Math.fround(sigmaToTimestep(sigma, logSigmas)));
  }
  const last = config.finalSigmasType === 'zero' ? 0 : itemAt(trained, 0);
  return { timesteps, sigmas: Float32Array.from([...sigmas, last]) };
}
