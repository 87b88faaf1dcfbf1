/**
 * DPM-Solver++(2M): second order from the present and the one earlier x0 estimate, one model call a step.
 * Source: Lu et al. 2022, "DPM-Solver++", Algorithm 2; diffusers `DPMSolverMultistepScheduler` with
 * algorithm_type dpmsolver++, solver_type midpoint, solver_order 2.
 *
 * Latents are kept at the scale alpha·x0 + noise level, so the model's input needs no scaling.
 *
 * Known difference: where rounding makes the first two timesteps equal (Karras sigmas with zero terminal SNR), diffusers
 * mistakes the first step for the second and then runs off the end; here, as there after `set_begin_index(0)`, every
 * step is taken.
 */

import { createNoiseSchedule } from './noise-schedule.ts';
import { assertSameLength, assertSnapshot, assertStepCount, assertStepLeft } from './scheduler-checks.ts';
import type { SchedulerConfig } from './scheduler-config.ts';
import type { CreateSchedulerOptions, Scheduler } from './scheduler.ts';
import { interpolateSigma, karrasSigmas, sigmaToTimestep } from './sigma-grid.ts';
import { linspace, roundHalfEven, trailingTimesteps } from './timestep-grid.ts';

/** Runs shorter than this end with a first-order step if `lowerOrderFinal` says so: the second order overshoots. */
const SHORT_RUN_STEPS = 15;

/** What a DPM-Solver++ scheduler is made from. */
export interface CreateDpmSolverMultistepOptions extends CreateSchedulerOptions {
  /** Whether the sigmas of Karras et al. replace the config's timestep spacing. */
  readonly useKarrasSigmas: boolean;
}

/**
 * Makes a DPM-Solver++(2M) scheduler for one row.
 *
 * @throws RangeError if the number of steps does not suit the model, or is so large that two steps fall on one timestep.
 */
export function createDpmSolverMultistepScheduler(options: CreateDpmSolverMultistepOptions): Scheduler {
  const { config, numInferenceSteps, useKarrasSigmas } = options;
  assertStepCount(numInferenceSteps, config.numTrainTimesteps);
  const { predictionType } = config;
  const { timesteps, sigmas } = createGrid(options);
  const isShortRun = config.lowerOrderFinal && timesteps.length < SHORT_RUN_STEPS;
  const isFirstOrderAtEnd = config.eulerAtFinal || isShortRun || config.finalSigmasType === 'zero';
  let stepIndex = 0;
  /** The x0 estimate of the step before; empty before the first. */
  let earlier = new Float32Array(0);

  return {
    name: useKarrasSigmas ? 'dpmpp_2m_karras' : 'dpmpp_2m',
    timesteps,
    initNoiseSigma: 1,
    get stepIndex() {
      return stepIndex;
    },
    scaleModelInput(sample, target, targetOffset) {
      assertStepLeft(stepIndex, timesteps.length);
      target.set(sample, targetOffset);
    },
    step(stepArguments) {
      assertStepLeft(stepIndex, timesteps.length);
      assertSameLength(stepArguments);
      const { modelOutput, sample, predictedOriginal } = stepArguments;
      const sigma = sigmas[stepIndex]!;
      const next = sigmas[stepIndex + 1]!;
      // A sigma is noise over signal of the latents whose variance is 1; this splits it into the two.
      const alpha = 1 / Math.sqrt(sigma * sigma + 1);
      const noiseLevel = sigma * alpha;
      const nextAlpha = 1 / Math.sqrt(next * next + 1);
      const nextNoiseLevel = next * nextAlpha;
      // The paper's step size h is a difference of lambda = −log(sigma), so its exp(−h) is the ratio of the sigmas,
      // which needs no infinite h where the last sigma is 0.
      const sampleFactor = nextNoiseLevel / noiseLevel;
      const originalFactor = nextAlpha * (1 - next / sigma);
      const isFirstOrder = stepIndex === 0 || (stepIndex === timesteps.length - 1 && isFirstOrderAtEnd);
      // Half of h / h_0: how far the trend from the estimate before to this one is carried on (0: not at all).
      const trend = isFirstOrder ? 0 : (0.5 * Math.log(sigma / next)) / Math.log(sigmas[stepIndex - 1]! / sigma);
      if (earlier.length !== sample.length) earlier = new Float32Array(sample.length);

      for (let index = 0; index < sample.length; index++) {
        const value = sample[index]!;
        const output = modelOutput[index]!;
        let original: number;
        switch (predictionType) {
          case 'epsilon':
            original = (value - noiseLevel * output) / alpha;
            break;
          case 'v_prediction':
            original = alpha * value - noiseLevel * output;
            break;
          case 'sample':
            original = output;
            break;
        }
        sample[index] = sampleFactor * value + originalFactor * (original + trend * (original - earlier[index]!));
        predictedOriginal[index] = original;
        earlier[index] = original;
      }
      stepIndex += 1;
    },
    snapshot() {
      return { stepIndex, history: stepIndex === 0 ? [] : [earlier.slice()] };
    },
    restore(snapshot) {
      assertSnapshot(snapshot, timesteps.length, snapshot.stepIndex === 0 ? 0 : 1);
      stepIndex = snapshot.stepIndex;
      earlier = snapshot.history[0]?.slice() ?? new Float32Array(0);
    },
  };
}

/** Timesteps, and the sigma at each with the final one behind them, in float32 as diffusers keeps them. */
function createGrid({ config, numInferenceSteps, useKarrasSigmas }: CreateDpmSolverMultistepOptions): {
  timesteps: number[];
  sigmas: Float32Array;
} {
  const trained = createNoiseSchedule(config).sigmas;
  let timesteps: number[];
  let sigmas: number[];
  if (useKarrasSigmas) {
    const logSigmas = trained.map(Math.log);
    // A cosine schedule's timesteps are cut instead of rounded: that is how diffusers' cast to integers ends.
    const round = config.betaSchedule === 'squaredcos_cap_v2' ? Math.trunc : roundHalfEven;
    sigmas = karrasSigmas(trained.at(-1)!, trained[0]!, numInferenceSteps);
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
