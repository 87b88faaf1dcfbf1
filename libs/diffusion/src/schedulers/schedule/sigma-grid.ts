/** Sigmas between and beyond the training timesteps: the functions diffusers' sigma-based schedulers share. */

import { symmetricBetaQuantile } from './beta-quantile.ts';
import type { SchedulerConfig, SigmaSchedule } from '../config/scheduler-config.ts';
import { createNoiseSchedule } from './noise-schedule.ts';
import { linspace, roundHalfEven, spacedTimesteps } from './timestep-grid.ts';

/** How strongly the steps gather at low noise. */
const KARRAS_RHO = 7;
/** Both shapes of the beta distribution. */
const BETA_SHAPE = 0.6;
/** Keeps the logarithm of a sigma finite. */
const LEAST_SIGMA = 1e-10;

/** The sigma at a timestep, fractional ones by straight line between neighbours, outside ones by the nearest end (`numpy.interp`). */
export function interpolateSigma(sigmas: Float32Array, timestep: number): number {
  const last = sigmas.length - 1;
  if (timestep <= 0) return sigmas[0]!;
  if (timestep >= last) return sigmas[last]!;
  const below = Math.floor(timestep);
  const slope = sigmas[below + 1]! - sigmas[below]!;
  return slope * (timestep - below) + sigmas[below]!;
}

/** `count` sigmas of a schedule from `sigmaMax` down to `sigmaMin`; just `sigmaMax` if `count` is 1. */
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
      // At even quantiles of Beta(0.6, 0.6), so denser towards both ends (Lee et al. 2024, "Beta Sampling is All You Need";
      // diffusers `_convert_to_beta`).
      return linspace(0, 1, count).map(
        (ramp) => sigmaMin + symmetricBetaQuantile(1 - ramp, BETA_SHAPE) * (sigmaMax - sigmaMin),
      );
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

/** The steps of a run: timesteps, and the sigma at each with the final one behind them, in float32 as diffusers keeps them. */
export interface SigmaGrid {
  readonly timesteps: readonly number[];
  readonly sigmas: Float32Array;
}

export interface CreateSolverGridOptions {
  count: number;
  /** What the sigmas follow; null: the config's timestep spacing. */
  sigmaSchedule: SigmaSchedule | null;
  /** Whether the timesteps of Karras sigmas are rounded. Others are cut: that is how diffusers' cast to integers ends. */
  roundsKarras: boolean;
  /** Training timesteps with log(√ᾱ / √(1 − ᾱ)) below this are left out. */
  lambdaMin?: number;
}

/** The steps of DPM-Solver++ and UniPC. @throws RangeError if two steps fall on one timestep. */
export function createSolverGrid(config: SchedulerConfig, options: CreateSolverGridOptions): SigmaGrid {
  const { count, sigmaSchedule, roundsKarras, lambdaMin = Number.NEGATIVE_INFINITY } = options;
  const trained = createNoiseSchedule(config).sigmas;
  let timesteps: number[];
  let sigmas: number[];
  if (sigmaSchedule === null) {
    const used = trained.filter((sigma) => -Math.log(sigma) >= lambdaMin).length;
    timesteps = spacedTimesteps(config, { count, used, leavesOutLast: true, round: roundHalfEven });
    sigmas = timesteps.map((timestep) => interpolateSigma(trained, timestep));
  } else {
    const logSigmas = trained.map(Math.log);
    const round = sigmaSchedule === 'karras' && roundsKarras ? roundHalfEven : Math.trunc;
    sigmas = scheduledSigmas(sigmaSchedule, { sigmaMax: trained.at(-1)!, sigmaMin: trained[0]!, count });
    timesteps = sigmas.map((sigma) => round(sigmaToTimestep(sigma, logSigmas)));
  }
  if (sigmas.some((sigma, index) => index > 0 && sigma >= sigmas[index - 1]!)) {
    throw new RangeError(`${count} steps put two on one timestep of this model; use fewer steps`);
  }
  const last = config.finalSigmasType === 'zero' ? 0 : trained[0]!;
  return { timesteps, sigmas: Float32Array.from([...sigmas, last]) };
}
