import type { SchedulerName } from './scheduler.ts';

const betaSchedules = ['linear', 'scaled_linear', 'squaredcos_cap_v2'] as const;
const predictionTypes = ['epsilon', 'v_prediction', 'sample'] as const;
const timestepSpacings = ['leading', 'trailing', 'linspace'] as const;
const finalSigmasTypes = ['zero', 'sigma_min'] as const;

/** How betas run from start to end. */
export type BetaSchedule = (typeof betaSchedules)[number];
/** What the model's output is: the noise, the velocity (Salimans and Ho 2022), or the finished latents. */
export type PredictionType = (typeof predictionTypes)[number];
/** How the steps of a run are spread over the training timesteps (Lin et al. 2023, Table 2). */
export type TimestepSpacing = (typeof timestepSpacings)[number];
/** What the last sigma of a run is: 0, or the smallest of training. */
export type FinalSigmasType = (typeof finalSigmasTypes)[number];

/**
 * The fields of a diffusers `scheduler_config.json` that a scheduler here reads, in camelCase. A field the file does not
 * have is the default of the diffusers class that is asked for, which is the same in all of them except for
 * `timestepSpacing`. So one config serves every scheduler, as `OtherScheduler.from_config(config)` does.
 */
export interface SchedulerConfig {
  /** Timesteps of training; the limit of inference steps. */
  readonly numTrainTimesteps: number;
  readonly betaStart: number;
  readonly betaEnd: number;
  readonly betaSchedule: BetaSchedule;
  /** The betas themselves, one per training timestep, instead of a schedule. */
  readonly trainedBetas: readonly number[] | null;
  readonly predictionType: PredictionType;
  /** null: not in the file, so the class's own default: leading for `ddim`, linspace for the others. */
  readonly timestepSpacing: TimestepSpacing | null;
  /** Added to every timestep of leading spacing. */
  readonly stepsOffset: number;
  /** Shift the betas so that nothing of the picture is left at the last timestep (Lin et al. 2023). */
  readonly rescaleBetasZeroSnr: boolean;
  /** `ddim`: whether the last step ends at no noise at all, or at that of training timestep 0. */
  readonly setAlphaToOne: boolean;
  /** `ddim`: whether x0 estimates are clipped to ± `clipSampleRange`. */
  readonly clipSample: boolean;
  /** `ddim`: see `clipSample`. */
  readonly clipSampleRange: number;
  /** `euler`: sigmas of Karras et al. `dpmpp_2m` and `dpmpp_2m_karras` say so in their name and do not read this. */
  readonly useKarrasSigmas: boolean;
  /** `euler`, `dpmpp_2m*`. */
  readonly finalSigmasType: FinalSigmasType;
  /** `dpmpp_2m*`: in runs of fewer than 15 steps, take the last step with the first-order solver. */
  readonly lowerOrderFinal: boolean;
  /** `dpmpp_2m*`: take the last step with the first-order solver in every run. */
  readonly eulerAtFinal: boolean;
  /** `dpmpp_2m*`: leave out the timesteps with log(√ᾱ / √(1 − ᾱ)) below this, for cosine schedules. */
  readonly lambdaMinClipped: number;
}

/** What {@link parseSchedulerConfig} finds in a file. */
export interface ParsedSchedulerConfig {
  readonly config: SchedulerConfig;
  /** The scheduler the model was saved with, or the nearest there is (see `className`). */
  readonly defaultScheduler: SchedulerName;
  /** `_class_name` of the file, e.g. to tell a user that `PNDMScheduler` is served by `ddim`. */
  readonly className: string;
}

const schedulersOfClasses: Readonly<Record<string, SchedulerName>> = {
  DDIMScheduler: 'ddim',
  EulerDiscreteScheduler: 'euler',
  EulerAncestralDiscreteScheduler: 'euler_ancestral',
  DPMSolverMultistepScheduler: 'dpmpp_2m',
  // Stable Diffusion 1.x and most of its fine-tunes are saved with PNDM, and must run unedited. As they set
  // skip_prk_steps it is DDIM with a linear multistep rule for the noise, on the same timesteps, and what DDIM makes of
  // the file is what `DDIMScheduler.from_config` makes of it. The other classes are rarer and further away: those throw.
  PNDMScheduler: 'ddim',
};

/**
 * Fields that change the arithmetic, and the values under which it is the one implemented here. Any other value is
 * refused: a picture that is quietly not the model's is worse than an error. null and absent always pass.
 */
const requiredValues: Readonly<Record<string, readonly (string | number | boolean)[]>> = {
  thresholding: [false],
  solver_order: [2],
  // diffusers itself reads deis, logrho, bh1 and bh2, which come from the configs of sibling solvers, as these.
  algorithm_type: ['dpmsolver++', 'deis'],
  solver_type: ['midpoint', 'logrho', 'bh1', 'bh2'],
  use_exponential_sigmas: [false],
  use_beta_sigmas: [false],
  use_lu_lambdas: [false],
  use_flow_sigmas: [false],
  variance_type: ['fixed_small', 'fixed_small_log', 'fixed_large', 'fixed_large_log'],
  interpolation_type: ['linear'],
  timestep_type: ['discrete'],
  sigma_min: [],
  sigma_max: [],
};

