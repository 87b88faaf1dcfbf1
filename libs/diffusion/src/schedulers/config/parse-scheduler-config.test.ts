import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { parseSchedulerConfig } from './parse-scheduler-config.ts';

const DDIM = { _class_name: 'DDIMScheduler' };
const PNDM = { _class_name: 'PNDMScheduler' };
const EULER = { _class_name: 'EulerDiscreteScheduler' };
const DPM = { _class_name: 'DPMSolverMultistepScheduler' };
const UNIPC = { _class_name: 'UniPCMultistepScheduler' };
const UNIPC_FLOW = { ...UNIPC, use_flow_sigmas: true, prediction_type: 'flow_prediction' };
const LCM = { _class_name: 'LCMScheduler' };
const FLOW = { _class_name: 'FlowMatchEulerDiscreteScheduler' };

/** Returns the config of a file that has a class and nothing else. */
const absent = {
  numTrainTimesteps: 1000,
  betaStart: null,
  betaEnd: null,
  betaSchedule: null,
  trainedBetas: null,
  predictionType: 'epsilon',
  timestepSpacing: null,
  stepsOffset: 0,
  rescaleBetasZeroSnr: false,
  setAlphaToOne: null,
  clipSample: null,
  clipSampleRange: 1,
  thresholding: false,
  dynamicThresholdingRatio: 0.995,
  sampleMaxValue: 1,
  skipPrkSteps: false,
  sigmaSchedule: null,
  finalSigmasType: 'zero',
  solverOrder: 2,
  lowerOrderFinal: true,
  eulerAtFinal: false,
  lambdaMinClipped: Number.NEGATIVE_INFINITY,
  predictX0: true,
  disableCorrector: [],
  originalInferenceSteps: 50,
  timestepScaling: 10,
  isFlow: false,
  shift: 1,
  useDynamicShifting: false,
  timeShiftType: 'exponential',
  baseShift: 0.5,
  maxShift: 1.15,
  baseImageSeqLen: 256,
  maxImageSeqLen: 4096,
  shiftTerminal: null,
};

