import { describe, expect, it } from 'vitest';
import recorded from '../../../../tools/golden/vectors/beta-quantiles.json' with { type: 'json' };
import { symmetricBetaQuantile } from './beta-quantile.ts';
import { parseSchedulerConfig } from './config/parse-scheduler-config.ts';
import { linspace, roundHalfEven } from './numpy.ts';
import { createNoiseSchedule, trailingTimesteps } from './sigmas.ts';

describe('roundHalfEven', () => {
  it.each([
    [0.5, 0],
    [1.5, 2],
    [2.5, 2],
    [937.5, 938],
    [62.5, 62],
    [0.49, 0],
    [0.51, 1],
    [7, 7],
  ])('rounds %s to %s', (value, rounded) => {
    expect(roundHalfEven(value)).toBe(rounded);
  });
});

describe('linspace', () => {
  it('includes both ends', () => {
    expect(linspace(0, 999, 4)).toEqual([0, 333, 666, 999]);
  });

  it('returns only the start for one value', () => {
    expect(linspace(0, 999, 1)).toEqual([0]);
  });
});

describe('trailingTimesteps', () => {
  it('starts at the last timestep of training', () => {
    expect(trailingTimesteps(1000, 1000, 4)).toEqual([999, 749, 499, 249]);
  });

  it('never returns a timestep below 0 nor more steps than requested', () => {
    for (let steps = 1; steps <= 1000; steps++) {
      const timesteps = trailingTimesteps(1000, 1000, steps);
      expect(timesteps).toHaveLength(steps);
      expect(timesteps.at(-1)).toBeGreaterThanOrEqual(0);
    }
  });

  it('returns fewer steps if the start is cut off', () => {
    expect(trailingTimesteps(500, 1000, 4)).toEqual([499, 249]);
  });
});

describe('symmetricBetaQuantile', () => {
  it('returns the quantiles of scipy', () => {
    const wrong = (recorded.quantiles as [number, number, number][]).filter(
      ([probability, shape, quantile]) =>
        !(Math.abs(symmetricBetaQuantile(probability, shape) - quantile) <= 1e-14 * quantile),
    );
    expect(wrong).toEqual([]);
  });

  it('decreases from 1 to 0 with the probability', () => {
    const quantiles = Array.from({ length: 1001 }, (_, index) => symmetricBetaQuantile(1 - index / 1000, 0.6));
    expect([quantiles[0], quantiles[500], quantiles[1000]]).toEqual([1, 0.5, 0]);
    expect(quantiles.every((quantile, index) => index === 0 || quantile < quantiles[index - 1]!)).toBe(true);
  });
});

function create(fields: Record<string, unknown>) {
  return createNoiseSchedule(parseSchedulerConfig({ _class_name: 'DDIMScheduler', ...fields }).config);
}

const latentDiffusion = { beta_start: 0.00085, beta_end: 0.012, beta_schedule: 'scaled_linear' };
const zeroSnr = { ...latentDiffusion, rescale_betas_zero_snr: true };
const timesteps = [0, 1, 500, 998, 999];

// From diffusers 0.42.1, torch 2.15.0: DDIMScheduler.alphas_cumprod and DPMSolverMultistepScheduler.sigmas.
describe('createNoiseSchedule', () => {
  it.each([
    ['linear', {}, [0.9999, 0.99978006, 0.07779665, 4.1181942e-5, 4.0358304e-5]],
    ['scaled_linear', latentDiffusion, [0.99915, 0.998296, 0.27633247, 0.0047166958, 0.004660095]],
    [
      'squaredcos_cap_v2',
      { beta_schedule: 'squaredcos_cap_v2' },
      [0.9999587, 0.99991256, 0.49228504, 2.4287663e-6, 2.428735e-9],
    ],
  ])('has exactly the alphas of diffusers: %s', (_, fields, expected) => {
    const { alphasCumprod } = create(fields);
    expect(alphasCumprod).toHaveLength(1000);
    expect(timesteps.map((timestep) => alphasCumprod[timestep])).toEqual(expected.map(Math.fround));
  });

  // Some of torch's vectorized roots are off by one unit in the last place; zero SNR subtracts such roots.
  it.each([
    ['linear', {}, 2e-7, [0.01000133, 0.014832044, 3.4429674, 155.82518, 157.40727]],
    ['scaled_linear', latentDiffusion, 2e-7, [0.029167535, 0.04131448, 1.6182797, 14.526281, 14.614647]],
    ['zero terminal SNR', zeroSnr, 2e-5, [0.029167535, 0.042066958, 1.7745582, 2254.1948, 4096]],
  ])('has the sigmas of diffusers: %s', (_, fields, tolerance, expected) => {
    const { sigmas } = create(fields);
    const errors = timesteps.map((timestep, index) => Math.abs(sigmas[timestep]! / expected[index]! - 1));
    expect(Math.max(...errors)).toBeLessThan(tolerance);
  });

  it('ends with zero signal at zero terminal SNR, and with a finite sigma', () => {
    const { alphasCumprod, sigmas } = create(zeroSnr);
    expect(alphasCumprod.at(-1)).toBe(0);
    expect(sigmas.at(-1)).toBeCloseTo(4096, 2);
  });
});
