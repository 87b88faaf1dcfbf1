/**
 * DPM-Solver++(2M): second order from the present and the one earlier x0 estimate, one model call a step. As SDE it goes
 * down twice as far and half of the way up again with fresh noise.
 * Source: Lu et al. 2022, "DPM-Solver++", Algorithm 2 and section 5 (SDE); diffusers `DPMSolverMultistepScheduler` with
 * algorithm_type dpmsolver++ or sde-dpmsolver++, solver_type midpoint, solver_order 2.
 *
 * Latents are kept at the scale alpha·x0 + noise level, so the model's input needs no scaling.
 *
 * Known difference: where rounding makes the first two timesteps equal (Karras sigmas with zero terminal SNR), diffusers
 * mistakes the first step for the second and then runs off the end; here, as there after `set_begin_index(0)`, every
 * step is taken.
 */

import { createDynamicThreshold } from './dynamic-threshold.ts';
import { createNoiseSchedule } from './schedule/noise-schedule.ts';
import { originalWeights } from './original-weights.ts';
import { assertStepCount, countSteps } from './count-steps.ts';
import type { SchedulerConfig, SigmaSchedule } from './config/scheduler-config.ts';
import type { CreateSchedulerOptions, Scheduler, SchedulerName } from './scheduler.ts';
import { interpolateSigma, scheduledSigmas, sigmaToTimestep } from './schedule/sigma-grid.ts';
import { linspace, roundHalfEven, trailingTimesteps } from './schedule/timestep-grid.ts';

/** Runs shorter than this end with a first-order step if `lowerOrderFinal` says so: the second order overshoots. */
const SHORT_RUN_STEPS = 15;

/** What a DPM-Solver++ scheduler is made from. */
export interface CreateDpmSolverMultistepOptions extends CreateSchedulerOptions {
  readonly name: SchedulerName;
  /** What the sigmas follow; null: the config's timestep spacing. */
  readonly sigmaSchedule: SigmaSchedule | null;
  /** Whether each step draws noise. */
  readonly isSde: boolean;
}

/**
 * Makes a DPM-Solver++(2M) scheduler for one row.
 *
 * @throws RangeError if the number of steps does not suit the model, or is so large that two steps fall on one timestep.
 */
export function createDpmSolverMultistepScheduler(options: CreateDpmSolverMultistepOptions): Scheduler {
  const { name, config, numInferenceSteps, isSde } = options;
  assertStepCount(numInferenceSteps, config.numTrainTimesteps);
  const { predictionType, thresholding } = config;
  const { timesteps, sigmas } = createGrid(options);
  const threshold = thresholding === null ? undefined : createDynamicThreshold(thresholding);
  const isShortRun = config.lowerOrderFinal && timesteps.length < SHORT_RUN_STEPS;
  const isFirstOrderAtEnd = config.eulerAtFinal || isShortRun || config.finalSigmasType === 'zero';
  /** The x0 estimate of the step before; empty before the first. */
  let earlier = new Float32Array(0);
  let noise = new Float32Array(0);

  return countSteps({
    name,
    timesteps,
    initNoiseSigma: 1,
    step({ modelOutput, sample, predictedOriginal, fillNoise }, stepIndex) {
      const sigma = sigmas[stepIndex]!;
      const next = sigmas[stepIndex + 1]!;
      // A sigma is noise over signal of the latents whose variance is 1; this splits it into the two.
      const alpha = 1 / Math.sqrt(sigma * sigma + 1);
      const noiseLevel = sigma * alpha;
      const nextAlpha = 1 / Math.sqrt(next * next + 1);
      const nextNoiseLevel = next * nextAlpha;
      // The paper's step size h is a difference of lambda = −log(sigma), so its exp(−h) is the ratio of the sigmas,
      // which needs no infinite h where the last sigma is 0.
      const decay = next / sigma;
      const sampleFactor = (nextNoiseLevel / noiseLevel) * (isSde ? decay : 1);
      const originalFactor = nextAlpha * (1 - (isSde ? decay * decay : decay));
      const noiseFactor = isSde ? nextNoiseLevel * Math.sqrt(1 - decay * decay) : 0;
      const isFirstOrder = stepIndex === 0 || (stepIndex === timesteps.length - 1 && isFirstOrderAtEnd);
      // Half of h / h_0: how far the trend from the estimate before to this one is carried on (0: not at all).
      const trend = isFirstOrder ? 0 : (0.5 * Math.log(sigma / next)) / Math.log(sigmas[stepIndex - 1]! / sigma);
      const { ofSample, ofOutput } = originalWeights(predictionType, alpha, noiseLevel);
      if (earlier.length !== sample.length) earlier = new Float32Array(sample.length);
      if (noise.length !== sample.length) noise = new Float32Array(sample.length);
      // Drawn at the last step, too, where it counts for nothing: the generator then stands where torch's does.
      if (isSde) fillNoise(noise);

      for (let index = 0; index < sample.length; index++) {
        predictedOriginal[index] = ofSample * sample[index]! + ofOutput * modelOutput[index]!;
      }
      threshold?.(predictedOriginal);
      for (let index = 0; index < sample.length; index++) {
        const original = predictedOriginal[index]!;
        const carriedOn = original + trend * (original - earlier[index]!);
        sample[index] = sampleFactor * sample[index]! + originalFactor * carriedOn + noiseFactor * noise[index]!;
        earlier[index] = original;
      }
    },
    history: {
      lengthAt: (steps) => (steps === 0 ? 0 : 1),
      arraysAt: (steps) => (steps === 0 ? [] : [earlier]),
      restore([array = new Float32Array(0)]) {
        earlier = array;
      },
    },
  });
}

