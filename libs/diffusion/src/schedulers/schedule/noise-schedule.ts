/**
 * How much of the picture is left at each training timestep: betas → alphas → their cumulative product ᾱ.
 * Source: the constructors of diffusers' schedulers, which share this code (`pndm` without zero terminal SNR, `lcm` with
 * other defaults).
 *
 * Rounded to float32 where torch rounds. This matters at both ends: 1 − ᾱ at the first timestep has three good digits
 * in float32, and the first sigma of every picture comes from the last ᾱ.
 */

import type { SchedulerConfig } from '../config/scheduler-config.ts';

const { fround } = Math;

/** A cosine schedule would end at beta = 1, i.e. nothing left; diffusers stops short of it. */
const MAX_COSINE_BETA = 0.999;

/** What diffusers puts for the last ᾱ = 0 of a zero-terminal-SNR schedule, where sigma would be infinite. */
const LEAST_ALPHA_CUMPROD = 2 ** -24;

/**
 * One value per training timestep, timestep 0 first. `alphasCumprod`: ᾱ, falling from almost 1; the last is exactly 0 with
 * `rescaleBetasZeroSnr`. `sigmas`: √((1 − ᾱ)/ᾱ), rising; always finite (with ᾱ ≥ 2^−24).
 */
export function createNoiseSchedule(config: SchedulerConfig) {
  let betas = createBetas(config);
  if (config.rescaleBetasZeroSnr) betas = rescaleZeroTerminalSnr(betas);
  const alphasCumprod = cumulativeProduct(betas);
  const sigmas = alphasCumprod.map((alphaCumprod, timestep) => {
    const isTerminal = config.rescaleBetasZeroSnr && timestep === alphasCumprod.length - 1;
    const alpha = isTerminal ? LEAST_ALPHA_CUMPROD : alphaCumprod;
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

/** `torch.linspace` in float32: counted from the start in the first half, from the end in the second. */
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

/** The cosine schedule of Nichol and Dhariwal 2021 (diffusers `betas_for_alpha_bar`). */
function cosineBetas(count: number): Float32Array {
  return Float32Array.from({ length: count }, (_, index) =>
    Math.min(1 - cosineAlphaBar((index + 1) / count) / cosineAlphaBar(index / count), MAX_COSINE_BETA),
  );
}

function cosineAlphaBar(time: number): number {
  return Math.cos((((time + 0.008) / 1.008) * Math.PI) / 2) ** 2;
}

/** Shifts √ᾱ so that the last is 0 and the first stays (Lin et al. 2023, Algorithm 1; diffusers, same name). */
function rescaleZeroTerminalSnr(betas: Float32Array): Float32Array {
  const roots = cumulativeProduct(betas).map(Math.sqrt);
  const first = roots[0]!;
  const last = roots.at(-1)!;
  const factor = fround(first / fround(first - last));
  const alphasCumprod = roots.map((root) => {
    const shifted = fround(fround(root - last) * factor);
    return shifted * shifted;
  });
  return alphasCumprod.map((alphaCumprod, index) => {
    const alpha = index === 0 ? alphaCumprod : fround(alphaCumprod / alphasCumprod[index - 1]!);
    return 1 - alpha;
  });
}

/** `torch.cumprod(1 − betas)`: torch multiplies in double and rounds each result. */
function cumulativeProduct(betas: Float32Array): Float32Array {
  let product = 1;
  return betas.map((beta) => {
    product *= fround(1 - beta);
    return product;
  });
}
