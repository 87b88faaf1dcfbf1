/**
 * UniPC: a multistep predictor of order 1 … 3. The next step first corrects the result with its own model output, so
 * the corrector costs no model call.
 * Source: Zhao et al. 2023, "UniPC: A Unified Predictor-Corrector Framework", Algorithms 5 … 8; diffusers
 * `UniPCMultistepScheduler`.
 *
 * Known difference: with solver_type bh1 and a last sigma of 0, the last step of diffusers is ∞·0 = NaN; here that term
 * is omitted, because its coefficient is 0.
 *
 * Known limits: no `solver_p`; prescribed sigmas and timesteps are refused.
 */

import { itemAt, lastItem, numberAt, pairUp } from '@darkroom/core';
import { createOriginalEstimate, levelsOf } from './original-estimate.ts';
import { createSolverGrid, shiftedSigmas, type SigmaGrid } from './sigmas.ts';
import { linspace } from './numpy.ts';
import type { SchedulerConfig } from './config/scheduler-config.ts';
import type { CreateSchedulerOptions, NoiseLevels, SchedulerRule } from './scheduler.ts';

/** diffusers subtracts this from a first sigma of 1, where log(1 − sigma) would be infinite. */
const MIN_FLOW_SIGNAL = 1e-6;

/**
 * Creates a UniPC rule for one row. @throws RangeError if two steps have the same timestep, a dynamic shift is missing,
 * or a flow grid is given.
 */
