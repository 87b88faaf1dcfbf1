/**
 * Euler's method on the probability flow ODE, without churn: deterministic, first order.
 * Source: Karras et al. 2022, "Elucidating the Design Space", Algorithm 2 with S_churn = 0; diffusers
 * `EulerDiscreteScheduler`.
 *
 * Latents are kept at the scale x0 + sigma·noise, so the model's input is scaled down at each step.
 */

import { createNoiseSchedule } from './schedule/noise-schedule.ts';
import { originalWeights } from './original-weights.ts';
import { assertStepCount, countSteps } from './count-steps.ts';
import type { SchedulerConfig } from './config/scheduler-config.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
import { interpolateSigma, scheduledSigmas, sigmaToTimestep } from './schedule/sigma-grid.ts';
import { spacedTimesteps } from './schedule/timestep-grid.ts';

/**
 * Makes an Euler scheduler for one row.
 *
 * @throws RangeError if the number of steps does not suit the model.
 */
export function createEulerScheduler({ config, numInferenceSteps }: CreateSchedulerOptions): Scheduler {
  assertStepCount(numInferenceSteps, config.numTrainTimesteps);
  const { predictionType } = config;
  const { timesteps, sigmas } = createGrid(config, numInferenceSteps);
  const maxSigma = sigmas[0]!;

  return countSteps({
    name: 'euler',
    timesteps,
    // Leading spacing does not start at the last timestep, so something of the picture is in the first latents.
    initNoiseSigma: config.timestepSpacing === 'leading' ? Math.hypot(maxSigma, 1) : maxSigma,
    inputScaleAt: (stepIndex) => 1 / Math.sqrt(sigmas[stepIndex]! ** 2 + 1),
    step({ modelOutput, sample, predictedOriginal }, stepIndex) {
      const sigma = sigmas[stepIndex]!;
      const change = sigmas[stepIndex + 1]! - sigma;
      // The model's input has the variance 1; these latents are that much larger.
      const scale = Math.sqrt(sigma * sigma + 1);
      const { ofSample, ofOutput } = originalWeights(predictionType, 1 / scale, sigma / scale);

      for (let index = 0; index < sample.length; index++) {
        const value = sample[index]!;
        const original = (ofSample / scale) * value + ofOutput * modelOutput[index]!;
        const derivative = (value - original) / sigma;
        predictedOriginal[index] = original;
        sample[index] = value + derivative * change;
      }
    },
  });
}

/** Timesteps, and the sigma at each with the final one behind them, in float32 as diffusers keeps both. */
function createGrid(config: SchedulerConfig, count: number): { timesteps: number[]; sigmas: Float32Array } {
  const trained = createNoiseSchedule(config).sigmas;
  let timesteps = spacedTimesteps(config, count).map(Math.fround);
  let sigmas = timesteps.map((timestep) => interpolateSigma(trained, timestep));
  if (config.sigmaSchedule !== null) {
    const logSigmas = trained.map(Math.log);
    sigmas = scheduledSigmas(config.sigmaSchedule, { sigmaMax: sigmas[0]!, sigmaMin: sigmas.at(-1)!, count });
    timesteps = sigmas.map((sigma) => Math.fround(sigmaToTimestep(sigma, logSigmas)));
  }
  const last = config.finalSigmasType === 'zero' ? 0 : trained[0]!;
  return { timesteps, sigmas: Float32Array.from([...sigmas, last]) };
}
