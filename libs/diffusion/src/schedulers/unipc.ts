/**
 * UniPC: a multistep predictor of order 1 … 3, whose result the next step corrects with its own model output before it goes
 * on, so that the corrector costs no model call.
 * Source: Zhao et al. 2023, "UniPC: A Unified Predictor-Corrector Framework", Algorithms 5 … 8; diffusers
 * `UniPCMultistepScheduler`.
 *
 * Known difference: with solver_type bh1 and a last sigma of 0 the last step of diffusers is ∞·0 = NaN; here the term is
 * left out, as it is of order 0.
 *
 * Known limits: no `solver_p`; sigmas and timesteps of the pipeline's own are refused.
 */

import { createOriginalEstimate, levelsOf } from './original-estimate.ts';
import { shiftedSigmas } from './schedule/flow-shift.ts';
import { createSolverGrid, type SigmaGrid } from './schedule/sigma-grid.ts';
import { linspace } from './schedule/timestep-grid.ts';
import type { CreateSchedulerOptions, SchedulerRule } from './scheduler.ts';
import { uniPcWeights } from './unipc-weights.ts';

/** What diffusers takes off a first sigma of 1, where log(1 − sigma) would be infinite. */
const LEAST_FLOW_SIGNAL = 1e-6;

/** @throws RangeError if two steps fall on one timestep, a dynamic shift is missing, or steps are prescribed. */
export function createUniPcScheduler(options: CreateSchedulerOptions): SchedulerRule {
  const { config, numInferenceSteps: count, skippedSteps = 0 } = options;
  if (options.flowGrid !== undefined) throw new RangeError('unipc cannot take sigmas or timesteps of the pipeline');
  const { predictX0, sigmaSchedule } = config;
  const { timesteps, sigmas } = config.isFlow
    ? createFlowGrid(options)
    : createSolverGrid(config, { count, sigmaSchedule, roundsKarras: true });
  const levels = Array.from(sigmas, (sigma) => (config.isFlow ? { signal: 1 - sigma, noise: sigma } : levelsOf(sigma)));
  const estimateOriginal = createOriginalEstimate(config);
  /** What the latest steps converted the model's output to, x0 or noise, the newest first. */
  let earlier: Float32Array<ArrayBuffer>[] = [];
  /** The latents that the step before started from, corrected. */
  let startOfLast = new Float32Array(0);
  /** Takes what this step converts, until it is the newest of `earlier`. */
  let converted = new Float32Array(0);

  function orderAt(index: number): number {
    const left = config.lowerOrderFinal ? timesteps.length - index : config.solverOrder;
    return Math.min(config.solverOrder, left, index - skippedSteps + 1);
  }

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => levels[stepIndex]!,
    step(arrays, stepIndex) {
      const { modelOutput, sample, predictedOriginal } = arrays;
      const { signal, noise } = levels[stepIndex]!;
      const { ofSample, ofOutput } = estimateOriginal(arrays, signal, noise);
      if (converted.length !== sample.length) converted = new Float32Array(sample.length);
      if (startOfLast.length !== sample.length) startOfLast = new Float32Array(sample.length);
      // Of the noise that x0 means, as latents are signal·x0 + noise·ε.
      const noiseOfSample = (1 - signal * ofSample) / noise;
      const noiseOfOutput = (-signal * ofOutput) / noise;
      for (let index = 0; index < sample.length; index++) {
        converted[index] = predictX0
          ? predictedOriginal[index]!
          : noiseOfSample * sample[index]! + noiseOfOutput * modelOutput[index]!;
      }

      const isCorrected = stepIndex > skippedSteps && !config.disableCorrector.includes(stepIndex - 1);
      const corrector = isCorrected
        ? uniPcWeights({ config, levels, to: stepIndex, order: orderAt(stepIndex - 1), isCorrector: true })
        : undefined;
      const predictor = uniPcWeights({
        config,
        levels,
        to: stepIndex + 1,
        order: orderAt(stepIndex),
        isCorrector: false,
      });
      for (let index = 0; index < sample.length; index++) {
        const here = converted[index]!;
        if (corrector !== undefined) {
          let corrected = corrector.ofSample * startOfLast[index]! + corrector.ofTarget * here;
          for (let age = 0; age < corrector.ofOutputs.length; age++) {
            corrected += corrector.ofOutputs[age]! * earlier[age]![index]!;
          }
          sample[index] = corrected;
        }
        startOfLast[index] = sample[index]!;
        let next = predictor.ofSample * sample[index]! + predictor.ofOutputs[0]! * here;
        for (let age = 1; age < predictor.ofOutputs.length; age++) {
          next += predictor.ofOutputs[age]! * earlier[age - 1]![index]!;
        }
        sample[index] = next;
      }
      const oldest = earlier.length === config.solverOrder ? earlier.pop()! : new Float32Array(sample.length);
      earlier.unshift(converted);
      converted = oldest;
    },
    history: {
      lengthAt: (steps) => (steps === 0 ? 0 : Math.min(steps, config.solverOrder) + 1),
      arrays: () => [...earlier, startOfLast],
      restore(arrays) {
        earlier = arrays.slice(0, -1);
        startOfLast = arrays.at(-1) ?? new Float32Array(0);
        converted = new Float32Array(0);
      },
    },
  };
}

function createFlowGrid({ config, numInferenceSteps: count, dynamicShift }: CreateSchedulerOptions): SigmaGrid {
  const { numTrainTimesteps } = config;
  const even = linspace(1, 1 / numTrainTimesteps, count + 1).slice(0, -1);
  const sigmas = shiftedSigmas(even, { config, dynamicShift, round: (value) => value });
  if (Math.abs(sigmas[0]! - 1) < LEAST_FLOW_SIGNAL) sigmas[0]! -= LEAST_FLOW_SIGNAL;
  const timesteps = sigmas.map((sigma) => Math.trunc(sigma * numTrainTimesteps));
  return { timesteps, sigmas: Float32Array.from([...sigmas, 0]) };
}