export function createUniPcScheduler(options: CreateSchedulerOptions): SchedulerRule {
  const { config, numInferenceSteps: count, skippedSteps = 0 } = options;
  if (options.flowGrid !== undefined) throw new RangeError('unipc cannot take sigmas or timesteps of the pipeline');
  const { predictX0, sigmaSchedule } = config;
  const { timesteps, sigmas } = config.isFlow
    ? createFlowGrid(options)
    : createSolverGrid(config, { count, sigmaSchedule, roundsKarras: true });
  const levels = Array.from(sigmas, (sigma) => (config.isFlow ? { signal: 1 - sigma, noise: sigma } : levelsOf(sigma)));
  const estimateOriginal = createOriginalEstimate(config);
  /** Converted model outputs (x0 or noise) of the latest steps, the newest first. */
  let earlier: Float32Array<ArrayBuffer>[] = [];
  /** The corrected latents at the start of the previous step. */
  let startOfLast = new Float32Array(0);
  /** Receives the current step's converted output, before it becomes the newest of `earlier`. */
  let converted = new Float32Array(0);

  function orderAt(index: number): number {
    const left = config.lowerOrderFinal ? timesteps.length - index : config.solverOrder;
    return Math.min(config.solverOrder, left, index - skippedSteps + 1);
  }

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => itemAt(levels, stepIndex),
    step(arrays, stepIndex) {
      const { modelOutput, sample, predictedOriginal } = arrays;
      const { signal, noise } = itemAt(levels, stepIndex);
      const { ofSample, ofOutput } = estimateOriginal(arrays, signal, noise);
      if (converted.length !== sample.length) converted = new Float32Array(sample.length);
      if (startOfLast.length !== sample.length) startOfLast = new Float32Array(sample.length);
      // Weights of the noise that follows from x0, as latents are signal·x0 + noise·ε.
      const noiseOfSample = (1 - signal * ofSample) / noise;
      const noiseOfOutput = (-signal * ofOutput) / noise;
      for (let index = 0; index < sample.length; index++) {
        converted[index] = predictX0
          ? numberAt(predictedOriginal, index)
          : noiseOfSample * numberAt(sample, index) + noiseOfOutput * numberAt(modelOutput, index);
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
      const correctorTerms = termsOf(corrector?.ofOutputs ?? [], earlier);
      const predictorTerms = termsOf(predictor.ofOutputs, [converted, ...earlier]);
      for (let index = 0; index < sample.length; index++) {
        if (corrector !== undefined) {
          const here = numberAt(converted, index);
          let corrected = corrector.ofSample * numberAt(startOfLast, index) + corrector.ofTarget * here;
          for (const [weight, output] of correctorTerms) corrected += weight * numberAt(output, index);
          sample[index] = corrected;
        }
        startOfLast[index] = numberAt(sample, index);
        let next = predictor.ofSample * numberAt(sample, index);
        for (const [weight, output] of predictorTerms) next += weight * numberAt(output, index);
        sample[index] = next;
      }
      const oldest = earlier.length === config.solverOrder ? earlier.pop() : undefined;
      earlier.unshift(converted);
      converted = oldest ?? new Float32Array(sample.length);
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

/** Returns each weight with the output that it applies to; both are in the same order. */
function termsOf(weights: readonly number[], outputs: readonly Float32Array[]): [number, Float32Array][] {
  return pairUp(weights, outputs.slice(0, weights.length));
}

function createFlowGrid({ config, numInferenceSteps: count, dynamicShift }: CreateSchedulerOptions): SigmaGrid {
  const { numTrainTimesteps } = config;
  const even = linspace(1, 1 / numTrainTimesteps, count + 1).slice(0, -1);
  const sigmas = shiftedSigmas(even, { config, dynamicShift, round: (value) => value });
  const first = itemAt(sigmas, 0);
  if (Math.abs(first - 1) < MIN_FLOW_SIGNAL) sigmas[0] = first - MIN_FLOW_SIGNAL;
  const timesteps = sigmas.map((sigma) => Math.trunc(sigma * numTrainTimesteps));
  return { timesteps, sigmas: Float32Array.from([...sigmas, 0]) };
}

interface UniPcWeights {
  /** Weight of the latents at the step's start. */
  readonly ofSample: number;
  /** Weights of the converted model outputs at the start and before, the newest first. */
  readonly ofOutputs: readonly number[];
  /** Weight of the converted model output at the step's end; 0 for a predictor. */
  readonly ofTarget: number;
}

interface UniPcWeightsOptions {
  readonly config: Pick<SchedulerConfig, 'predictX0' | 'solverType'>;
  /** One entry per step of the run, plus one for its end. */
  readonly levels: readonly NoiseLevels[];
  /** Index in `levels` of the step's end; its start is the entry before. */
  readonly to: number;
  /** Number of earlier outputs in the sum, 1 … 3. */
  readonly order: number;
  /** True if the model's output at the step's end is known. */
  readonly isCorrector: boolean;
}

/**
 * Computes the weights of one predictor or corrector step, a weighted sum of latents and earlier model outputs.
 * Source: Zhao et al. 2023, "UniPC", equations 3, 9 and 11; diffusers `multistep_uni_p_bh_update` and
 * `multistep_uni_c_bh_update`.
 */
function uniPcWeights({ config, levels, to, order, isCorrector }: UniPcWeightsOptions): UniPcWeights {
  const { predictX0 } = config;
  const isBh1 = config.solverType === 'bh1';
  const from = itemAt(levels, to - 1);
  const target = itemAt(levels, to);
  const start = logSnr(from);
  const step = logSnr(target) - start;
  const signedStep = predictX0 ? -step : step;
  const growth = Math.expm1(signedStep);
  const scale = predictX0 ? target.signal : target.noise;
  const ofSample = predictX0 ? target.noise / from.noise : target.signal / from.signal;
  let ofNewest = -scale * growth;
  // Without a second output there is no term in B(h), which may be infinite at the last step.
  if (order === 1 && !isCorrector) return { ofSample, ofOutputs: [ofNewest], ofTarget: 0 };

  // Positions of the other outputs, in steps; each contributes its difference from the newest output, that of `from`.
  const nodes = Array.from({ length: order - 1 }, (_, age) => (logSnr(itemAt(levels, to - 2 - age)) - start) / step);
  if (isCorrector) nodes.push(1);
  const shares = sharesOf(nodes, signedStep, isBh1);
  const factor = -scale * (isBh1 ? signedStep : growth);
  const weights = pairUp(nodes, shares).map(([node, share]) => (factor * share) / node);
  for (const weight of weights) ofNewest -= weight;
  if (!isCorrector) return { ofSample, ofOutputs: [ofNewest, ...weights], ofTarget: 0 };
  return { ofSample, ofOutputs: [ofNewest, ...weights.slice(0, -1)], ofTarget: lastItem(weights) };
}

/** Returns λ = log(signal / noise), UniPC's time variable. */
function logSnr({ signal, noise }: NoiseLevels): number {
  return Math.log(signal) - Math.log(noise);
}

/** Returns the ρ of equation 9: for each k, Σ ρ·node^k equals the exact integral of the polynomial of degree k. */
function sharesOf(nodes: readonly number[], signedStep: number, isBh1: boolean): number[] {
  // With one node, its share is ½ instead of the exact integral (diffusers, "a simplified version").
  if (nodes.length === 1) return [0.5];
  const scale = isBh1 ? signedStep : Math.expm1(signedStep);
  const integrals: number[] = [];
  let phi = Math.expm1(signedStep) / signedStep - 1;
  let factorial = 1;
  for (let degree = 1; degree <= nodes.length; degree++) {
    integrals.push((phi * factorial) / scale);
    factorial *= degree + 1;
    phi = phi / signedStep - 1 / factorial;
  }
  return solveVandermonde(nodes, integrals);
}

/** Solves Σ x[j]·nodes[j]^k = values[k] for all k (Golub and Van Loan, "Matrix Computations", Algorithm 4.6.2). */
function solveVandermonde(nodes: readonly number[], values: readonly number[]): number[] {
  const last = nodes.length - 1;
  const x = [...values];
  for (let k = 0; k < last; k++) {
    for (let j = last; j > k; j--) x[j] = itemAt(x, j) - itemAt(nodes, k) * itemAt(x, j - 1);
  }
  for (let k = last - 1; k >= 0; k--) {
    for (let j = k + 1; j <= last; j++) x[j] = itemAt(x, j) / (itemAt(nodes, j) - itemAt(nodes, j - k - 1));
    for (let j = k; j < last; j++) x[j] = itemAt(x, j) - itemAt(x, j + 1);
  }
  return x;
}
