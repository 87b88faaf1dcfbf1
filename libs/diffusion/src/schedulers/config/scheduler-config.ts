/**
 * A diffusers `scheduler_config.json`. The schema has the fields of all classes supported here and no others, so that one
 * config serves every scheduler, as `OtherScheduler.from_config(config)` does: each reads those of its own class, and what
 * is left over from another class changes nothing, there or here.
 */
import { z } from 'zod';

interface Refused {
  readonly input?: unknown;
}

const mustBe = (expected: string) => ({
  error: ({ input }: Refused) => `must be ${expected}, not ${JSON.stringify(input)}`,
});

// Not zod's, which takes no infinity: a DPM-Solver config is saved with `"lambda_min_clipped": -Infinity`.
const number = z.custom<number>((value) => typeof value === 'number', mustBe('a number'));
const positive = number.refine((value) => value > 0, mustBe('a number above 0'));
const flag = z.boolean(mustBe('true or false'));
const numbers = z.custom<readonly number[]>(
  (value) => Array.isArray(value) && value.every((entry) => typeof entry === 'number'),
  mustBe('an array of numbers or null'),
);

function integer(least: number) {
  const isOne = (value: number): boolean => Number.isSafeInteger(value) && value >= least;
  return number.refine(isOne, mustBe(`an integer of at least ${least}`));
}

function oneOf<const Choices extends readonly string[]>(...choices: Choices) {
  return z.enum(choices, mustBe(`one of ${choices.join(', ')}`));
}

/** A field that is absent or null counts as this. */
function or<Value, Absent>(schema: z.ZodType<Value>, absent: Absent) {
  return schema.nullish().transform((value) => value ?? absent);
}

/**
 * A field of which only these values are the arithmetic implemented here. Any other value is refused: a picture that is
 * quietly not the model's is worse than an error.
 */
function only(...values: readonly (string | boolean)[]) {
  const expected = values.length === 0 ? 'it must be absent' : `supported is ${values.join(', ')}`;
  const error = ({ input }: Refused): string => `${JSON.stringify(input)} is not supported; ${expected}`;
  const isKnown = (value: unknown): boolean => values.some((candidate) => candidate === value);
  return z.custom<string | boolean>(isKnown, { error }).nullish();
}