describe('parseSchedulerConfig', () => {
  it('reads an infinity, as in DPM-Solver configs of diffusers', () => {
    const { config } = parseSchedulerConfig({ ...DPM, lambda_min_clipped: Number.NEGATIVE_INFINITY });
    expect(config.lambdaMinClipped).toBe(Number.NEGATIVE_INFINITY);
  });

  it('reads the embedded model', () => {
    const file = new URL('../../../../../models/emoji-sd/scheduler/scheduler_config.json', import.meta.url);
    expect(parseSchedulerConfig(JSON.parse(readFileSync(file, 'utf8')))).toMatchObject({
      defaultScheduler: 'dpmpp_2m',
      config: {
        ...absent,
        betaStart: 0.00085,
        betaEnd: 0.012,
        betaSchedule: 'scaled_linear',
        predictionType: 'v_prediction',
        timestepSpacing: 'trailing',
        stepsOffset: 1,
        setAlphaToOne: false,
        clipSample: false,
        skipPrkSteps: true,
      },
    });
  });

  it("reads absent fields and nulls as diffusers' defaults", () => {
    const nulls = { trained_betas: null, sigma_min: null, variance_type: null, use_karras_sigmas: null };
    expect(parseSchedulerConfig(DDIM).config).toMatchObject(absent);
    expect(parseSchedulerConfig({ ...DDIM, ...nulls }).config).toMatchObject(absent);
    expect(parseSchedulerConfig(FLOW).config).toMatchObject({
      ...absent,
      predictionType: 'flow_prediction',
      isFlow: true,
    });
  });

  it('reads the fields of solvers, thresholding and consistency models', () => {
    const fields = {
      _class_name: 'UniPCMultistepScheduler',
      solver_order: 3,
      solver_type: 'bh1',
      disable_corrector: [0, 1],
      use_exponential_sigmas: true,
      thresholding: true,
      dynamic_thresholding_ratio: 0.9,
      sample_max_value: 2,
      original_inference_steps: 40,
      timestep_scaling: 8,
    };
    expect(parseSchedulerConfig(fields).config).toMatchObject({
      ...absent,
      solverOrder: 3,
      solverType: 'bh1',
      disableCorrector: [0, 1],
      sigmaSchedule: 'exponential',
      thresholding: true,
      dynamicThresholdingRatio: 0.9,
      sampleMaxValue: 2,
      originalInferenceSteps: 40,
      timestepScaling: 8,
    });
  });

  it('reads the same shift under the names of two classes', () => {
    const unipc = { ...UNIPC_FLOW, flow_shift: 3, shift: 2 };
    expect(parseSchedulerConfig(unipc).config.shift).toBe(3);
    expect(parseSchedulerConfig({ ...FLOW, flow_shift: 3, shift: 2 }).config.shift).toBe(2);
  });

  it.each([
    [DDIM, 'ddim'],
    [{ ...PNDM, skip_prk_steps: true }, 'pndm'],
    [EULER, 'euler'],
    [{ ...EULER, use_karras_sigmas: true }, 'euler'],
    [{ _class_name: 'EulerAncestralDiscreteScheduler' }, 'euler_ancestral'],
    [DPM, 'dpmpp_2m'],
    [{ ...DPM, use_karras_sigmas: false }, 'dpmpp_2m'],
    [{ ...DPM, use_karras_sigmas: true }, 'dpmpp_2m_karras'],
    [{ ...DPM, use_beta_sigmas: true }, 'dpmpp_2m'],
    [{ ...DPM, algorithm_type: 'sde-dpmsolver++' }, 'dpmpp_2m_sde'],
    [{ ...DPM, algorithm_type: 'sde-dpmsolver++', use_karras_sigmas: true }, 'dpmpp_2m_sde_karras'],
    [UNIPC, 'unipc'],
    [UNIPC_FLOW, 'unipc'],
    [LCM, 'lcm'],
    [FLOW, 'flow_match_euler'],
  ])('selects for %o the scheduler %s', (json, name) => {
    expect(parseSchedulerConfig(json).defaultScheduler).toBe(name);
  });

  it.each(['LMSDiscreteScheduler', 'EDMEulerScheduler', 'toString', undefined])(
    'refuses the class %s and lists the supported ones',
    (className) => {
      expect(() => parseSchedulerConfig({ _class_name: className })).toThrow(
        `scheduler class ${className} is not supported; supported are DDIMScheduler, PNDMScheduler, ` +
          'EulerDiscreteScheduler, EulerAncestralDiscreteScheduler, DPMSolverMultistepScheduler, ' +
          'UniPCMultistepScheduler, LCMScheduler, FlowMatchEulerDiscreteScheduler',
      );
    },
  );

  it.each([
    [
      DPM,
      { algorithm_type: 'dpmsolver' },
      'algorithm_type "dpmsolver" is not supported; supported is dpmsolver++, sde',
    ],
    [DPM, { solver_type: 'heun' }, 'solver_type "heun" is not supported'],
    [DPM, { solver_order: 3 }, 'solver_order 3 is not supported by dpmpp_2m; supported is 2'],
    [DPM, { use_lu_lambdas: true }, 'use_lu_lambdas true is not supported; supported is false'],
    [DPM, { variance_type: 'learned_range' }, 'variance_type "learned_range" is not supported'],
    [DPM, { use_flow_sigmas: true }, 'dpmpp_2m cannot serve a flow model (use_flow_sigmas true)'],
    [PNDM, { thresholding: true }, 'thresholding true is not supported by pndm'],
    [PNDM, { prediction_type: 'sample' }, 'prediction_type "sample" is not supported by pndm'],
    [PNDM, { rescale_betas_zero_snr: true }, 'rescale_betas_zero_snr true is not supported by pndm'],
    [EULER, { thresholding: true }, 'thresholding true is not supported by euler'],
    [
      EULER,
      { interpolation_type: 'log_linear' },
      'interpolation_type "log_linear" is not supported; supported is linear',
    ],
    [EULER, { timestep_type: 'continuous' }, 'timestep_type "continuous" is not supported; supported is discrete'],
    [EULER, { sigma_max: 80 }, 'sigma_max 80 is not supported; it must be absent'],
    [EULER, { prediction_type: 'flow_prediction' }, 'prediction_type "flow_prediction" needs use_flow_sigmas true'],
    [EULER, { use_dynamic_shifting: true }, 'use_dynamic_shifting and shift_terminal need use_flow_sigmas true'],
    [UNIPC, { solver_order: 4 }, 'solver_order 4 is not supported by unipc; supported is 1, 2, 3'],
    [UNIPC, { solver_p: {} }, 'solver_p {} is not supported; it must be absent'],
    [UNIPC, { predict_x0: false }, 'predict_x0 false is not supported by unipc with final_sigmas_type "zero"'],
    [
      UNIPC,
      { lower_order_final: false },
      'lower_order_final false is not supported by unipc with final_sigmas_type "zero"',
    ],
    [
      UNIPC,
      { final_sigmas_type: 'sigma_min', use_karras_sigmas: true },
      'final_sigmas_type "sigma_min" is not supported by unipc with flow sigmas or a sigma schedule',
    ],
    [
      UNIPC,
      { final_sigmas_type: 'sigma_min', predict_x0: false, thresholding: true },
      'thresholding true is not supported by unipc with predict_x0 false',
    ],
    [UNIPC, { use_flow_sigmas: true }, 'prediction_type "epsilon" is not supported with flow sigmas'],
    [UNIPC_FLOW, { use_beta_sigmas: true }, 'use_beta_sigmas with flow sigmas is not supported by unipc'],
    [LCM, { original_inference_steps: 2000 }, 'original_inference_steps 2000 are more than num_train_timesteps'],
    [DDIM, { tensor_format: 'jax' }, 'tensor_format "jax" is not supported; supported is pt, np'],
    [FLOW, { invert_sigmas: true }, 'invert_sigmas true is not supported; supported is false'],
    [FLOW, { stochastic_sampling: true }, 'stochastic_sampling true is not supported; supported is false'],
    [FLOW, { prediction_type: 'epsilon' }, 'prediction_type "epsilon" is not supported with flow sigmas'],
    [FLOW, { thresholding: true }, 'thresholding true is not supported by flow_match_euler'],
    [
      DDIM,
      { use_karras_sigmas: true, use_beta_sigmas: true },
      'use_karras_sigmas and use_beta_sigmas exclude each other',
    ],
    [DDIM, { use_uniform_sigmas: true }, 'use_uniform_sigmas (true) is not a supported field'],
    [DDIM, { toString: null }, 'toString (null) is not a supported field'],
  ])('refuses for %o the option %o', (file, fields, message) => {
    expect(() => parseSchedulerConfig({ ...file, ...fields })).toThrow(`scheduler config: ${message}`);
  });

  it.each([
    [
      { prediction_type: 'velocity' },
      'prediction_type must be one of epsilon, v_prediction, sample, flow_prediction, not',
    ],
    [{ beta_schedule: 'sigmoid' }, 'beta_schedule must be one of linear, scaled_linear, squaredcos_cap_v2, not'],
    [{ beta_start: '0.1' }, 'beta_start must be a number, not "0.1"'],
    [{ num_train_timesteps: 0 }, 'num_train_timesteps must be an integer of at least 2, not 0'],
    [{ steps_offset: 0.5 }, 'steps_offset must be an integer of at least 0, not 0.5'],
    [{ clip_sample: 'no' }, 'clip_sample must be true or false, not "no"'],
    [{ trained_betas: [0.1, null] }, 'trained_betas must be an array of numbers or null, not [0.1,null]'],
    [{ time_shift_type: 'cosine', use_flow_sigmas: true }, 'time_shift_type must be one of exponential, linear, not'],
    [{ flow_shift: 0, use_flow_sigmas: true }, 'flow_shift must be a number above 0, not 0'],
  ])('refuses the value in %o', (fields, message) => {
    expect(() => parseSchedulerConfig({ ...DDIM, ...fields })).toThrow(`scheduler config: ${message}`);
  });

  it('refuses trained betas that do not match the training timesteps', () => {
    expect(() => parseSchedulerConfig({ ...DDIM, trained_betas: [0.1, 0.2] })).toThrow(
      'trained_betas has 2 values for 1000 train timesteps',
    );
  });

  it.each([null, 'DDIMScheduler', [], 3])('refuses %o', (json) => {
    expect(() => parseSchedulerConfig(json)).toThrow('a scheduler config must be a JSON object');
  });
});
