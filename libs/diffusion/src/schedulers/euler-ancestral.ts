/**
 * Ancestral sampling with Euler steps: each step goes below the next noise level and adds fresh noise back up to it.
 * Source: k-diffusion `sample_euler_ancestral` (Crowson 2022); diffusers `EulerAncestralDiscreteScheduler`.
 *
 * It draws noise: its rows need their generator's snapshot beside the scheduler's to resume.
 */

import { createNoiseSchedule } from './schedule/noise-schedule.ts';
import { originalWeights } from './original-weights.ts';
import { assertSameLength, assertSnapshot, assertStepCount, assertStepLeft } from './scheduler-checks.ts';
import type { SchedulerConfig } from './config/scheduler-config.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
import { interpolateSigma } from './schedule/sigma-grid.ts';
import { linspace, trailingTimesteps } from './schedule/timestep-grid.ts';

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
  const timesteps = createTimesteps(config, numInferenceSteps).map(Math.fround);
  const trained = createNoiseSchedule(config).sigmas;
  const sigmas = Float32Array.from([...timesteps.map((timestep) => interpolateSigma(trained, timestep)), 0]);
  const maxSigma = sigmas[0]!;
  let stepIndex = 0;
  let noise = new Float32Array(0);

  return {
    name: 'euler_ancestral',
    timesteps,
    // Leading spacing does not start at the last timestep, so something of the picture is in the first latents.
    initNoiseSigma: config.timestepSpacing === 'leading' ? Math.hypot(maxSigma, 1) : maxSigma,
    get stepIndex() {
      return stepIndex;
    },
    scaleModelInput(sample, target, targetOffset) {
      assertStepLeft(stepIndex, timesteps.length);
      const scale = 1 / Math.sqrt(sigmas[stepIndex]! ** 2 + 1);
      target.set(sample, targetOffset); // Throws if it does not fit, which writing by index would not.
      for (let index = 0; index < sample.length; index++) target[targetOffset + index] = sample[index]! * scale;
    },
    step(stepArguments) {
      assertStepLeft(stepIndex, timesteps.length);
      assertSameLength(stepArguments);
      const { modelOutput, sample, predictedOriginal, fillNoise } = stepArguments;
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
      stepIndex += 1;
    },
    snapshot() {
      return { stepIndex, history: [] };
    },
    restore(snapshot) {
      assertSnapshot(snapshot, timesteps.length, 0);
      stepIndex = snapshot.stepIndex;
    },
  };
}

function createTimesteps(
  { numTrainTimesteps, stepsOffset, timestepSpacing }: SchedulerConfig,
  count: number,
): number[] {
  const spacing = timestepSpacing ?? 'linspace';
  if (spacing === 'trailing') return trailingTimesteps(numTrainTimesteps, numTrainTimesteps, count);
  if (spacing === 'linspace') {
    return linspace(0, numTrainTimesteps - 1, count).toReversed();
  }
  const distance = Math.floor(numTrainTimesteps / count);
  return Array.from({ length: count }, (_, index) => (count - 1 - index) * distance + stepsOffset);
}
