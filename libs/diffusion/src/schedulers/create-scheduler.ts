import { createDdimScheduler } from './ddim.ts';
import { createDpmSolverMultistepScheduler } from './dpm-solver-multistep.ts';
import { createEulerScheduler } from './euler.ts';
import { createFlowMatchEulerScheduler } from './flow-match-euler.ts';
import { createLcmScheduler } from './lcm.ts';
import { createPndmScheduler } from './pndm.ts';
import { schedulerMisfit } from './config/scheduler-misfit.ts';
import { type CreateSchedulerOptions, Scheduler, type SchedulerRule } from './scheduler.ts';
import type { SchedulerName } from './config/scheduler-config.ts';
import { createUniPcScheduler } from './unipc.ts';

type CreateRule = (options: CreateSchedulerOptions, name: SchedulerName) => SchedulerRule;

const rules: Readonly<Record<SchedulerName, CreateRule>> = {
  ddim: createDdimScheduler,
  pndm: createPndmScheduler,
  euler: createEulerScheduler,
  euler_ancestral: createEulerScheduler,
  // One diffusers class under four names, which select noise (sde) and Karras sigmas.
  dpmpp_2m: createDpmSolverMultistepScheduler,
  dpmpp_2m_karras: createDpmSolverMultistepScheduler,
  dpmpp_2m_sde: createDpmSolverMultistepScheduler,
  dpmpp_2m_sde_karras: createDpmSolverMultistepScheduler,
  unipc: createUniPcScheduler,
  lcm: createLcmScheduler,
  flow_match_euler: createFlowMatchEulerScheduler,
};

/**
 * Creates the scheduler of one row, before its first step.
 *
 * @throws RangeError if this scheduler cannot serve a model with this config (`fittingSchedulers` lists those that
 * can), if the number of steps does not fit the model or scheduler, or if no step is left.
 */
export function createScheduler(name: SchedulerName, options: CreateSchedulerOptions): Scheduler {
  const { config, numInferenceSteps, skippedSteps } = options;
  const { numTrainTimesteps } = config;
  const misfit = schedulerMisfit(name, config);
  if (misfit !== undefined) throw new RangeError(misfit);
  if (!Number.isInteger(numInferenceSteps) || numInferenceSteps < 1 || numInferenceSteps > numTrainTimesteps) {
    throw new RangeError(
      `numInferenceSteps must be an integer in 1 … ${numTrainTimesteps} ` +
        `(the model was trained on ${numTrainTimesteps} timesteps), not ${numInferenceSteps}`,
    );
  }
  return new Scheduler(rules[name](options, name), skippedSteps);
}