/**
 * Reads a diffusers `scheduler_config.json`.
 *
 * @param json the parsed file; files with `-Infinity` in them need `parsePythonJson`.
 * @throws TypeError if it is not an object or a field has a wrong type or value.
 * @throws Error if the class or an option in it is not supported; the message lists what is.
 */
export function parseSchedulerConfig(json: unknown): ParsedSchedulerConfig {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new TypeError('a scheduler config must be a JSON object');
  }
  const fields = json as Record<string, unknown>;
  const className = String(fields['_class_name']);
  const scheduler = Object.hasOwn(schedulersOfClasses, className) ? schedulersOfClasses[className] : undefined;
  if (scheduler === undefined) {
    const supported = Object.keys(schedulersOfClasses).join(', ');
    throw new Error(`scheduler class ${className} is not supported; supported are ${supported}`);
  }
  for (const [name, accepted] of Object.entries(requiredValues)) assertAccepted(fields, name, accepted);
  const config = readConfig(fields);
  const { numTrainTimesteps, trainedBetas } = config;
  if (trainedBetas !== null && trainedBetas.length !== numTrainTimesteps) {
    throw new TypeError(`trained_betas has ${trainedBetas.length} values for ${numTrainTimesteps} train timesteps`);
  }
  const isKarras = scheduler === 'dpmpp_2m' && config.useKarrasSigmas;
  return { config, defaultScheduler: isKarras ? 'dpmpp_2m_karras' : scheduler, className };
}

function readConfig(fields: Record<string, unknown>): SchedulerConfig {
  return {
    numTrainTimesteps: readInteger(fields, 'num_train_timesteps', 1000, 2),
    betaStart: readNumber(fields, 'beta_start', 0.0001),
    betaEnd: readNumber(fields, 'beta_end', 0.02),
    betaSchedule: readChoice(fields, 'beta_schedule', betaSchedules) ?? 'linear',
    trainedBetas: readNumbers(fields, 'trained_betas'),
    predictionType: readChoice(fields, 'prediction_type', predictionTypes) ?? 'epsilon',
    timestepSpacing: readChoice(fields, 'timestep_spacing', timestepSpacings),
    stepsOffset: readInteger(fields, 'steps_offset', 0, 0),
    rescaleBetasZeroSnr: readFlag(fields, 'rescale_betas_zero_snr', false),
    setAlphaToOne: readFlag(fields, 'set_alpha_to_one', true),
    clipSample: readFlag(fields, 'clip_sample', true),
    clipSampleRange: readNumber(fields, 'clip_sample_range', 1),
    useKarrasSigmas: readFlag(fields, 'use_karras_sigmas', false),
    finalSigmasType: readChoice(fields, 'final_sigmas_type', finalSigmasTypes) ?? 'zero',
    lowerOrderFinal: readFlag(fields, 'lower_order_final', true),
    eulerAtFinal: readFlag(fields, 'euler_at_final', false),
    lambdaMinClipped: readNumber(fields, 'lambda_min_clipped', Number.NEGATIVE_INFINITY),
  };
}

function assertAccepted(
  fields: Record<string, unknown>,
  name: string,
  accepted: readonly (string | number | boolean)[],
): void {
  const value = fields[name] ?? null;
  if (value === null || accepted.some((candidate) => candidate === value)) return;
  const expected = accepted.length === 0 ? 'it must be absent' : `supported is ${accepted.join(', ')}`;
  throw new Error(`scheduler config: ${name} ${JSON.stringify(value)} is not supported; ${expected}`);
}

function refuse(name: string, value: unknown, expected: string): never {
  throw new TypeError(`scheduler config: ${name} must be ${expected}, not ${JSON.stringify(value)}`);
}

function readNumber(fields: Record<string, unknown>, name: string, absent: number): number {
  const value = fields[name] ?? absent;
  return typeof value === 'number' ? value : refuse(name, value, 'a number');
}

function readInteger(fields: Record<string, unknown>, name: string, absent: number, least: number): number {
  const value = readNumber(fields, name, absent);
  return Number.isSafeInteger(value) && value >= least ? value : refuse(name, value, `an integer of at least ${least}`);
}

function readFlag(fields: Record<string, unknown>, name: string, absent: boolean): boolean {
  const value = fields[name] ?? absent;
  return typeof value === 'boolean' ? value : refuse(name, value, 'true or false');
}

function readNumbers(fields: Record<string, unknown>, name: string): number[] | null {
  const value = fields[name] ?? null;
  if (value === null) return null;
  if (Array.isArray(value) && value.every((entry) => typeof entry === 'number')) return value;
  return refuse(name, value, 'an array of numbers or null');
}

function readChoice<Choice extends string>(
  fields: Record<string, unknown>,
  name: string,
  choices: readonly Choice[],
): Choice | null {
  const value = fields[name] ?? null;
  if (value === null) return null;
  return choices.find((choice) => choice === value) ?? refuse(name, value, `one of ${choices.join(', ')}`);
}