/** What is null here differs between the classes where the file does not say it. */
const fieldsSchema = z.strictObject({
  _class_name: z.string(),
  _diffusers_version: z.unknown().optional(),

  /** Timesteps of training; the limit of inference steps. */
  num_train_timesteps: or(integer(2), 1000),
  /** null: 0.0001, for `lcm` 0.00085. */
  beta_start: or(number, null),
  /** null: 0.02, for `lcm` 0.012. */
  beta_end: or(number, null),
  /** How betas run from start to end. null: linear, for `lcm` scaled_linear. */
  beta_schedule: or(oneOf('linear', 'scaled_linear', 'squaredcos_cap_v2'), null),
  /** The betas themselves, one per training timestep, instead of a schedule. */
  trained_betas: or(numbers, null),
  /** What the model says: the noise, the velocity (Salimans and Ho 2022), the finished latents, or the flow. */
  prediction_type: or(oneOf('epsilon', 'v_prediction', 'sample', 'flow_prediction'), null),
  /**
   * How the steps of a run are spread over the training timesteps (Lin et al. 2023, Table 2). null: leading for `ddim` and
   * `pndm`, linspace for the others.
   */
  timestep_spacing: or(oneOf('leading', 'trailing', 'linspace'), null),
  /** Added to every timestep of leading spacing. */
  steps_offset: or(integer(0), 0),
  /** Shift the betas so that nothing of the picture is left at the last timestep (Lin et al. 2023). */
  rescale_betas_zero_snr: or(flag, false),
  /** `ddim`, `pndm`: whether the last step ends at no noise at all, or at that of training timestep 0. null: not `pndm`. */
  set_alpha_to_one: or(flag, null),
  /** `ddim`, `lcm`: whether x0 estimates are clipped to ± `clipSampleRange`. null: only in `ddim`. */
  clip_sample: or(flag, null),
  clip_sample_range: or(number, 1),
  /** `ddim`, `dpmpp_2m*`, `unipc`, `lcm`: takes the place of clipping, see `createDynamicThreshold`. */
  thresholding: or(flag, false),
  dynamic_thresholding_ratio: or(number, 0.995),
  sample_max_value: or(number, 1),
  /** `pndm`: start with a multistep rule that grows, not with twelve model calls of Runge-Kutta. */
  skip_prk_steps: or(flag, false),
  use_karras_sigmas: or(flag, false),
  use_exponential_sigmas: or(flag, false),
  use_beta_sigmas: or(flag, false),
  /** `euler`, `dpmpp_2m*`, `unipc`: what the last sigma of a run is, 0 or the smallest of training. */
  final_sigmas_type: or(oneOf('zero', 'sigma_min'), 'zero'),
  /** `dpmpp_2m*` (2 only), `unipc` (1 … 3). */
  solver_order: or(integer(1), 2),
  /** `dpmpp_2m*`: in runs of fewer than 15 steps, take the last step with the first-order solver. `unipc`: in any run. */
  lower_order_final: or(flag, true),
  /** `dpmpp_2m*`: take the last step with the first-order solver in every run. */
  euler_at_final: or(flag, false),
  /** `dpmpp_2m*`: leave out the timesteps with log(√ᾱ / √(1 − ᾱ)) below this, for cosine schedules. */
  lambda_min_clipped: or(number, Number.NEGATIVE_INFINITY),
  /** `unipc`: solve for x0, or for the noise. */
  predict_x0: or(flag, true),
  /** `unipc`: steps, counted from 0, whose result is not corrected by the step after. */
  disable_corrector: or(numbers, [] as readonly number[]),
  /** `lcm`: the steps of the solver it was distilled from, of which it takes some. */
  original_inference_steps: or(integer(1), 50),
  /** `lcm`: how quickly the boundary condition fades with the timestep. */
  timestep_scaling: or(number, 10),

  // Flow models, whose sigma runs from 1 (all noise) to 0.
  use_flow_sigmas: or(flag, false),
  /** Above 1: more of the steps at high noise. Not read where the shift is dynamic. The name differs between two classes. */
  shift: or(positive, 1),
  flow_shift: or(positive, 1),
  /** Whether the pipeline gives a shift that goes with the size of the picture. */
  use_dynamic_shifting: or(flag, false),
  time_shift_type: or(oneOf('exponential', 'linear'), 'exponential'),
  /** What pipelines make a dynamic shift of. */
  base_shift: or(number, 0.5),
  max_shift: or(number, 1.15),
  base_image_seq_len: or(integer(1), 256),
  max_image_seq_len: or(integer(1), 4096),
  /** Stretch the steps so that this is the last sigma but the 0 at the end; null or 0: do not. */
  shift_terminal: or(number, null),

  // Multistep solvers; diffusers, too, reads the names that come from the config of a sibling as the sibling's own default.
  /** `dpmpp_2m*`: whether noise is added at each step (sde-dpmsolver++), by which their default name is chosen. */
  algorithm_type: only('dpmsolver++', 'sde-dpmsolver++', 'deis'),
  /** `unipc`: B(h) is h (bh1) or e^h − 1 (all others). */
  solver_type: only('midpoint', 'logrho', 'bh1', 'bh2'),
  // Nothing here reads the others.
  use_lu_lambdas: only(false),
  solver_p: only(),
  variance_type: only('fixed_small', 'fixed_small_log', 'fixed_large', 'fixed_large_log'),
  interpolation_type: only('linear'),
  timestep_type: only('discrete'),
  sigma_min: only(),
  sigma_max: only(),
  // Of 2022: which library the arrays were of.
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

/** What a scheduler reads of its model's config: the fields above in camelCase. */
export type SchedulerConfig = ReturnType<typeof readSchedulerConfig>;
export type PredictionType = SchedulerConfig['predictionType'];
/** What a run's sigmas follow if not the timesteps. */
export type SigmaSchedule = (typeof sigmaSchedules)[number];

function readFields(json: Readonly<Record<string, unknown>>): Fields {
  const { data, error } = fieldsSchema.safeParse(json);
  if (error === undefined) {
    return Object.fromEntries(Object.entries(data).map(([name, value]) => [camelCase(name), value])) as Fields;
  }
  const issue = error.issues[0]!;
  if (issue.code !== 'unrecognized_keys')
    throw new TypeError(`scheduler config: ${issue.path[0]!.toString()} ${issue.message}`);
  const name = issue.keys[0]!;
  throw new Error(`scheduler config: ${name} (${JSON.stringify(json[name])}) is not a field that is known here`);
}

function camelCase(name: string): string {
  return name.replaceAll(/_(.)/gu, (_, first: string) => first.toUpperCase());
}

const sigmaSchedules = ['karras', 'exponential', 'beta'] as const;

/**
 * Reads the fields of a file.
 *
 * @param isFlowClass whether its class is one of flow matching, which has other defaults.
 * @throws Error naming the field, what it is and what is supported.
 */
export function readSchedulerConfig(json: Readonly<Record<string, unknown>>, isFlowClass: boolean) {
  const { useKarrasSigmas, useExponentialSigmas, useBetaSigmas, useFlowSigmas, flowShift, ...read } = readFields(json);
  const isUsed = { karras: useKarrasSigmas, exponential: useExponentialSigmas, beta: useBetaSigmas };
  const [sigmaSchedule = null, second] = sigmaSchedules.filter((schedule) => isUsed[schedule]);
  if (second !== undefined)
    throw new Error(`scheduler config: use_${sigmaSchedule}_sigmas and use_${second}_sigmas exclude each other`);
  const isFlow = useFlowSigmas || isFlowClass;
  // 0 is no end to stretch to for diffusers, either.
  const shiftTerminal = read.shiftTerminal || null;
  if (!isFlow && (read.useDynamicShifting || shiftTerminal !== null))
    throw new Error('scheduler config: use_dynamic_shifting and shift_terminal need use_flow_sigmas true');
  return {
    ...read,
    predictionType: read.predictionType ?? (isFlowClass ? 'flow_prediction' : 'epsilon'),
    /** `euler`, `dpmpp_2m*`, `unipc`, `flow_match_euler`; names that end in `_karras` do not read this. */
    sigmaSchedule,
    isFlow,
    // The same number under the names of two classes.
    shift: isFlowClass ? read.shift : flowShift,
    shiftTerminal,
  };
}
