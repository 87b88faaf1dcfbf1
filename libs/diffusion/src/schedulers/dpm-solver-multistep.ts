/**
 * DPM-Solver++(2M): second order from the current and the previous x0 estimate, with one model call per step. The SDE
 * variant steps twice as far in lambda (2h), then adds fresh noise up to the noise level of the next sigma.
 * Source: Lu et al. 2022, "DPM-Solver++", Algorithm 2 and section 5 (SDE); diffusers `DPMSolverMultistepScheduler` with
 * algorithm_type dpmsolver++ or sde-dpmsolver++, solver_type midpoint, solver_order 2.
 *
 * Latents have the scale signal·x0 + noise level·ε, so the model's input needs no scaling.
 *
 * Known difference: if rounding makes the first two timesteps equal (Karras sigmas with zero terminal SNR), diffusers
 * mistakes the first step for the second and then runs past the end. This scheduler takes every step, as diffusers does
 * after `set_begin_index(0)`.
 */

import { itemAt, numberAt } from '@darkroom/core';
import { createOriginalEstimate, levelsOf } from './original-estimate.ts';
import { createSolverGrid } from './sigmas.ts';
import type { CreateSchedulerOptions, SchedulerRule } from './scheduler.ts';
import type { SchedulerName } from './config/scheduler-config.ts';

/** With `lowerOrderFinal`, runs of fewer steps end with a first-order step, because the second order overshoots. */
const SHORT_RUN_STEPS = 15;

/**
 * Creates a DPM-Solver++ rule for one row. @throws RangeError if so many steps are requested that two have the same
 * sigma.
 */
export function createDpmSolverMultistepScheduler(
  { config, numInferenceSteps: count, skippedSteps = 0 }: CreateSchedulerOptions,
  name: SchedulerName,
): SchedulerRule {
  const isSde = name.includes('_sde');
  const otherSchedule = config.sigmaSchedule === 'karras' ? null : config.sigmaSchedule;
  const { timesteps, sigmas } = createSolverGrid(config, {
    count,
    sigmaSchedule: name.endsWith('_karras') ? 'karras' : otherSchedule,
    roundsKarras: config.betaSchedule !== 'squaredcos_cap_v2',
    lambdaMin: config.lambdaMinClipped,
  });
  const estimateOriginal = createOriginalEstimate(config);
  const isShortRun = config.lowerOrderFinal && timesteps.length < SHORT_RUN_STEPS;
  const isFirstOrderAtEnd = config.eulerAtFinal || isShortRun || config.finalSigmasType === 'zero';
  /** The previous step's x0 estimate; empty before the first step. */
  let earlier = new Float32Array(0);
  let noise = new Float32Array(0);

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => levelsOf(itemAt(sigmas, stepIndex)),
    step(arrays, stepIndex) {
      const { sample, predictedOriginal, fillNoise } = arrays;
      const sigma = itemAt(sigmas, stepIndex);
      const next = itemAt(sigmas, stepIndex + 1);
      const { signal, noise: noiseLevel } = levelsOf(sigma);
      const { signal: nextSignal, noise: nextNoiseLevel } = levelsOf(next);
      // The paper's step size h is a difference of lambda = −log(sigma), so exp(−h) is the ratio of the sigmas. The
      // ratio stays finite if the last sigma is 0, where h is infinite.
      const decay = next / sigma;
      const sampleFactor = (nextNoiseLevel / noiseLevel) * (isSde ? decay : 1);
      const originalFactor = nextSignal * (1 - (isSde ? decay * decay : decay));
      const noiseFactor = isSde ? nextNoiseLevel * Math.sqrt(1 - decay * decay) : 0;
      const isFirstOrder = stepIndex === skippedSteps || (stepIndex === timesteps.length - 1 && isFirstOrderAtEnd);
      // Factor of the extrapolation beyond the current estimate: 0.5 · h / h_0, where h_0 is the previous step's h.
      const trend = isFirstOrder ? 0 : (0.5 * Math.log(sigma / next)) / Math.log(itemAt(sigmas, stepIndex - 1) / sigma);
      if (earlier.length !== sample.length) earlier = new Float32Array(sample.length);
      if (noise.length !== sample.length) noise = new Float32Array(sample.length);
      // Draw noise even if its factor is 0 (at a final sigma of 0): the generator's state must equal torch's.
      if (isSde) fillNoise(noise);

      estimateOriginal(arrays, signal, noiseLevel);
      for (let index = 0; index < sample.length; index++) {
        const original = numberAt(predictedOriginal, index);
        const extrapolated = original + trend * (original - numberAt(earlier, index));
        sample[index] =
          sampleFactor * numberAt(sample, index) + originalFactor * extrapolated + noiseFactor * numberAt(noise, index);
        earlier[index] = original;
      }
    },
    history: {
      lengthAt: (steps) => (steps === 0 ? 0 : 1),
      arrays: () => [earlier],
      restore([array = new Float32Array(0)]) {
        earlier = array;
      },
    },
  };
}
