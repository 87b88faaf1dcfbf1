/**
 * Euler's method on the straight paths of flow matching: deterministic, first order.
 * Source: Lipman et al. 2022, "Flow Matching for Generative Modeling"; Esser et al. 2024, "Scaling Rectified Flow
 * Transformers"; diffusers `FlowMatchEulerDiscreteScheduler`.
 *
 * Latents are (1 − sigma)·x0 + sigma·noise and the model predicts noise − x0, so a step is defined by its sigma.
 *
 * Known limits: no `invert_sigmas`, no `stochastic_sampling`; `parseSchedulerConfig` refuses them.
 */

import { itemAt, lastItem, numberAt } from '@darkroom/core';
import type { SchedulerConfig } from './config/scheduler-config.ts';
import type { CreateSchedulerOptions, FlowGrid, SchedulerRule } from './scheduler.ts';
import { scheduledSigmas, shiftedSigmas, type SigmaGrid } from './sigmas.ts';
import { linspace } from './numpy.ts';

const { fround } = Math;

/**
 * Creates a flow matching rule for one row. @throws RangeError if the grid has another number of steps, or a dynamic
 * shift is missing.
 */
export function createFlowMatchEulerScheduler(options: CreateSchedulerOptions): SchedulerRule {
  const { timesteps, sigmas } = createGrid(options);

  return {
    timesteps,
    initNoiseSigma: 1,
    levelsAt: (stepIndex) => ({ signal: 1 - itemAt(sigmas, stepIndex), noise: itemAt(sigmas, stepIndex) }),
    step({ modelOutput, sample, predictedOriginal }, stepIndex) {
      const sigma = itemAt(sigmas, stepIndex);
      const change = fround(itemAt(sigmas, stepIndex + 1) - sigma);
      for (let index = 0; index < sample.length; index++) {
        const value = numberAt(sample, index);
        const output = numberAt(modelOutput, index);
        predictedOriginal[index] = value - sigma * output;
        sample[index] = value + change * output;
      }
    },
  };
}

function createGrid(options: CreateSchedulerOptions): SigmaGrid {
  const { config, numInferenceSteps: count, dynamicShift, flowGrid } = options;
  const { numTrainTimesteps, sigmaSchedule } = config;
  if (flowGrid !== undefined) assertGridLength(flowGrid, count);
  const round = flowGrid === undefined ? (value: number) => value : fround;
  const even = flowGrid?.sigmas.map(fround) ?? evenSigmas(config, count);
  let sigmas = shiftedSigmas(even, { config, dynamicShift, round });
  if (sigmaSchedule !== null) {
    sigmas = scheduledSigmas(sigmaSchedule, { sigmaMax: itemAt(sigmas, 0), sigmaMin: lastItem(sigmas), count });
  }
  const timesteps = flowGrid?.timesteps ?? sigmas.map((sigma) => fround(fround(sigma) * numTrainTimesteps));
  return { timesteps: timesteps.map(fround), sigmas: Float32Array.from([...sigmas, 0]) };
}

/**
 * Returns evenly spaced sigmas from the highest to the lowest of training. The config's shift is applied to both ends
 * here and to all sigmas again later: diffusers computes it this way, and models are tuned with it.
 */
function evenSigmas({ shift, useDynamicShifting, numTrainTimesteps }: SchedulerConfig, count: number): number[] {
  const shifted = (sigma: number): number => {
    if (useDynamicShifting) return sigma;
    return fround(fround(fround(shift) * sigma) / fround(1 + fround(fround(shift - 1) * sigma)));
  };
  const [highest, lowest] = [shifted(1), shifted(fround(1 / numTrainTimesteps))];
  return linspace(highest * numTrainTimesteps, lowest * numTrainTimesteps, count).map(
    (timestep) => timestep / numTrainTimesteps,
  );
}

function assertGridLength({ sigmas, timesteps }: FlowGrid, count: number): void {
  if (sigmas.length === count && (timesteps ?? sigmas).length === count) return;
  throw new RangeError(
    `flowGrid must have ${count} sigmas and timesteps, one per step, not ${sigmas.length} and ${timesteps?.length ?? 0}`,
  );
}