/** Timesteps, and the sigma at each with the final one behind them, in float32 as diffusers keeps them. */
function createGrid({ config, numInferenceSteps, sigmaSchedule }: CreateDpmSolverMultistepOptions): {
  timesteps: number[];
  sigmas: Float32Array;
} {
  const trained = createNoiseSchedule(config).sigmas;
  let timesteps: number[];
  let sigmas: number[];
  if (sigmaSchedule !== null) {
    const logSigmas = trained.map(Math.log);
    // All others are cut: that is how diffusers' cast to integers ends.
    const isRounded = sigmaSchedule === 'karras' && config.betaSchedule !== 'squaredcos_cap_v2';
    const round = isRounded ? roundHalfEven : Math.trunc;
    const ends = { sigmaMax: trained.at(-1)!, sigmaMin: trained[0]!, count: numInferenceSteps };
    sigmas = scheduledSigmas(sigmaSchedule, ends);
    timesteps = sigmas.map((sigma) => round(sigmaToTimestep(sigma, logSigmas)));
  } else {
    timesteps = createTimesteps(config, trained, numInferenceSteps);
    sigmas = timesteps.map((timestep) => interpolateSigma(trained, timestep));
  }
  if (sigmas.some((sigma, index) => index > 0 && sigma >= sigmas[index - 1]!)) {
    throw new RangeError(`${numInferenceSteps} steps put two on one timestep of this model; use fewer steps`);
  }
  const last = config.finalSigmasType === 'zero' ? 0 : trained[0]!;
  return { timesteps, sigmas: Float32Array.from([...sigmas, last]) };
}

function createTimesteps(config: SchedulerConfig, trained: Float32Array, count: number): number[] {
  const { numTrainTimesteps, stepsOffset, timestepSpacing, lambdaMinClipped } = config;
  const used = trained.filter((sigma) => -Math.log(sigma) >= lambdaMinClipped).length;
  const spacing = timestepSpacing ?? 'linspace';
  if (spacing === 'trailing') return trailingTimesteps(used, numTrainTimesteps, count);
  // Unlike the other schedulers, these two divide by one step more and leave out the one at timestep 0.
  if (spacing === 'linspace') {
    return linspace(0, used - 1, count + 1)
      .map(roundHalfEven)
      .toReversed()
      .slice(0, -1);
  }
  const distance = Math.floor(used / (count + 1));
  return Array.from({ length: count }, (_, index) => (count - index) * distance + stepsOffset);
}
