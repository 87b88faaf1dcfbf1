import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { parseSchedulerConfig } from './scheduler-config.ts';

const DDIM = { _class_name: 'DDIMScheduler' };

describe('parseSchedulerConfig', () => {
  it('reads the embedded model', () => {
    const file = new URL('../../../../models/emoji-sd/scheduler/scheduler_config.json', import.meta.url);
    expect(parseSchedulerConfig(JSON.parse(readFileSync(file, 'utf8')))).toEqual({
      className: 'DPMSolverMultistepScheduler',
      defaultScheduler: 'dpmpp_2m',
      config: {
        numTrainTimesteps: 1000,
        betaStart: 0.00085,
        betaEnd: 0.012,
        betaSchedule: 'scaled_linear',
        trainedBetas: null,
        predictionType: 'v_prediction',
        timestepSpacing: 'trailing',
        stepsOffset: 1,
        rescaleBetasZeroSnr: false,
        setAlphaToOne: false,
        clipSample: false,
        clipSampleRange: 1,
        useKarrasSigmas: false,
        finalSigmasType: 'zero',
        lowerOrderFinal: true,
        eulerAtFinal: false,
        lambdaMinClipped: Number.NEGATIVE_INFINITY,
      },
    });
  });

  it("takes absent fields and nulls as diffusers' defaults", () => {
    const expected = {
      numTrainTimesteps: 1000,
      betaStart: 0.0001,
      betaEnd: 0.02,
      betaSchedule: 'linear',
      trainedBetas: null,
      predictionType: 'epsilon',
      timestepSpacing: null,
      stepsOffset: 0,
      rescaleBetasZeroSnr: false,
      setAlphaToOne: true,
      clipSample: true,
      clipSampleRange: 1,
      useKarrasSigmas: false,
      finalSigmasType: 'zero',
      lowerOrderFinal: true,
      eulerAtFinal: false,
      lambdaMinClipped: Number.NEGATIVE_INFINITY,
    };
    const nulls = { trained_betas: null, sigma_min: null, variance_type: null, use_karras_sigmas: null };
    expect(parseSchedulerConfig(DDIM).config).toEqual(expected);
    expect(parseSchedulerConfig({ ...DDIM, ...nulls }).config).toEqual(expected);
  });

  it.each([
    [{ _class_name: 'DDIMScheduler' }, 'ddim'],
    [{ _class_name: 'PNDMScheduler', skip_prk_steps: true }, 'ddim'],
    [{ _class_name: 'EulerDiscreteScheduler' }, 'euler'],
    [{ _class_name: 'EulerDiscreteScheduler', use_karras_sigmas: true }, 'euler'],
    [{ _class_name: 'EulerAncestralDiscreteScheduler' }, 'euler_ancestral'],
    [{ _class_name: 'DPMSolverMultistepScheduler' }, 'dpmpp_2m'],
    [{ _class_name: 'DPMSolverMultistepScheduler', use_karras_sigmas: false }, 'dpmpp_2m'],
    [{ _class_name: 'DPMSolverMultistepScheduler', use_karras_sigmas: true }, 'dpmpp_2m_karras'],
  ])('serves %o with %s', (json, name) => {
    expect(parseSchedulerConfig(json).defaultScheduler).toBe(name);
    expect(parseSchedulerConfig(json).className).toBe(Object.values(json)[0]);
  });

  it.each(['LMSDiscreteScheduler', 'FlowMatchEulerDiscreteScheduler', 'toString', undefined])(
    'refuses the class %s and says which there are',
    (className) => {
      expect(() => parseSchedulerConfig({ _class_name: className })).toThrow(
        `scheduler class ${className} is not supported; supported are DDIMScheduler, EulerDiscreteScheduler, ` +
          'EulerAncestralDiscreteScheduler, DPMSolverMultistepScheduler, PNDMScheduler',
      );
    },
  );

  it.each([
    [{ thresholding: true }, 'thresholding true is not supported; supported is false'],
    [{ algorithm_type: 'sde-dpmsolver++' }, 'algorithm_type "sde-dpmsolver++" is not supported'],
    [{ solver_order: 3 }, 'solver_order 3 is not supported; supported is 2'],
    [{ solver_type: 'heun' }, 'solver_type "heun" is not supported'],
    [{ use_beta_sigmas: true }, 'use_beta_sigmas true is not supported'],
    [{ use_flow_sigmas: true }, 'use_flow_sigmas true is not supported'],
    [{ variance_type: 'learned_range' }, 'variance_type "learned_range" is not supported'],
    [{ timestep_type: 'continuous' }, 'timestep_type "continuous" is not supported; supported is discrete'],
    [{ sigma_max: 80 }, 'sigma_max 80 is not supported; it must be absent'],
  ])('refuses the arithmetic of %o', (fields, message) => {
    expect(() => parseSchedulerConfig({ ...DDIM, ...fields })).toThrow(`scheduler config: ${message}`);
  });

  it.each([
    [{ prediction_type: 'flow_prediction' }, 'prediction_type must be one of epsilon, v_prediction, sample, not'],
    [{ beta_schedule: 'sigmoid' }, 'beta_schedule must be one of linear, scaled_linear, squaredcos_cap_v2, not'],
    [{ beta_start: '0.1' }, 'beta_start must be a number, not "0.1"'],
    [{ num_train_timesteps: 0 }, 'num_train_timesteps must be an integer of at least 2, not 0'],
    [{ steps_offset: 0.5 }, 'steps_offset must be an integer of at least 0, not 0.5'],
    [{ clip_sample: 'no' }, 'clip_sample must be true or false, not "no"'],
    [{ trained_betas: [0.1, null] }, 'trained_betas must be an array of numbers or null, not [0.1,null]'],
  ])('refuses the value in %o', (fields, message) => {
    expect(() => parseSchedulerConfig({ ...DDIM, ...fields })).toThrow(`scheduler config: ${message}`);
  });

  it('refuses trained betas that do not cover the training', () => {
    expect(() => parseSchedulerConfig({ ...DDIM, trained_betas: [0.1, 0.2] })).toThrow(
      'trained_betas has 2 values for 1000 train timesteps',
    );
  });

  it.each([null, 'DDIMScheduler', [], 3])('refuses %o', (json) => {
    expect(() => parseSchedulerConfig(json)).toThrow('a scheduler config must be a JSON object');
  });
});
