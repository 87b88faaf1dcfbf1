import type { ConfigFields } from './config-fields.ts';

/**
 * Fields of which only these values are the arithmetic implemented here. Any other value is refused: a picture that is
 * quietly not the model's is worse than an error. null and absent always pass.
 */
const requiredValues: Readonly<Record<string, readonly (string | number | boolean)[]>> = {
  // Multistep solvers; diffusers, too, reads the names that come from the config of a sibling as the sibling's own default.
  algorithm_type: ['dpmsolver++', 'sde-dpmsolver++', 'deis'],
  solver_type: ['midpoint', 'logrho', 'bh1', 'bh2'],
  use_lu_lambdas: [false],
  solver_p: [],
  variance_type: ['fixed_small', 'fixed_small_log', 'fixed_large', 'fixed_large_log'],
  // Euler.
  interpolation_type: ['linear'],
  timestep_type: ['discrete'],
  sigma_min: [],
  sigma_max: [],
  // Of 2022: which library the arrays were of.
  tensor_format: ['pt', 'np'],
  // Flow matching.
  invert_sigmas: [false],
  stochastic_sampling: [false],
};

/**
 * All other fields that the diffusers classes supported here have, and no more. Each scheduler reads those of its own
 * class; a field of another class is left over from the config that this one was made from, changes nothing in diffusers
 * and changes nothing here.
 */
const readFields: ReadonlySet<string> = new Set([
  '_class_name',
  '_diffusers_version',
  'num_train_timesteps',
  'beta_start',
  'beta_end',
  'beta_schedule',
  'trained_betas',
  'prediction_type',
  'timestep_spacing',
  'steps_offset',
  'rescale_betas_zero_snr',
  'set_alpha_to_one',
  'clip_sample',
  'clip_sample_range',
  'thresholding',
  'dynamic_thresholding_ratio',
  'sample_max_value',
  'skip_prk_steps',
  'use_karras_sigmas',
  'use_exponential_sigmas',
  'use_beta_sigmas',
  'final_sigmas_type',
  'solver_order',
  'lower_order_final',
  'euler_at_final',
  'lambda_min_clipped',
  'predict_x0',
  'disable_corrector',
  'original_inference_steps',
  'timestep_scaling',
  'use_flow_sigmas',
  'flow_shift',
  'shift',
  'use_dynamic_shifting',
  'time_shift_type',
  'base_shift',
  'max_shift',
  'base_image_seq_len',
  'max_image_seq_len',
  'shift_terminal',
]);

/**
 * Refuses a field that no scheduler here knows, or a value that none implements.
 *
 * @throws Error naming the field and its value.
 */
export function assertKnownFields(fields: ConfigFields): void {
  for (const [name, value] of Object.entries(fields)) {
    if (readFields.has(name)) continue;
    const shown = JSON.stringify(value);
    const accepted = Object.hasOwn(requiredValues, name) ? requiredValues[name] : undefined;
    if (accepted === undefined)
      throw new Error(`scheduler config: ${name} (${shown}) is not a field that is known here`);
    if (value === null || accepted.some((candidate) => candidate === value)) continue;
    const expected = accepted.length === 0 ? 'it must be absent' : `supported is ${accepted.join(', ')}`;
    throw new Error(`scheduler config: ${name} ${shown} is not supported; ${expected}`);
  }
}
