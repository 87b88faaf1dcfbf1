import { createDdimScheduler } from './ddim.ts';
import { createDpmSolverMultistepScheduler } from './dpm-solver-multistep.ts';
import { createEulerAncestralScheduler } from './euler-ancestral.ts';
import { createEulerScheduler } from './euler.ts';
import type { CreateSchedulerOptions, Scheduler, SchedulerName } from './scheduler.ts';

const factories: Readonly<Record<SchedulerName, (options: CreateSchedulerOptions) => Scheduler>> = {
  ddim: createDdimScheduler,
  euler: createEulerScheduler,
  euler_ancestral: createEulerAncestralScheduler,
  dpmpp_2m: (options) => createDpmSolverMultistepScheduler({ ...options, useKarrasSigmas: false }),
  dpmpp_2m_karras: (options) => createDpmSolverMultistepScheduler({ ...options, useKarrasSigmas: true }),
};

/**
 * Makes the scheduler of one row, standing before its first step.
 *
 * @throws RangeError if the number of steps does not suit the model, or this scheduler with this config.
 */
export function createScheduler(name: SchedulerName, options: CreateSchedulerOptions): Scheduler {
  return factories[name](options);
}
