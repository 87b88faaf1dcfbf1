/**
 * PNDM: DDIM's step with the noise of up to four model calls, combined by a linear multistep rule.
 * Source: Liu et al. 2022, "Pseudo Numerical Methods for Diffusion Models on Manifolds", equations 9, 12 and 13,
 * Algorithm 2; diffusers `PNDMScheduler`.
 *
 * The rule needs three earlier noises. In the paper, three Runge-Kutta steps of four model calls each provide them.
 * With `skipPrkSteps` (PLMS, as in Stable Diffusion) the rule starts with one noise and grows; the first step takes two
 * model calls: it is repeated with the mean of the noises at its start and end.
 *
 * With skipped steps, the timestep of the second call appears only once in the list, so later calls start one step
 * below the latents. diffusers does the same, so that a seed makes the same image.
 *
 * Known difference: with skipped steps there is no Runge-Kutta. diffusers takes these steps from the first timesteps,
 * which do not match the latents.
 */

import { itemAt, numberAt, pairUp } from '@darkroom/core';
import { createNoiseSchedule, spacedTimesteps } from './sigmas.ts';
import { levelsOfAlpha, originalWeights } from './original-estimate.ts';
import type { SchedulerConfig } from './config/scheduler-config.ts';
import type { CreateSchedulerOptions, SchedulerRule } from './scheduler.ts';
import { roundHalfEven } from './numpy.ts';

/** Model calls of the three Runge-Kutta steps, four per step. */
const RUNGE_KUTTA_CALLS = 12;
/** Minimum number of steps with Runge-Kutta: with fewer, diffusers confuses the calls. */
const MIN_RUNGE_KUTTA_STEPS = 4;
/** Adams-Bashforth weights of the noises, the newest first. */
const multistepWeights = [
  [1],
  [3 / 2, -1 / 2],
  [23 / 12, -16 / 12, 5 / 12],
  [55 / 24, -59 / 24, 37 / 24, -9 / 24],
] as const;
const MAX_EARLIER_NOISES = multistepWeights.length - 1;
/** Weight of each call of a Runge-Kutta step in the noise of that step. */
const rungeKuttaWeights = [1 / 6, 1 / 3, 1 / 3, 1 / 6] as const;

/**
 * Creates a PNDM rule for one row. @throws RangeError if a step would start beyond the model's last timestep, or there
 * are too few steps for Runge-Kutta.
 */
