/** The timesteps and sigmas of UniPC (diffusers `UniPCMultistepScheduler.set_timesteps`). */

import { createNoiseSchedule } from './noise-schedule.ts';
import type { SchedulerConfig } from '../config/scheduler-config.ts';
import type { CreateSchedulerOptions } from '../scheduler.ts';
import { shiftedSigmas } from './shifted-sigmas.ts';
import { interpolateSigma, scheduledSigmas, sigmaToTimestep } from './sigma-grid.ts';
import { linspace, roundHalfEven, trailingTimesteps } from './timestep-grid.ts';

/** What diffusers takes off a first sigma of 1, where log(1 − sigma) would be infinite. */
const LEAST_FLOW_SIGNAL = 1e-6;

/**
 * Timesteps, and the sigma at each with the final one behind them, in float32 as diffusers keeps them.
 *
 * @throws RangeError if two steps fall on one timestep, or a dynamic shift is missing.
 */
export function createUniPcGrid(options: CreateSchedulerOptions): { timesteps: number[]; sigmas: Float32Array } {
  const { config, numInferenceSteps: count } = options;
  if (config.flow !== null) return createFlowGrid(options);
  const trained = createNoiseSchedule(config).sigmas;
  let timesteps: number[];
  let sigmas: number[];
  if (config.sigmaSchedule === null) {
    timesteps = createTimesteps(config, count);
    sigmas = timesteps.map((timestep) => interpolateSigma(trained, timestep));
  } else {
    const logSigmas = trained.map(Math.log);
    sigmas = scheduledSigmas(config.sigmaSchedule, { sigmaMax: trained.at(-1)!, sigmaMin: trained[0]!, count });
    // Rounded for one of the three, cut by a cast to integers for the others.
    const round = config.sigmaSchedule === 'karras' ? roundHalfEven : Math.trunc;
    timesteps = sigmas.map((sigma) => round(sigmaToTimestep(sigma, logSigmas)));
  }
  if (sigmas.some((sigma, index) => index > 0 && sigma >= sigmas[index - 1]!)) {
    throw new RangeError(`${count} steps put two on one timestep of this model; use fewer steps`);
  }
  const last = config.finalSigmasType === 'zero' ? 0 : trained[0]!;
  return { timesteps, sigmas: Float32Array.from([...sigmas, last]) };
}

function createFlowGrid({ config, numInferenceSteps: count, dynamicShift }: CreateSchedulerOptions): {
  timesteps: number[];
  sigmas: Float32Array;
} {
  const { numTrainTimesteps } = config;
  const even = linspace(1, 1 / numTrainTimesteps, count + 1).slice(0, -1);
  const sigmas = shiftedSigmas(even, { flow: config.flow!, dynamicShift, round: (value) => value });
  if (Math.abs(sigmas[0]! - 1) < LEAST_FLOW_SIGNAL) sigmas[0]! -= LEAST_FLOW_SIGNAL;
  const timesteps = sigmas.map((sigma) => Math.trunc(sigma * numTrainTimesteps));
  return { timesteps, sigmas: Float32Array.from([...sigmas, 0]) };
}

function createTimesteps(
  { numTrainTimesteps, stepsOffset, timestepSpacing }: SchedulerConfig,
  count: number,
): number[] {
  const spacing = timestepSpacing ?? 'linspace';
  if (spacing === 'trailing') return trailingTimesteps(numTrainTimesteps, numTrainTimesteps, count);
  // As in DPM-Solver++, these two divide by one step more and leave out the one at timestep 0.
  if (spacing === 'linspace') {
    return linspace(0, numTrainTimesteps - 1, count + 1)
      .map(roundHalfEven)
      .toReversed()
      .slice(0, -1);
  }
  const distance = Math.floor(numTrainTimesteps / (count + 1));
  return Array.from({ length: count }, (_, index) => (count - index) * distance + stepsOffset);
}
