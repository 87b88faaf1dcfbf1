/**
 * PNDM: DDIM's step with the noise of several model calls, by a linear multistep rule of up to four.
 * Source: Liu et al. 2022, "Pseudo Numerical Methods for Diffusion Models on Manifolds", equations 9, 12 and 13, Algorithm
 * 2; diffusers `PNDMScheduler`.
 *
 * The rule needs three earlier noises. Either three steps of Runge-Kutta give them, four model calls each (the paper), or
 * the rule starts with one and grows (`skipPrkSteps`: PLMS, as Stable Diffusion has it), and only its second model call is
 * one more: at the end of the first step, which is then taken again with the mean of both noises.
 *
 * Where steps are skipped, the timestep of the second call comes in the list as any other, and not twice: the calls after it
 * start a step further down than the latents are. diffusers does the same, so that a seed gives the same picture.
 *
 * Known difference: where steps are skipped there is no Runge-Kutta. diffusers takes those steps from the first timesteps on,
 * which the latents are not at.
 */

import { createNoiseSchedule } from './schedule/noise-schedule.ts';
import { levelsOfAlpha, originalWeights } from './original-estimate.ts';
import type { SchedulerConfig } from './config/scheduler-config.ts';
import type { CreateSchedulerOptions, SchedulerRule } from './scheduler.ts';
import { roundHalfEven, spacedTimesteps } from './schedule/timestep-grid.ts';

/** Model calls of the three Runge-Kutta steps, four a step. */
const RUNGE_KUTTA_CALLS = 12;
/** What the rule needs of them: with fewer steps than this there are fewer calls, and diffusers mixes them up. */
const LEAST_RUNGE_KUTTA_STEPS = 4;
/** The weights of the noises, the newest first (Adams-Bashforth). */
const multistepWeights = [
  [1],
  [3 / 2, -1 / 2],
  [23 / 12, -16 / 12, 5 / 12],
  [55 / 24, -59 / 24, 37 / 24, -9 / 24],
] as const;
const KEPT_NOISES = multistepWeights.length - 1;
/** What each call of a Runge-Kutta step adds to the noise of that step. */
const rungeKuttaWeights = [1 / 6, 1 / 3, 1 / 3, 1 / 6] as const;

