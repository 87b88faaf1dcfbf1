import { createDdimScheduler } from './ddim.ts';
import { createDpmSolverMultistepScheduler } from './dpm-solver-multistep.ts';
import { createEulerAncestralScheduler } from './euler-ancestral.ts';
import { createEulerScheduler } from './euler.ts';
import { createFlowMatchEulerScheduler } from './flow-match-euler.ts';
import { createLcmScheduler } from './lcm.ts';
import { createPndmScheduler } from './pndm.ts';
import { schedulerMisfit } from './config/scheduler-misfit.ts';
import type { CreateSchedulerOptions, Scheduler, SchedulerName } from './scheduler.ts';
import { createUniPcScheduler } from './unipc.ts';

type CreateScheduler = (options: CreateSchedulerOptions) => Scheduler;

const factories: Readonly<Record<SchedulerName, CreateScheduler>> = {
  ddim: createDdimScheduler,
  pndm: createPndmScheduler,
  euler: createEulerScheduler,
  euler_ancestral: createEulerAncestralScheduler,
  dpmpp_2m: dpmSolver('dpmpp_2m'),
  dpmpp_2m_karras: dpmSolver('dpmpp_2m_karras'),
  dpmpp_2m_sde: dpmSolver('dpmpp_2m_sde'),
  dpmpp_2m_sde_karras: dpmSolver('dpmpp_2m_sde_karras'),
  unipc: createUniPcScheduler,
  lcm: createLcmScheduler,
  flow_match_euler: createFlowMatchEulerScheduler,
};

/** One diffusers class under four names, which say what it does with noise and whether it has the sigmas of Karras. */
function dpmSolver(name: `dpmpp_2m${'' | '_sde'}${'' | '_karras'}`): CreateScheduler {
  return (options) => {
    const ofConfig = options.config.sigmaSchedule;
    const isKarras = name.endsWith('_karras');
    const sigmaSchedule = isKarras ? 'karras' : ofConfig === 'karras' ? null : ofConfig;
    return createDpmSolverMultistepScheduler({ ...options, name, sigmaSchedule, isSde: name.includes('_sde') });
  };
}

/**
 * Makes the scheduler of one row, standing before its first step.
 *
 * @throws RangeError if this scheduler cannot serve a model with this config (`fittingSchedulers` lists those that can), or
 * the number of steps does not suit the model, or this scheduler with this config.
 */
export function createScheduler(name: SchedulerName, options: CreateSchedulerOptions): Scheduler {
  const misfit = schedulerMisfit(name, options.config);
  if (misfit !== undefined) throw new RangeError(misfit);
  return factories[name](options);
}
