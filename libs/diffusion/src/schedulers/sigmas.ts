/**
 * The math that schedulers share: noise levels at the training timesteps, the timesteps of a run, and the sigmas at,
 * between and beyond them.
 *
 * Rounds to float32 wherever torch does. This matters at both ends of training: 1 − ᾱ at the first timestep has three
 * good digits in float32, and the first sigma of every image comes from the last ᾱ.
 */

import { itemAt, lastItem } from '@darkroom/core';
import { symmetricBetaQuantile } from './beta-quantile.ts';
import type { SchedulerConfig, SigmaSchedule } from './config/scheduler-config.ts';
import { linspace, roundHalfEven } from './numpy.ts';

const { fround } = Math;

/** A cosine schedule would end at beta = 1, without any signal; diffusers limits it to this. */
const MAX_COSINE_BETA = 0.999;

/** diffusers' replacement for the last ᾱ = 0 of a zero-terminal-SNR schedule, where sigma would be infinite. */
const MIN_ALPHA_CUMPROD = 2 ** -24;

/** Higher values concentrate the steps at low noise. */
const KARRAS_RHO = 7;
/** Both shape parameters of the beta distribution. */
const BETA_SHAPE = 0.6;
/** Keeps the logarithm of a sigma finite. */
const MIN_SIGMA = 1e-10;

/**
 * Computes the signal level at each training timestep, timestep 0 first: betas → alphas → their cumulative product ᾱ.
 * `alphasCumprod`: ᾱ, falling from almost 1; the last is exactly 0 with `rescaleBetasZeroSnr`. `sigmas`: √((1 − ᾱ)/ᾱ),
 * rising; always finite (with ᾱ ≥ 2^−24).
 * Source: the constructors of diffusers' schedulers, which share this code (`pndm` without zero terminal SNR, `lcm`
 * with other defaults).
 */
export function createNoiseSchedule(config: SchedulerConfig) {
  let betas = createBetas(config);
  if (config.rescaleBetasZeroSnr) betas = rescaleZeroTerminalSnr(betas);
  const alphasCumprod = cumulativeProduct(betas);
  const sigmas = alphasCumprod.map((alphaCumprod, timestep) => {
    const isTerminal = config.rescaleBetasZeroSnr && timestep === alphasCumprod.length - 1;
    const alpha = isTerminal ? MIN_ALPHA_CUMPROD : alphaCumprod;
    return Math.sqrt(fround(fround(1 - alpha) / alpha));
  });
  return { alphasCumprod, sigmas };
}

function createBetas(config: SchedulerConfig) {
  const { numTrainTimesteps, betaSchedule, trainedBetas } = config;
  const betaStart = config.betaStart ?? 0.0001;
  const betaEnd = config.betaEnd ?? 0.02;
  if (trainedBetas !== null) return Float32Array.from(trainedBetas);
  if (betaSchedule === null || betaSchedule === 'linear') return linspaceFloat(betaStart, betaEnd, numTrainTimesteps);
  if (betaSchedule === 'squaredcos_cap_v2') return cosineBetas(numTrainTimesteps);
  // scaled_linear, the schedule of latent diffusion (Rombach et al. 2022): linear in the square root.
  return linspaceFloat(Math.sqrt(betaStart), Math.sqrt(betaEnd), numTrainTimesteps).map((root) => root * root);
}

/** Computes `torch.linspace` in float32: from the start in the first half, from the end in the second. */
function linspaceFloat(start: number, end: number, count: number): Float32Array {
  const first = fround(start);
  const last = fround(end);
  const step = fround(fround(last - first) / (count - 1));
  const values = new Float32Array(count);
  for (let index = 0; index < count; index++) {
    values[index] = index < Math.floor(count / 2) ? first + step * index : last - step * (count - 1 - index);
  }
  return values;
}

/** Computes the cosine schedule of Nichol and Dhariwal 2021 (diffusers `betas_for_alpha_bar`). */
function cosineBetas(count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, index) =>
    Math.min(1 - cosineAlphaBar((index + 1) / count) / cosineAlphaBar(index / count), MAX_COSINE_BETA),
  );
}

function cosineAlphaBar(time: number): number {
  return Math.cos((((time + 0.008) / 1.008) * Math.PI) / 2) ** 2;
}

/**
 * Shifts √ᾱ so that the last is 0 and the first is unchanged (Lin et al. 2023, Algorithm 1; same name in diffusers).
 */
function rescaleZeroTerminalSnr(betas: Float32Array): Float32Array {
  const roots = cumulativeProduct(betas).map(Math.sqrt);
  const first = itemAt(roots, 0);
  const last = lastItem(roots);
  const factor = fround(first / fround(first - last));
  const alphasCumprod = roots.map((root) => {
    const shifted = fround(fround(root - last) * factor);
    return shifted * shifted;
  });
  return alphasCumprod.map((alphaCumprod, index) => {
    const alpha = index === 0 ? alphaCumprod : fround(alphaCumprod / itemAt(alphasCumprod, index - 1));
    return 1 - alpha;
  });
}