/** @throws RangeError if a step would begin beyond the model's last timestep, or there are too few for Runge-Kutta. */
export function createPndmScheduler(options: CreateSchedulerOptions): SchedulerRule {
  const { config, numInferenceSteps, skippedSteps = 0 } = options;
  const { numTrainTimesteps, predictionType } = config;
  const skipPrkSteps = config.skipPrkSteps || skippedSteps > 0;
  if (!skipPrkSteps && numInferenceSteps < LEAST_RUNGE_KUTTA_STEPS) {
    throw new RangeError(`pndm with skip_prk_steps false needs at least ${LEAST_RUNGE_KUTTA_STEPS} steps`);
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
  const finalAlphaCumprod = config.setAlphaToOne === true ? 1 : alphasCumprod[0]!;
  const rungeKuttaCalls = skipPrkSteps ? 0 : RUNGE_KUTTA_CALLS;
  /** Noises of earlier steps, the newest first: the three that the rule needs beside the present one, or fewer. */
  let earlier: Float32Array[] = [];
  /** Where a step that takes several model calls began; empty after the last such step. */
  let start = new Float32Array(0);
  /** The sum of a Runge-Kutta step's noises so far; empty after the last such step. */
  let sum = new Float32Array(0);

  /** Whether the first step is taken again. */
  function isAgainAt(call: number): boolean {
    return skipPrkSteps && call === skippedSteps + 1;
  }

  /** From where to where a step goes, which is not always from the timestep that the model was given. */
  function wayOf(call: number): { from: number; to: number } {
    const timestep = timesteps[call]!;
    if (call < rungeKuttaCalls) {
      const isHalf = call % 2 === 0;
      return { from: timesteps[call - (call % 4)]!, to: timestep - (isHalf ? Math.floor(distance / 2) : 0) };
    }
    if (isAgainAt(call)) return { from: timestep + distance, to: timestep };
    return { from: timestep, to: timestep - distance };
  }

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => levelsOfAlpha(alphasCumprod[timesteps[stepIndex]!]!),
    step({ modelOutput, sample, predictedOriginal }, stepIndex) {
      const stage = stepIndex < rungeKuttaCalls ? stepIndex % 4 : undefined;
      const isAgain = isAgainAt(stepIndex);
      const { from, to } = wayOf(stepIndex);
      const alphaCumprod = alphasCumprod[from]!;
      const nextAlphaCumprod = to >= 0 ? alphasCumprod[to]! : finalAlphaCumprod;
      const signal = Math.sqrt(alphaCumprod);
      const noiseLevel = Math.sqrt(1 - alphaCumprod);
      // Equation 9.
      const sampleFactor = Math.sqrt(nextAlphaCumprod / alphaCumprod);
      const noiseFactor =
        -(nextAlphaCumprod - alphaCumprod) /
        (alphaCumprod * Math.sqrt(1 - nextAlphaCumprod) +
          Math.sqrt(alphaCumprod * (1 - alphaCumprod) * nextAlphaCumprod));
      const alphaHere = alphasCumprod[timesteps[stepIndex]!]!;
      const { ofSample, ofOutput } = originalWeights(predictionType, Math.sqrt(alphaHere), Math.sqrt(1 - alphaHere));
      const begins = stage === 0 || (skipPrkSteps && stepIndex === skippedSteps);
      if (begins) start = start.length === sample.length ? start : new Float32Array(sample.length);
      if (stage === 0) sum = sum.length === sample.length ? sum.fill(0) : new Float32Array(sample.length);
      const weights = multistepWeights[earlier.length]!;

      for (let index = 0; index < sample.length; index++) {
        const output = modelOutput[index]!;
        const value = sample[index]!;
        predictedOriginal[index] = ofSample * value + ofOutput * output;
        if (begins) start[index] = value;
        let combined = output;
        if (stage !== undefined) {
          sum[index]! += rungeKuttaWeights[stage]! * output;
          if (stage === 3) combined = sum[index]!;
        } else if (isAgain) {
          combined = (output + earlier[0]![index]!) / 2;
        } else {
          combined = weights[0] * output;
          for (let age = 1; age < weights.length; age++) combined += weights[age]! * earlier[age - 1]![index]!;
        }
        const base = stage !== undefined || isAgain ? start[index]! : value;
        const epsilon = predictionType === 'v_prediction' ? signal * combined + noiseLevel * base : combined;
        sample[index] = sampleFactor * base + noiseFactor * epsilon;
      }
      if (stage === 0 || (stage === undefined && !isAgain)) remember(modelOutput);
      if (isAgain || stepIndex + 1 === rungeKuttaCalls) start = sum = new Float32Array(0);
    },
    history: {
      lengthAt: (steps) => keptAt(steps) + openAt(steps),
      arrays: () => [...earlier, start, sum],
      restore(arrays, steps) {
        earlier = arrays.slice(0, keptAt(steps));
        [start = new Float32Array(0), sum = new Float32Array(0)] = arrays.slice(keptAt(steps));
      },
    },
  };

  /** Puts a noise first, over the oldest if the rule needs no more of them. */
  function remember(noise: Float32Array): void {
    const place = earlier.length === KEPT_NOISES ? earlier.pop()! : new Float32Array(noise.length);
    place.set(noise);
    earlier.unshift(place);
  }

  /** How many earlier noises there are after so many steps. */
  function keptAt(steps: number): number {
    if (skipPrkSteps) return Math.min(steps < 2 ? steps : steps - 1, KEPT_NOISES);
    return Math.min(Math.ceil(steps / 4), KEPT_NOISES);
  }

  /** How many arrays a step that is under way after so many needs besides: its start, and of Runge-Kutta its sum. */
  function openAt(steps: number): number {
    if (skipPrkSteps) return steps === 1 ? 1 : 0;
    return steps < rungeKuttaCalls && steps % 4 !== 0 ? 2 : 0;
  }
}

function createTimesteps(config: SchedulerConfig, count: number, distance: number): number[] {
  const spacing = { ...config, timestepSpacing: config.timestepSpacing ?? ('leading' as const) };
  const even = spacedTimesteps(spacing, { count, round: roundHalfEven });
  if (config.skipPrkSteps) return even.length === 1 ? even : [even[0]!, even[1]!, ...even.slice(1)];
  const half = Math.floor(distance / 2);
  // Between the four highest: each end of a step, and twice its middle.
  const [first, second, third, fourth] = even as [number, number, number, number];
  const middles = [second, third, fourth].map((timestep) => timestep + half);
  const rungeKutta = [first, middles[0]!, middles[0]!, second, second, middles[1]!, middles[1]!, third, third];
  return [...rungeKutta, middles[2]!, middles[2]!, fourth, ...even.slice(3)];
}
