import { readSchedulerConfig, type SchedulerConfig, type SchedulerName } from './scheduler-config.ts';
import { schedulerMisfit } from './scheduler-misfit.ts';

/** The result of {@link parseSchedulerConfig}. */
export interface ParsedSchedulerConfig {
  readonly config: SchedulerConfig;
  /** The scheduler that the model was saved with. */
  readonly defaultScheduler: SchedulerName;
}

const schedulersOfClasses: Readonly<Record<string, SchedulerName>> = {
  DDIMScheduler: 'ddim',
  PNDMScheduler: 'pndm',
  EulerDiscreteScheduler: 'euler',
  EulerAncestralDiscreteScheduler: 'euler_ancestral',
  DPMSolverMultistepScheduler: 'dpmpp_2m',
  UniPCMultistepScheduler: 'unipc',
  LCMScheduler: 'lcm',
  FlowMatchEulerDiscreteScheduler: 'flow_match_euler',
};

/**
 * Parses a diffusers `scheduler_config.json`.
 *
 * @param json the parsed file; files that contain `-Infinity` need `parsePythonJson`.
 * @throws TypeError if it is not an object, Error if the class, a field or its value is not supported; the message
 * lists what is supported.
 */
export function parseSchedulerConfig(json: unknown): ParsedSchedulerConfig {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new TypeError('a scheduler config must be a JSON object');
  }
  const className = String((json as Record<string, unknown>)['_class_name']);
  const scheduler = Object.hasOwn(schedulersOfClasses, className) ? schedulersOfClasses[className] : undefined;
  if (scheduler === undefined) {
    const supported = Object.keys(schedulersOfClasses).join(', ');
    throw new Error(`scheduler class ${className} is not supported; supported are ${supported}`);
  }
  const config = readSchedulerConfig(json as Record<string, unknown>, scheduler === 'flow_match_euler');
  const { numTrainTimesteps, trainedBetas, algorithmType, sigmaSchedule } = config;
  if (trainedBetas !== null && trainedBetas.length !== numTrainTimesteps) {
    throw new TypeError(`trained_betas has ${trainedBetas.length} values for ${numTrainTimesteps} train timesteps`);
  }
  const isSde = algorithmType === 'sde-dpmsolver++';
  const dpmSolver = `dpmpp_2m${isSde ? '_sde' : ''}${sigmaSchedule === 'karras' ? '_karras' : ''}` as const;
  const defaultScheduler = scheduler === 'dpmpp_2m' ? dpmSolver : scheduler;
  const misfit = schedulerMisfit(defaultScheduler, config);
  if (misfit !== undefined) throw new Error(`scheduler config: ${misfit}`);
  return { config, defaultScheduler };
}
