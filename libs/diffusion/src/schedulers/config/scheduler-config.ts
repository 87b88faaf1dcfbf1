/**
 * Parses a diffusers `scheduler_config.json`. The schema has the fields of all supported classes and no others, so that
 * one config serves every scheduler, as with `OtherScheduler.from_config(config)`: each reads the fields of its own
 * class and ignores the others.
 */
import { itemAt } from '@darkroom/core';
import { z } from 'zod';

/** The schedulers' names in requests. */
export const schedulerNames = [
  'ddim',
  'pndm',
  'euler',
  'euler_ancestral',
  'dpmpp_2m',
  'dpmpp_2m_karras',
  'dpmpp_2m_sde',
  'dpmpp_2m_sde_karras',
  'unipc',
  'lcm',
  'flow_match_euler',
] as const;

export type SchedulerName = (typeof schedulerNames)[number];

interface InvalidIssue {
  readonly input?: unknown;
}

const mustBe = (expected: string) => ({
  error: ({ input }: InvalidIssue) => `must be ${expected}, not ${JSON.stringify(input)}`,
});

// zod's number does not accept infinity, but DPM-Solver configs contain `"lambda_min_clipped": -Infinity`.
const number = z.custom<number>((value) => typeof value === 'number', mustBe('a number'));
const positive = number.refine((value) => value > 0, mustBe('a number above 0'));
const flag = z.boolean(mustBe('true or false'));
const numbers = z.custom<readonly number[]>(
  (value) => Array.isArray(value) && value.every((entry) => typeof entry === 'number'),
  mustBe('an array of numbers or null'),
);

function integer(min: number) {
  const isOne = (value: number): boolean => Number.isSafeInteger(value) && value >= min;
  return number.refine(isOne, mustBe(`an integer of at least ${min}`));
}

function oneOf<const Choices extends readonly string[]>(...choices: Choices) {
  return z.enum(choices, mustBe(`one of ${choices.join(', ')}`));
}

/** Replaces an absent or null field by a default. */
function or<Value, Absent>(schema: z.ZodType<Value>, absent: Absent) {
  return schema.nullish().transform((value) => value ?? absent);
}

/**
 * A field for which only these values are implemented. Any other value is refused: an error is better than an image
 * that silently differs from the model's.
 */
function only(...values: readonly (string | boolean)[]) {
  const expected = values.length === 0 ? 'it must be absent' : `supported is ${values.join(', ')}`;
  const error = ({ input }: InvalidIssue): string => `${JSON.stringify(input)} is not supported; ${expected}`;
  const isKnown = (value: unknown): boolean => values.some((candidate) => candidate === value);
  return z.custom<string | boolean>(isKnown, { error }).nullish();
}

/** A default of null means that the classes' defaults differ. */
const fieldsSchema = z.strictObject({
  _class_name: z.string(),
  _diffusers_version: z.unknown().optional(),

  /** Number of training timesteps; also the maximum of inference steps. */
  num_train_timesteps: or(integer(2), 1000),
  /** null: 0.0001, for `lcm` 0.00085. */
  beta_start: or(number, null),
  /** null: 0.02, for `lcm` 0.012. */
  beta_end: or(number, null),
  /** Interpolation of betas from start to end. null: linear, for `lcm` scaled_linear. */
  beta_schedule: or(oneOf('linear', 'scaled_linear', 'squaredcos_cap_v2'), null),
  /** The betas, one per training timestep, instead of a schedule. */
  trained_betas: or(numbers, null),
  /** The model's output: the noise, the velocity (Salimans and Ho 2022), the finished latents, or the flow. */
  prediction_type: or(oneOf('epsilon', 'v_prediction', 'sample', 'flow_prediction'), null),
  /**
   * Distribution of inference steps over the training timesteps (Lin et al. 2023, Table 2). null: leading for `ddim`
   * and `pndm`, linspace for the others.
   */
  timestep_spacing: or(oneOf('leading', 'trailing', 'linspace'), null),
  /** Added to every timestep of leading spacing. */
  steps_offset: or(integer(0), 0),
  /** Shift the betas so that the last timestep has no signal (Lin et al. 2023). */
  rescale_betas_zero_snr: or(flag, false),
  /**
   * `ddim`, `pndm`: true if the last step ends at zero noise, false if at that of training timestep 0. null: not
   * `pndm`.
   */
  set_alpha_to_one: or(flag, null),
  /** `ddim`, `lcm`: true if x0 estimates are clipped to ± `clipSampleRange`. null: only in `ddim`. */
  clip_sample: or(flag, null),
  clip_sample_range: or(number, 1),
  /** `ddim`, `dpmpp_2m*`, `unipc`, `lcm`: replaces clipping, see `createDynamicThreshold`. */
  thresholding: or(flag, false),
  dynamic_thresholding_ratio: or(number, 0.995),
  sample_max_value: or(number, 1),
  /** `pndm`: start with a multistep rule of growing order instead of twelve model calls of Runge-Kutta. */
  skip_prk_steps: or(flag, false),
  use_karras_sigmas: or(flag, false),
  use_exponential_sigmas: or(flag, false),
  use_beta_sigmas: or(flag, false),
  /** `euler`, `dpmpp_2m*`, `unipc`: the last sigma of a run: 0, or the smallest of training. */
  final_sigmas_type: or(oneOf('zero', 'sigma_min'), 'zero'),
  /** `dpmpp_2m*` (2 only), `unipc` (1 … 3). */
  solver_order: or(integer(1), 2),
  /** `dpmpp_2m*` in runs of fewer than 15 steps, `unipc` in all: take the last step with the first-order solver. */
  lower_order_final: or(flag, true),
  /** `dpmpp_2m*`: take the last step with the first-order solver in every run. */
  euler_at_final: or(flag, false),
  /** `dpmpp_2m*`: omit the timesteps with log(√ᾱ / √(1 − ᾱ)) below this, for cosine schedules. */
  lambda_min_clipped: or(number, Number.NEGATIVE_INFINITY),
  /** `unipc`: solve for x0, or for the noise. */
  predict_x0: or(flag, true),
  /** `unipc`: indexes of steps whose result is not corrected by the next step. */
  disable_corrector: or(numbers, [] as readonly number[]),
  /** `lcm`: number of steps of the solver that it was distilled from; inference uses a subset. */
  original_inference_steps: or(integer(1), 50),
  /** `lcm`: rate at which the boundary condition fades with the timestep. */
  timestep_scaling: or(number, 10),

  // Flow models, whose sigma runs from 1 (all noise) to 0.
  use_flow_sigmas: or(flag, false),
  /** Above 1: more steps at high noise. Ignored with a dynamic shift. The field's name differs between two classes. */
  shift: or(positive, 1),
  flow_shift: or(positive, 1),
  /** True if the pipeline computes the shift from the image's size. */
  use_dynamic_shifting: or(flag, false),
  time_shift_type: or(oneOf('exponential', 'linear'), 'exponential'),
  /** Parameters of the dynamic shift, for pipelines. */
  base_shift: or(number, 0.5),
  max_shift: or(number, 1.15),
  base_image_seq_len: or(integer(1), 256),
  max_image_seq_len: or(integer(1), 4096),
  /** Stretch the sigmas so that this is the last one before the final 0; null or 0: do not. */
  shift_terminal: or(number, null),

  // Multistep solvers. Values from the config of a sibling class are read as this class's own default, as in diffusers.
  /** `dpmpp_2m*`: sde-dpmsolver++ adds noise at each step; it determines the default scheduler's name. */
  algorithm_type: only('dpmsolver++', 'sde-dpmsolver++', 'deis'),
  /** `unipc`: B(h) is h (bh1) or e^h − 1 (all others). */
  solver_type: only('midpoint', 'logrho', 'bh1', 'bh2'),
  // Fields that no scheduler here reads.
  use_lu_lambdas: only(false),
  solver_p: only(),
  variance_type: only('fixed_small', 'fixed_small_log', 'fixed_large', 'fixed_large_log'),
  interpolation_type: only('linear'),
  timestep_type: only('discrete'),
  sigma_min: only(),
  sigma_max: only(),
  // Of 2022: the library of the arrays.
  tensor_format: only('pt', 'np'),
  invert_sigmas: only(false),
  stochastic_sampling: only(false),
});

