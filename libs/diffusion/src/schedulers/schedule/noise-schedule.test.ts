import { describe, expect, it } from 'vitest';

import { createNoiseSchedule } from './noise-schedule.ts';
import { parseSchedulerConfig } from '../config/parse-scheduler-config.ts';

function create(fields: Record<string, unknown>) {
  return createNoiseSchedule(parseSchedulerConfig({ _class_name: 'DDIMScheduler', ...fields }).config);
}

const latentDiffusion = { beta_start: 0.00085, beta_end: 0.012, beta_schedule: 'scaled_linear' };
const zeroSnr = { ...latentDiffusion, rescale_betas_zero_snr: true };
const timesteps = [0, 1, 500, 998, 999];

// Of diffusers 0.42.1, torch 2.15.0: DDIMScheduler.alphas_cumprod and DPMSolverMultistepScheduler.sigmas.
describe('createNoiseSchedule', () => {
  it.each([
    ['linear', {}, [0.9999, 0.99978006, 0.07779665, 4.1181942e-5, 4.0358304e-5]],
    ['scaled_linear', latentDiffusion, [0.99915, 0.998296, 0.27633247, 0.0047166958, 0.004660095]],
    [
      'squaredcos_cap_v2',
      { beta_schedule: 'squaredcos_cap_v2' },
      [0.9999587, 0.99991256, 0.49228504, 2.4287663e-6, 2.428735e-9],
    ],
  ])('has the very alphas of diffusers: %s', (_, fields, expected) => {
    const { alphasCumprod } = create(fields);
    expect(alphasCumprod).toHaveLength(1000);
    expect(timesteps.map((timestep) => alphasCumprod[timestep])).toEqual(expected.map(Math.fround));
  });

  // Torch's vectorised root is off by one unit in the last place here and there; zero SNR subtracts such roots.
  it.each([
    ['linear', {}, 2e-7, [0.01000133, 0.014832044, 3.4429674, 155.82518, 157.40727]],
    ['scaled_linear', latentDiffusion, 2e-7, [0.029167535, 0.04131448, 1.6182797, 14.526281, 14.614647]],
    ['zero terminal SNR', zeroSnr, 2e-5, [0.029167535, 0.042066958, 1.7745582, 2254.1948, 4096]],
  ])('has the sigmas of diffusers: %s', (_, fields, tolerance, expected) => {
    const { sigmas } = create(fields);
    const errors = timesteps.map((timestep, index) => Math.abs(sigmas[timestep]! / expected[index]! - 1));
    expect(Math.max(...errors)).toBeLessThan(tolerance);
  });

  it('ends at nothing left of the picture with zero terminal SNR, and at a finite sigma', () => {
    const { alphasCumprod, sigmas } = create(zeroSnr);
    expect(alphasCumprod.at(-1)).toBe(0);
    expect(sigmas.at(-1)).toBeCloseTo(4096, 2);
  });
});