export function createPndmScheduler(options: CreateSchedulerOptions): SchedulerRule {
  const { config, numInferenceSteps, skippedSteps = 0 } = options;
  const { numTrainTimesteps, predictionType } = config;
  const skipPrkSteps = config.skipPrkSteps || skippedSteps > 0;
  if (!skipPrkSteps && numInferenceSteps < MIN_RUNGE_KUTTA_STEPS) {
    throw new RangeError(`pndm with skip_prk_steps false needs at least ${MIN_RUNGE_KUTTA_STEPS} steps`);
  }
  const distance = Math.floor(numTrainTimesteps / numInferenceSteps);
  const timesteps = createTimesteps({ ...config, skipPrkSteps }, numInferenceSteps, distance);
  if (Math.max(...timesteps) >= numTrainTimesteps) {
    throw new RangeError(
      `${numInferenceSteps} steps of this spacing reach timestep ${Math.max(...timesteps)}, beyond the last of the ` +
        `model, ${numTrainTimesteps - 1}; use fewer steps`,
    );
  }
  const { alphasCumprod } = createNoiseSchedule(config);
  const finalAlphaCumprod = config.setAlphaToOne === true ? 1 : itemAt(alphasCumprod, 0);
  const rungeKuttaCalls = skipPrkSteps ? 0 : RUNGE_KUTTA_CALLS;
  /** Noises of earlier steps, the newest first: at most the three that the rule needs besides the current one. */
  let earlier: Float32Array[] = [];
  /** The latents at the start of a step with several model calls; empty after the last such step. */
  let start = new Float32Array(0);
  /** The sum of a Runge-Kutta step's noises so far; empty after the last such step. */
  let sum = new Float32Array(0);

  /** Returns true if the call repeats the first step. */
  function isRepeatAt(call: number): boolean {
    return skipPrkSteps && call === skippedSteps + 1;
  }

  /** Returns the timesteps that a step starts and ends at; the start can differ from the timestep of the model call. */
  function stepBounds(call: number): { from: number; to: number } {
    const timestep = itemAt(timesteps, call);
    if (call < rungeKuttaCalls) {
      const isHalf = call % 2 === 0;
      return { from: itemAt(timesteps, call - (call % 4)), to: timestep - (isHalf ? Math.floor(distance / 2) : 0) };
    }
    if (isRepeatAt(call)) return { from: timestep + distance, to: timestep };
    return { from: timestep, to: timestep - distance };
  }

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => levelsOfAlpha(itemAt(alphasCumprod, itemAt(timesteps, stepIndex))),
    step({ modelOutput, sample, predictedOriginal }, stepIndex) {
      const stage = stepIndex < rungeKuttaCalls ? stepIndex % 4 : undefined;
      const isRepeat = isRepeatAt(stepIndex);
      const { from, to } = stepBounds(stepIndex);
      const alphaCumprod = itemAt(alphasCumprod, from);
      const nextAlphaCumprod = to >= 0 ? itemAt(alphasCumprod, to) : finalAlphaCumprod;
      const signal = Math.sqrt(alphaCumprod);
      const noiseLevel = Math.sqrt(1 - alphaCumprod);
      // Equation 9.
      const sampleFactor = Math.sqrt(nextAlphaCumprod / alphaCumprod);
      const noiseFactor =
        -(nextAlphaCumprod - alphaCumprod) /
        (alphaCumprod * Math.sqrt(1 - nextAlphaCumprod) +
          Math.sqrt(alphaCumprod * (1 - alphaCumprod) * nextAlphaCumprod));
      const alphaHere = itemAt(alphasCumprod, itemAt(timesteps, stepIndex));
      const { ofSample, ofOutput } = originalWeights(predictionType, Math.sqrt(alphaHere), Math.sqrt(1 - alphaHere));
      const begins = stage === 0 || (skipPrkSteps && stepIndex === skippedSteps);
      if (begins) start = start.length === sample.length ? start : new Float32Array(sample.length);
      if (stage === 0) sum = sum.length === sample.length ? sum.fill(0) : new Float32Array(sample.length);
      const [weight, ...olderWeights] = itemAt(multistepWeights, earlier.length);
      const terms = pairUp(olderWeights, earlier);
      const [newest = modelOutput] = earlier;
      const stageWeight = stage === undefined ? 0 : itemAt(rungeKuttaWeights, stage);

      for (let index = 0; index < sample.length; index++) {
        const output = numberAt(modelOutput, index);
        const value = numberAt(sample, index);
        predictedOriginal[index] = ofSample * value + ofOutput * output;
        if (begins) start[index] = value;
        let combined = output;
        if (stage !== undefined) {
          const total = numberAt(sum, index) + stageWeight * output;
          sum[index] = total;
          // Reads the sum again: it is rounded to float32.
          if (stage === 3) combined = numberAt(sum, index);
        } else if (isRepeat) {
          combined = (output + numberAt(newest, index)) / 2;
        } else {
          combined = weight * output;
          for (const [older, noise] of terms) combined += older * numberAt(noise, index);
        }
        const base = stage !== undefined || isRepeat ? numberAt(start, index) : value;
        const epsilon = predictionType === 'v_prediction' ? signal * combined + noiseLevel * base : combined;
        sample[index] = sampleFactor * base + noiseFactor * epsilon;
      }
      if (stage === 0 || (stage === undefined && !isRepeat)) remember(modelOutput);
      if (isRepeat || stepIndex + 1 === rungeKuttaCalls) start = sum = new Float32Array(0);
    },
    history: {
      lengthAt: (steps) => noiseCountAt(steps) + openArrayCountAt(steps),
      arrays: () => [...earlier, start, sum],
      restore(arrays, steps) {
        earlier = arrays.slice(0, noiseCountAt(steps));
        [start = new Float32Array(0), sum = new Float32Array(0)] = arrays.slice(noiseCountAt(steps));
      },
    },
  };

  /** Stores a noise as the newest, replacing the oldest if the history is full. */
  function remember(noise: Float32Array): void {
    const oldest = earlier.length === MAX_EARLIER_NOISES ? earlier.pop() : undefined;
    const target = oldest ?? new Float32Array(noise.length);
    target.set(noise);
    earlier.unshift(target);
  }

  /** Returns the number of earlier noises after so many calls. */
  function noiseCountAt(steps: number): number {
    if (skipPrkSteps) return Math.min(steps < 2 ? steps : steps - 1, MAX_EARLIER_NOISES);
    return Math.min(Math.ceil(steps / 4), MAX_EARLIER_NOISES);
  }

  /** Returns the number of additional arrays of an unfinished step: its start, and with Runge-Kutta its sum. */
  function openArrayCountAt(steps: number): number {
    if (skipPrkSteps) return steps === 1 ? 1 : 0;
    return steps < rungeKuttaCalls && steps % 4 !== 0 ? 2 : 0;
  }
}

function createTimesteps(config: SchedulerConfig, count: number, distance: number): number[] {
  const spacing = { ...config, timestepSpacing: config.timestepSpacing ?? ('leading' as const) };
  const even = spacedTimesteps(spacing, { count, round: roundHalfEven });
  // The second call is repeated.
  if (config.skipPrkSteps) return [...even.slice(0, 2), ...even.slice(1)];
  const half = Math.floor(distance / 2);
  // Timesteps of Runge-Kutta between the four highest: the ends of a step once each, its middle twice.
  const steps = pairUp(even.slice(0, 3), even.slice(1, 4));
  const rungeKutta = steps.flatMap(([start, end]) => [start, end + half, end + half, end]);
  return [...rungeKutta, ...even.slice(3)];
}
