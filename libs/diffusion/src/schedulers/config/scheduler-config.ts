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
import type { SchedulerName } from '../scheduler.ts';
import { schedulerMisfit } from './scheduler-misfit.ts';

const betaSchedules = ['linear', 'scaled_linear', 'squaredcos_cap_v2'] as const;
const predictionTypes = ['epsilon', 'v_prediction', 'sample', 'flow_prediction'] as const;
const timestepSpacings = ['leading', 'trailing', 'linspace'] as const;
const sigmaSchedules = ['karras', 'exponential', 'beta'] as const;
const finalSigmasTypes = ['zero', 'sigma_min'] as const;
const timeShiftTypes = ['exponential', 'linear'] as const;

/** How betas run from start to end. */
export type BetaSchedule = (typeof betaSchedules)[number];
/** What the model's output is: the noise, the velocity (Salimans and Ho 2022), the finished latents, or the flow. */
export type PredictionType = (typeof predictionTypes)[number];
/** How the steps of a run are spread over the training timesteps (Lin et al. 2023, Table 2). */
export type TimestepSpacing = (typeof timestepSpacings)[number];
/** What a run's sigmas follow if not the timesteps. */
export type SigmaSchedule = (typeof sigmaSchedules)[number];
/** What the last sigma of a run is: 0, or the smallest of training. */
export type FinalSigmasType = (typeof finalSigmasTypes)[number];
/** How the size of a picture shifts the sigmas of a flow model. */
export type TimeShiftType = (typeof timeShiftTypes)[number];

/** Dynamic thresholding of x0 estimates, see `createDynamicThreshold`. */
export interface DynamicThresholding {
  readonly ratio: number;
  readonly maxValue: number;
}

/** The steps of a flow model, whose sigma runs from 1 (all noise) to 0. */
export interface FlowConfig {
  /** Above 1: more of the steps at high noise. Not read where the shift is dynamic. */
  readonly shift: number;
  /** Whether the pipeline gives a shift that goes with the size of the picture. */
  readonly useDynamicShifting: boolean;
  readonly timeShiftType: TimeShiftType;
  /** What pipelines make a dynamic shift of. */
  readonly baseShift: number;
  readonly maxShift: number;
  readonly baseImageSeqLen: number;
  readonly maxImageSeqLen: number;
  /** Stretch the steps so that this is the last sigma but the 0 at the end; null: do not. */
  readonly shiftTerminal: number | null;
}

/**
 * The fields of a diffusers `scheduler_config.json` that a scheduler here reads, in camelCase. A field the file does not
 * have is the default of the diffusers class that is asked for; null where the classes disagree about it. So one config
 * serves every scheduler, as `OtherScheduler.from_config(config)` does.
 */
export interface SchedulerConfig {
  /** Timesteps of training; the limit of inference steps. */
  readonly numTrainTimesteps: number;
  /** null: 0.0001, for `lcm` 0.00085. */
  readonly betaStart: number | null;
  /** null: 0.02, for `lcm` 0.012. */
  readonly betaEnd: number | null;
  /** null: linear, for `lcm` scaled_linear. */
  readonly betaSchedule: BetaSchedule | null;
  /** The betas themselves, one per training timestep, instead of a schedule. */
  readonly trainedBetas: readonly number[] | null;
  readonly predictionType: PredictionType;
  /** null: leading for `ddim` and `pndm`, linspace for the others. */
  readonly timestepSpacing: TimestepSpacing | null;
  /** Added to every timestep of leading spacing. */
  readonly stepsOffset: number;
  /** Shift the betas so that nothing of the picture is left at the last timestep (Lin et al. 2023). */
  readonly rescaleBetasZeroSnr: boolean;
  /** `ddim`, `pndm`: whether the last step ends at no noise at all, or at that of training timestep 0. null: not `pndm`. */
  readonly setAlphaToOne: boolean | null;
  /** `ddim`, `lcm`: whether x0 estimates are clipped to ± `clipSampleRange`. null: only in `ddim`. */
  readonly clipSample: boolean | null;
  /** `ddim`, `lcm`: see `clipSample`. */
  readonly clipSampleRange: number;
  /** `ddim`, `dpmpp_2m*`, `unipc`, `lcm`: takes the place of clipping; null: off. */
  readonly thresholding: DynamicThresholding | null;
  /** `pndm`: start with a multistep rule that grows, not with twelve model calls of Runge-Kutta. */
  readonly skipPrkSteps: boolean;
  /** `euler`, `dpmpp_2m*`, `unipc`, `flow_match_euler`; names that end in `_karras` do not read this. */
  readonly sigmaSchedule: SigmaSchedule | null;
  /** `euler`, `dpmpp_2m*`, `unipc`. */
  readonly finalSigmasType: FinalSigmasType;
  /** `dpmpp_2m*`: whether noise is added at each step, by which their default name is chosen. */
  readonly isSde: boolean;
  /** `dpmpp_2m*` (2 only), `unipc` (1 … 3). */
  readonly solverOrder: number;
  /** `dpmpp_2m*`: in runs of fewer than 15 steps, take the last step with the first-order solver. `unipc`: in any run. */
  readonly lowerOrderFinal: boolean;
  /** `dpmpp_2m*`: take the last step with the first-order solver in every run. */
  readonly eulerAtFinal: boolean;
  /** `dpmpp_2m*`: leave out the timesteps with log(√ᾱ / √(1 − ᾱ)) below this, for cosine schedules. */
  readonly lambdaMinClipped: number;
  /** `unipc`: B(h) is h (bh1) or e^h − 1 (bh2). */
  readonly solverType: 'bh1' | 'bh2';
  /** `unipc`: solve for x0, or for the noise. */
  readonly predictX0: boolean;
  /** `unipc`: steps, counted from 0, whose result is not corrected by the step after. */
  readonly disableCorrector: readonly number[];
  /** `lcm`: the steps of the solver it was distilled from, of which it takes some. */
  readonly originalInferenceSteps: number;
  /** `lcm`: how quickly the boundary condition fades with the timestep. */
  readonly timestepScaling: number;
  /** null: not a flow model. */
  readonly flow: FlowConfig | null;
}

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