/** Computes `torch.cumprod(1 − betas)`: torch multiplies in double and rounds each result. */
function cumulativeProduct(betas: Float32Array): Float32Array {
  let product = 1;
  return betas.map((beta) => {
    product *= fround(1 - beta);
    return product;
  });
}

/**
 * Returns the timesteps of "trailing" spacing (Lin et al. 2023, Table 2): from `last` − 1 down in even steps, ending
 * well above 0.
 *
 * @param last number of training timesteps used; one more than the first timestep returned.
 * @param numTrainTimesteps number of the model's training timesteps; with `numInferenceSteps` this gives the distance.
 * @returns `numInferenceSteps` falling integers; fewer if `last` is less than `numTrainTimesteps`.
 */
export function trailingTimesteps(last: number, numTrainTimesteps: number, numInferenceSteps: number): number[] {
  const distance = numTrainTimesteps / numInferenceSteps;
  // numpy.arange repeats the difference of its first two values, not its step argument.
  const difference = last - distance - last;
  // For 62 of the numbers up to 1000 (61, 103, 121 …), arange's rounding gives diffusers one more timestep, −1, which
  // no model was trained on. Here those runs end one step earlier.
  const count = Math.min(Math.ceil(last / distance), numInferenceSteps);
  return Array.from({ length: count }, (_, index) => roundHalfEven(last + index * difference) - 1);
}

export interface SpacedTimestepsOptions {
  count: number;
  /** Rounds the fractional timesteps of linspace spacing; by default they stay fractional. */
  round?: (timestep: number) => number;
  /** Number of training timesteps used; all by default. */
  used?: number;
  /** True: divides the training into one step more and omits the one at timestep 0. Not for trailing spacing. */
  omitsLast?: boolean;
}

/** Returns a run's timesteps by the config's spacing (linspace by default), from the highest down. */
export function spacedTimesteps(
  { numTrainTimesteps, stepsOffset, timestepSpacing }: SchedulerConfig,
  {
    count,
    round = (timestep) => timestep,
    used = numTrainTimesteps,
    omitsLast: leavesOutLast = false,
  }: SpacedTimestepsOptions,
): number[] {
  if (timestepSpacing === 'trailing') return trailingTimesteps(used, numTrainTimesteps, count);
  const divisor = leavesOutLast ? count + 1 : count;
  const distance = Math.floor(used / divisor);
  const rising =
    timestepSpacing === 'leading'
      ? Array.from({ length: divisor }, (_, index) => index * distance + stepsOffset)
      : linspace(0, used - 1, divisor).map((timestep) => round(timestep));
  return rising.toReversed().slice(0, count);
}

/** Returns the sigma at a timestep, like `numpy.interp`: interpolates linearly, and clamps to the ends outside. */
export function interpolateSigma(sigmas: Float32Array, timestep: number): number {
  const last = sigmas.length - 1;
  if (timestep <= 0) return itemAt(sigmas, 0);
  if (timestep >= last) return itemAt(sigmas, last);
  const below = Math.floor(timestep);
  const slope = itemAt(sigmas, below + 1) - itemAt(sigmas, below);
  return slope * (timestep - below) + itemAt(sigmas, below);
}

/** Returns `count` sigmas of a schedule from `sigmaMax` down to `sigmaMin`; only `sigmaMax` if `count` is 1. */
export function scheduledSigmas(
  schedule: SigmaSchedule,
  { sigmaMax, sigmaMin, count }: { sigmaMax: number; sigmaMin: number; count: number },
): number[] {
  switch (schedule) {
    case 'karras': {
      // Even in sigma^(1/7) (Karras et al. 2022, equation 5; diffusers `_convert_to_karras`).
      const [maxRoot, minRoot] = [sigmaMax ** (1 / KARRAS_RHO), sigmaMin ** (1 / KARRAS_RHO)];
      return linspace(0, 1, count).map((ramp) => (maxRoot + ramp * (minRoot - maxRoot)) ** KARRAS_RHO);
    }
    case 'exponential':
      // Even in log sigma (diffusers `_convert_to_exponential`).
      return linspace(Math.log(sigmaMax), Math.log(sigmaMin), count).map(Math.exp);
    case 'beta':
      // At even quantiles of Beta(0.6, 0.6), so denser towards both ends (Lee et al. 2024, "Beta Sampling is All You
      // Need"; diffusers `_convert_to_beta`).
      return linspace(0, 1, count).map(
        (ramp) => sigmaMin + symmetricBetaQuantile(1 - ramp, BETA_SHAPE) * (sigmaMax - sigmaMin),
      );
  }
}

