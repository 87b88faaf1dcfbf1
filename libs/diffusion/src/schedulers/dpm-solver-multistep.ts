/**
 * DPM-Solver++(2M): second order from the present and the one earlier x0 estimate, one model call a step. As SDE it goes
 * down twice as far and half of the way up again with fresh noise.
 * Source: Lu et al. 2022, "DPM-Solver++", Algorithm 2 and section 5 (SDE); diffusers `DPMSolverMultistepScheduler` with
 * algorithm_type dpmsolver++ or sde-dpmsolver++, solver_type midpoint, solver_order 2.
 *
 * Latents are kept at the scale signal·x0 + noise level·ε, so the model's input needs no scaling.
 *
 * Known difference: where rounding makes the first two timesteps equal (Karras sigmas with zero terminal SNR), diffusers
 * mistakes the first step for the second and then runs off the end; here, as there after `set_begin_index(0)`, every
 * step is taken.
 */

import { createOriginalEstimate, levelsOf } from './original-estimate.ts';
import { createSolverGrid } from './schedule/sigma-grid.ts';
import type { CreateSchedulerOptions, SchedulerName, SchedulerRule } from './scheduler.ts';

/** Runs shorter than this end with a first-order step if `lowerOrderFinal` says so: the second order overshoots. */
const SHORT_RUN_STEPS = 15;

/** @throws RangeError if the number of steps is so large that two steps fall on one timestep. */
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
  /** The x0 estimate of the step before; empty before the first. */
  let earlier = new Float32Array(0);
  let noise = new Float32Array(0);

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => levelsOf(sigmas[stepIndex]!),
    step(arrays, stepIndex) {
      const { sample, predictedOriginal, fillNoise } = arrays;
      const sigma = sigmas[stepIndex]!;
      const next = sigmas[stepIndex + 1]!;
      const { signal, noise: noiseLevel } = levelsOf(sigma);
      const { signal: nextSignal, noise: nextNoiseLevel } = levelsOf(next);
      // The paper's step size h is a difference of lambda = −log(sigma), so its exp(−h) is the ratio of the sigmas,
      // which needs no infinite h where the last sigma is 0.
      const decay = next / sigma;
      const sampleFactor = (nextNoiseLevel / noiseLevel) * (isSde ? decay : 1);
      const originalFactor = nextSignal * (1 - (isSde ? decay * decay : decay));
      const noiseFactor = isSde ? nextNoiseLevel * Math.sqrt(1 - decay * decay) : 0;
      const isFirstOrder = stepIndex === skippedSteps || (stepIndex === timesteps.length - 1 && isFirstOrderAtEnd);
      // Half of h / h_0: how far the trend from the estimate before to this one is carried on (0: not at all).
      const trend = isFirstOrder ? 0 : (0.5 * Math.log(sigma / next)) / Math.log(sigmas[stepIndex - 1]! / sigma);
      if (earlier.length !== sample.length) earlier = new Float32Array(sample.length);
      if (noise.length !== sample.length) noise = new Float32Array(sample.length);
      // Drawn at the last step, too, where it counts for nothing: the generator then stands where torch's does.
      if (isSde) fillNoise(noise);

      estimateOriginal(arrays, signal, noiseLevel);
      for (let index = 0; index < sample.length; index++) {
        const original = predictedOriginal[index]!;
        const carriedOn = original + trend * (original - earlier[index]!);
        sample[index] = sampleFactor * sample[index]! + originalFactor * carriedOn + noiseFactor * noise[index]!;
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
