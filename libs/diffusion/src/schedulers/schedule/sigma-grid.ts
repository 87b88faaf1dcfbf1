/** Sigmas between and beyond the training timesteps: the functions diffusers' sigma-based schedulers share. */

import { symmetricBetaQuantile } from './beta-quantile.ts';
import type { SigmaSchedule } from '../config/scheduler-config.ts';
import { linspace } from './timestep-grid.ts';

/** Karras et al. 2022, equation 5: how strongly the steps gather at low noise. */
const KARRAS_RHO = 7;
/** Lee et al. 2024: both shapes of the beta distribution. */
const BETA_SHAPE = 0.6;
/** Keeps the logarithm of a sigma finite. */
const LEAST_SIGMA = 1e-10;

/**
 * The sigma at a timestep, fractional ones by straight line between neighbours, outside ones by the nearest end
 * (`numpy.interp`).
 */
export function interpolateSigma(sigmas: Float32Array, timestep: number): number {
  const last = sigmas.length - 1;
  if (timestep <= 0) return sigmas[0]!;
  if (timestep >= last) return sigmas[last]!;
  const below = Math.floor(timestep);
  const slope = sigmas[below + 1]! - sigmas[below]!;
  return slope * (timestep - below) + sigmas[below]!;
}

/**
 * `count` sigmas from `sigmaMax` down to `sigmaMin`, even in sigma^(1/7) (Karras et al. 2022, equation 5; diffusers
 * `_convert_to_karras`); just `sigmaMax` if `count` is 1.
 */
function karrasSigmas(sigmaMax: number, sigmaMin: number, count: number): number[] {
  const maxRoot = sigmaMax ** (1 / KARRAS_RHO);
  const minRoot = sigmaMin ** (1 / KARRAS_RHO);
  return linspace(0, 1, count).map((ramp) => (maxRoot + ramp * (minRoot - maxRoot)) ** KARRAS_RHO);
}

/**
 * `count` sigmas from `sigmaMax` down to `sigmaMin`, even in log sigma (diffusers `_convert_to_exponential`); just
 * `sigmaMax` if `count` is 1.
 */
function exponentialSigmas(sigmaMax: number, sigmaMin: number, count: number): number[] {
  return linspace(Math.log(sigmaMax), Math.log(sigmaMin), count).map(Math.exp);
}

/**
 * `count` sigmas from `sigmaMax` down to `sigmaMin`, at even quantiles of Beta(0.6, 0.6), so denser towards both ends (Lee
 * et al. 2024, "Beta Sampling is All You Need"; diffusers `_convert_to_beta`); just `sigmaMax` if `count` is 1.
 */
function betaSigmas(sigmaMax: number, sigmaMin: number, count: number): number[] {
  return linspace(0, 1, count).map(
    (ramp) => sigmaMin + symmetricBetaQuantile(1 - ramp, BETA_SHAPE) * (sigmaMax - sigmaMin),
  );
}

/** `count` sigmas of this schedule from `sigmaMax` down to `sigmaMin`. */
export function scheduledSigmas(
  schedule: SigmaSchedule,
  { sigmaMax, sigmaMin, count }: { sigmaMax: number; sigmaMin: number; count: number },
): number[] {
  switch (schedule) {
    case 'karras':
      return karrasSigmas(sigmaMax, sigmaMin, count);
    case 'exponential':
      return exponentialSigmas(sigmaMax, sigmaMin, count);
    case 'beta':
      return betaSigmas(sigmaMax, sigmaMin, count);
  }
}

/**
 * The timestep at which training had this much noise, fractional, even in log sigma between neighbours (diffusers
 * `_sigma_to_t`).
 *
 * @param logSigmas the natural logarithms of the training sigmas, rising.
 */
export function sigmaToTimestep(sigma: number, logSigmas: Float32Array): number {
  const logSigma = Math.log(Math.max(sigma, LEAST_SIGMA));
  const above = logSigmas.findIndex((candidate) => candidate > logSigma);
  const low = Math.min(Math.max((above === -1 ? logSigmas.length : above) - 1, 0), logSigmas.length - 2);
  const lowLog = logSigmas[low]!;
  const weight = (lowLog - logSigma) / Math.fround(lowLog - logSigmas[low + 1]!);
  const clipped = Math.min(Math.max(weight, 0), 1);
  return (1 - clipped) * low + clipped * (low + 1);
}