/**
 * Returns the fractional timestep at which training had this much noise, by linear interpolation in log sigma
 * (diffusers `_sigma_to_t`).
 *
 * @param logSigmas the natural logarithms of the training sigmas, rising.
 */
export function sigmaToTimestep(sigma: number, logSigmas: Float32Array): number {
  const logSigma = Math.log(Math.max(sigma, MIN_SIGMA));
  const above = logSigmas.findIndex((candidate) => candidate > logSigma);
  const low = Math.min(Math.max((above === -1 ? logSigmas.length : above) - 1, 0), logSigmas.length - 2);
  const lowLog = itemAt(logSigmas, low);
  const weight = (lowLog - logSigma) / Math.fround(lowLog - itemAt(logSigmas, low + 1));
  const clipped = Math.min(Math.max(weight, 0), 1);
  return (1 - clipped) * low + clipped * (low + 1);
}

/** The steps of a run: timesteps, and the sigma at each plus the final one, in float32 as in diffusers. */
export interface SigmaGrid {
  readonly timesteps: readonly number[];
  readonly sigmas: Float32Array;
}

export interface CreateSolverGridOptions {
  count: number;
  /** The schedule of the sigmas; null: the config's timestep spacing. */
  sigmaSchedule: SigmaSchedule | null;
  /** True: timesteps of Karras sigmas are rounded. All other timesteps are truncated by diffusers' cast to integers. */
  roundsKarras: boolean;
  /** Training timesteps with log(√ᾱ / √(1 − ᾱ)) below this are omitted. */
  lambdaMin?: number;
}

/** Creates the steps of DPM-Solver++ and UniPC. @throws RangeError if two steps have the same timestep. */
export function createSolverGrid(config: SchedulerConfig, options: CreateSolverGridOptions): SigmaGrid {
  const { count, sigmaSchedule, roundsKarras, lambdaMin = Number.NEGATIVE_INFINITY } = options;
  const trained = createNoiseSchedule(config).sigmas;
  let timesteps: number[];
  let sigmas: number[];
  if (sigmaSchedule === null) {
    const used = trained.filter((sigma) => -Math.log(sigma) >= lambdaMin).length;
    timesteps = spacedTimesteps(config, { count, used, omitsLast: true, round: roundHalfEven });
    sigmas = timesteps.map((timestep) => interpolateSigma(trained, timestep));
  } else {
    const logSigmas = trained.map(Math.log);
    const round = sigmaSchedule === 'karras' && roundsKarras ? roundHalfEven : Math.trunc;
    sigmas = scheduledSigmas(sigmaSchedule, { sigmaMax: lastItem(trained), sigmaMin: itemAt(trained, 0), count });
    timesteps = sigmas.map((sigma) => round(sigmaToTimestep(sigma, logSigmas)));
  }
  if (sigmas.some((sigma, index) => index > 0 && sigma >= itemAt(sigmas, index - 1))) {
    throw new RangeError(`${count} steps put two on one timestep of this model; use fewer steps`);
  }
  const last = config.finalSigmasType === 'zero' ? 0 : itemAt(trained, 0);
  return { timesteps, sigmas: Float32Array.from([...sigmas, last]) };
}

export interface ShiftOptions {
  config: SchedulerConfig;
  dynamicShift: number | undefined;
  /** Applied after each operation: `Math.fround` for given sigmas, because numpy computes them in float32. */
  round: (value: number) => number;
}

/**
 * Shifts sigmas, and stretches them to the terminal sigma if the config has one.
 * Source: Esser et al. 2024, "Scaling Rectified Flow Transformers", section 5.3.2; diffusers
 * `FlowMatchEulerDiscreteScheduler.time_shift` and `stretch_shift_to_terminal`.
 *
 * @throws RangeError if the config needs a dynamic shift and none is given.
 */
export function shiftedSigmas(sigmas: readonly number[], options: ShiftOptions): number[] {
  const { config, round } = options;
  const shifted = sigmas.map(createShift(options));
  if (config.shiftTerminal === null) return shifted;
  const rests = shifted.map((sigma) => round(1 - sigma));
  const scale = round(lastItem(rests) / round(1 - config.shiftTerminal));
  return rests.map((rest) => round(1 - round(rest / scale)));
}

function createShift({ config, dynamicShift, round }: ShiftOptions): (sigma: number) => number {
  const { shift, useDynamicShifting, timeShiftType } = config;
  if (!useDynamicShifting) {
    const more = round(shift - 1);
    return (sigma) => round(round(round(shift) * sigma) / round(1 + round(more * sigma)));
  }
  if (dynamicShift === undefined) {
    throw new RangeError('the config has use_dynamic_shifting: dynamicShift must be given');
  }
  const factor = round(timeShiftType === 'exponential' ? Math.exp(dynamicShift) : dynamicShift);
  return (sigma) => round(factor / round(factor + round(round(1 / sigma) - 1)));
}