type CamelCase<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;
type Fields = {
  readonly [Name in keyof z.infer<typeof fieldsSchema> as CamelCase<Name>]: z.infer<typeof fieldsSchema>[Name];
};

/** The scheduler config: the fields above in camelCase. */
export type SchedulerConfig = ReturnType<typeof readSchedulerConfig>;
export type PredictionType = SchedulerConfig['predictionType'];
/** The formula of a run's sigmas, if they do not follow the timesteps. */
export type SigmaSchedule = (typeof sigmaSchedules)[number];

function readFields(json: Readonly<Record<string, unknown>>): Fields {
  const { data, error } = fieldsSchema.safeParse(json);
  if (error === undefined) {
    return Object.fromEntries(Object.entries(data).map(([name, value]) => [camelCase(name), value])) as Fields;
  }
  const issue = itemAt(error.issues, 0);
  if (issue.code !== 'unrecognized_keys')
    throw new TypeError(`scheduler config: ${itemAt(issue.path, 0).toString()} ${issue.message}`);
  const name = itemAt(issue.keys, 0);
  throw new Error(`scheduler config: ${name} (${JSON.stringify(json[name])}) is not a supported field`);
}

function camelCase(name: string): string {
  return name.replaceAll(/_(.)/gu, (_, first: string) => first.toUpperCase());
}

const sigmaSchedules = ['karras', 'exponential', 'beta'] as const;

/**
 * Reads the fields of a file.
 *
 * @param isFlowClass true if its class is a flow matching scheduler, which has other defaults.
 * @throws Error naming the field, its value and the supported values.
 */
export function readSchedulerConfig(json: Readonly<Record<string, unknown>>, isFlowClass: boolean) {
  const { useKarrasSigmas, useExponentialSigmas, useBetaSigmas, useFlowSigmas, flowShift, ...read } = readFields(json);
  const isUsed = { karras: useKarrasSigmas, exponential: useExponentialSigmas, beta: useBetaSigmas };
  const [sigmaSchedule = null, second] = sigmaSchedules.filter((schedule) => isUsed[schedule]);
  if (second !== undefined)
    throw new Error(`scheduler config: use_${sigmaSchedule}_sigmas and use_${second}_sigmas exclude each other`);
  const isFlow = useFlowSigmas || isFlowClass;
  // As in diffusers, 0 means no terminal sigma.
  const shiftTerminal = read.shiftTerminal || null;
  if (!isFlow && (read.useDynamicShifting || shiftTerminal !== null))
    throw new Error('scheduler config: use_dynamic_shifting and shift_terminal need use_flow_sigmas true');
  return {
    ...read,
    predictionType: read.predictionType ?? (isFlowClass ? 'flow_prediction' : 'epsilon'),
    /** `euler`, `dpmpp_2m*`, `unipc`, `flow_match_euler`; schedulers named `_karras` ignore it. */
    sigmaSchedule,
    isFlow,
    // The two classes name the same number differently.
    shift: isFlowClass ? read.shift : flowShift,
    shiftTerminal,
  };
}
