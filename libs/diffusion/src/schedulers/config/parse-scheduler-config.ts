import {
  readChoice,
  readFlag,
  readFlagOrNull,
  readInteger,
  readNumber,
  readNumberOrNull,
  readNumbers,
  readPositive,
} from './config-fields.ts';
import type { ConfigFields } from './config-fields.ts';
import { assertKnownFields } from './known-fields.ts';
import {
  betaSchedules,
  finalSigmasTypes,
  predictionTypes,
  sigmaSchedules,
  timeShiftTypes,
  timestepSpacings,
} from './scheduler-config.ts';
import type { DynamicThresholding, FlowConfig, SchedulerConfig, SigmaSchedule } from './scheduler-config.ts';
import type { SchedulerName } from '../scheduler.ts';
import { schedulerMisfit } from './scheduler-misfit.ts';

/** What {@link parseSchedulerConfig} finds in a file. */
export interface ParsedSchedulerConfig {
  readonly config: SchedulerConfig;
  /** The scheduler the model was saved with. */
  readonly defaultScheduler: SchedulerName;
  /** `_class_name` of the file. */
  readonly className: string;
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
 * Reads a diffusers `scheduler_config.json`.
 *
 * @param json the parsed file; files with `-Infinity` in them need `parsePythonJson`.
 * @throws TypeError if it is not an object or a field has a wrong type or value.
 * @throws Error if the class, or a field or an option in it, is not supported; the message says what is.
 */
export function parseSchedulerConfig(json: unknown): ParsedSchedulerConfig {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new TypeError('a scheduler config must be a JSON object');
  }
  const fields = json as ConfigFields;
  const className = String(fields['_class_name']);
  const scheduler = Object.hasOwn(schedulersOfClasses, className) ? schedulersOfClasses[className] : undefined;
  if (scheduler === undefined) {
    const supported = Object.keys(schedulersOfClasses).join(', ');
    throw new Error(`scheduler class ${className} is not supported; supported are ${supported}`);
  }
  assertKnownFields(fields);
  const config = readConfig(fields, scheduler === 'flow_match_euler');
  const { numTrainTimesteps, trainedBetas } = config;
  if (trainedBetas !== null && trainedBetas.length !== numTrainTimesteps) {
    throw new TypeError(`trained_betas has ${trainedBetas.length} values for ${numTrainTimesteps} train timesteps`);
  }
  const defaultScheduler = scheduler === 'dpmpp_2m' ? dpmSolverName(config) : scheduler;
  const misfit = schedulerMisfit(defaultScheduler, config);
  if (misfit !== undefined) throw new Error(`scheduler config: ${misfit}`);
  return { config, defaultScheduler, className };
}

function dpmSolverName({ isSde, sigmaSchedule }: SchedulerConfig): SchedulerName {
  const isKarras = sigmaSchedule === 'karras';
  if (isSde) return isKarras ? 'dpmpp_2m_sde_karras' : 'dpmpp_2m_sde';
  return isKarras ? 'dpmpp_2m_karras' : 'dpmpp_2m';
}

function readConfig(fields: ConfigFields, isFlowClass: boolean): SchedulerConfig {
  const flow = readFlow(fields, isFlowClass);
  const absentPrediction = isFlowClass ? 'flow_prediction' : 'epsilon';
  return {
    numTrainTimesteps: readInteger(fields, 'num_train_timesteps', 1000, 2),
    betaStart: readNumberOrNull(fields, 'beta_start'),
    betaEnd: readNumberOrNull(fields, 'beta_end'),
    betaSchedule: readChoice(fields, 'beta_schedule', betaSchedules),
    trainedBetas: readNumbers(fields, 'trained_betas'),
    predictionType: readChoice(fields, 'prediction_type', predictionTypes) ?? absentPrediction,
    timestepSpacing: readChoice(fields, 'timestep_spacing', timestepSpacings),
    stepsOffset: readInteger(fields, 'steps_offset', 0, 0),
    rescaleBetasZeroSnr: readFlag(fields, 'rescale_betas_zero_snr', false),
    setAlphaToOne: readFlagOrNull(fields, 'set_alpha_to_one'),
    clipSample: readFlagOrNull(fields, 'clip_sample'),
    clipSampleRange: readNumber(fields, 'clip_sample_range', 1),
    thresholding: readThresholding(fields),
    skipPrkSteps: readFlag(fields, 'skip_prk_steps', false),
    sigmaSchedule: readSigmaSchedule(fields),
    finalSigmasType: readChoice(fields, 'final_sigmas_type', finalSigmasTypes) ?? 'zero',
    isSde: fields['algorithm_type'] === 'sde-dpmsolver++',
    solverOrder: readInteger(fields, 'solver_order', 2, 1),
    lowerOrderFinal: readFlag(fields, 'lower_order_final', true),
    eulerAtFinal: readFlag(fields, 'euler_at_final', false),
    lambdaMinClipped: readNumber(fields, 'lambda_min_clipped', Number.NEGATIVE_INFINITY),
    solverType: fields['solver_type'] === 'bh1' ? 'bh1' : 'bh2',
    predictX0: readFlag(fields, 'predict_x0', true),
    disableCorrector: readNumbers(fields, 'disable_corrector') ?? [],
    originalInferenceSteps: readInteger(fields, 'original_inference_steps', 50, 1),
    timestepScaling: readNumber(fields, 'timestep_scaling', 10),
    flow,
  };
}

function readFlow(fields: ConfigFields, isFlowClass: boolean): FlowConfig | null {
  // 0 is no end to stretch to for diffusers, either.
  const shiftTerminal = readNumberOrNull(fields, 'shift_terminal') || null;
  const useDynamicShifting = readFlag(fields, 'use_dynamic_shifting', false);
  if (!readFlag(fields, 'use_flow_sigmas', false) && !isFlowClass) {
    if (!useDynamicShifting && shiftTerminal === null) return null;
    throw new Error('scheduler config: use_dynamic_shifting and shift_terminal need use_flow_sigmas true');
  }
  return {
    // The same number under the names of two classes.
    shift: readPositive(fields, isFlowClass ? 'shift' : 'flow_shift', 1),
    useDynamicShifting,
    timeShiftType: readChoice(fields, 'time_shift_type', timeShiftTypes) ?? 'exponential',
    baseShift: readNumber(fields, 'base_shift', 0.5),
    maxShift: readNumber(fields, 'max_shift', 1.15),
    baseImageSeqLen: readInteger(fields, 'base_image_seq_len', 256, 1),
    maxImageSeqLen: readInteger(fields, 'max_image_seq_len', 4096, 1),
    shiftTerminal,
  };
}

function readThresholding(fields: ConfigFields): DynamicThresholding | null {
  const ratio = readNumber(fields, 'dynamic_thresholding_ratio', 0.995);
  const maxValue = readNumber(fields, 'sample_max_value', 1);
  return readFlag(fields, 'thresholding', false) ? { ratio, maxValue } : null;
}

function readSigmaSchedule(fields: ConfigFields): SigmaSchedule | null {
  const [first, second] = sigmaSchedules.filter((schedule) => readFlag(fields, `use_${schedule}_sigmas`, false));
  if (second === undefined) return first ?? null;
  throw new Error(`scheduler config: use_${first}_sigmas and use_${second}_sigmas exclude each other`);
}
