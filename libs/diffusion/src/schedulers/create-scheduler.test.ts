import { describe, expect, it } from 'vitest';

import { TorchGenerator } from '../random/torch-generator.ts';
import { createScheduler } from './create-scheduler.ts';
import { parseSchedulerConfig } from './config/parse-scheduler-config.ts';
import { fittingSchedulers } from './config/scheduler-misfit.ts';
import type { Scheduler } from './scheduler.ts';
import { type SchedulerName, schedulerNames } from './config/scheduler-config.ts';

function create(name: SchedulerName, numInferenceSteps: number, fields: Record<string, unknown>): Scheduler {
  const file = { _class_name: 'DDIMScheduler', clip_sample: false, skip_prk_steps: true, ...fields };
  return createScheduler(name, { config: parseSchedulerConfig(file).config, numInferenceSteps });
}

const flowFile = { _class_name: 'FlowMatchEulerDiscreteScheduler' };
const flowNames: readonly SchedulerName[] = ['unipc', 'flow_match_euler'];
const noiseNames: readonly SchedulerName[] = schedulerNames.filter((name) => name !== 'flow_match_euler');

/** Runs all steps. `modelOutput` replaces the model: it gets the latents, and the latents scaled for the model. */
function run(scheduler: Scheduler, modelOutput: (sample: Float32Array, scaled: Float32Array) => Float32Array) {
  const generator = new TorchGenerator({ seed: 5 });
  const sample = new Float32Array(16);
  generator.fillNormal(sample);
  for (let index = 0; index < sample.length; index++) sample[index]! *= scheduler.initNoiseSigma;
  const predictedOriginal = new Float32Array(16);
  const scaled = new Float32Array(16);
  while (scheduler.stepIndex < scheduler.timesteps.length) {
    scheduler.scaleModelInput(sample, scaled, 0);
    const output = modelOutput(sample, scaled);
    scheduler.step({ modelOutput: output, sample, predictedOriginal, fillNoise: (into) => generator.fillNormal(into) });
  }
  return { sample, predictedOriginal };
}

describe('createScheduler', () => {
  const original = Float32Array.from({ length: 16 }, (_, index) => Math.sin(index));
  const latentDiffusion = { beta_start: 0.00085, beta_end: 0.012, beta_schedule: 'scaled_linear' };

  it.each(noiseNames.filter((name) => name !== 'pndm' && name !== 'lcm'))(
    '%s ends at x0 if the model predicts the same x0 at every step',
    (name) => {
      const scheduler = create(name, 12, { ...latentDiffusion, prediction_type: 'sample' });
      const { sample, predictedOriginal } = run(scheduler, () => original);
      expect(predictedOriginal).toEqual(original);
      for (const [index, value] of sample.entries()) expect(value).toBeCloseTo(original[index]!, 5);
    },
  );

  it.each(flowNames)('%s ends at x0 if the model predicts the flow noise − x0 at every step', (name) => {
    const scheduler = create(name, 12, { ...flowFile, shift: 3 });
    let sigma = 1;
    const { sample } = run(scheduler, (latents) => {
      // (latents − x0) / sigma is noise − x0, because latents = (1 − sigma) · x0 + sigma · noise.
      sigma = Math.max(scheduler.timesteps[scheduler.stepIndex]! / 1000, 1e-3);
      return latents.map((value, index) => (value - original[index]!) / sigma);
    });
    for (const [index, value] of sample.entries()) expect(value).toBeCloseTo(original[index]!, 2);
  });

  it.each<[string, Record<string, unknown>, readonly SchedulerName[]]>([
    ['a noise-predicting model', {}, noiseNames],
    [
      'a model with zero terminal SNR',
      { rescale_betas_zero_snr: true, prediction_type: 'v_prediction' },
      noiseNames.filter((name) => name !== 'pndm'),
    ],
    ['an x0-predicting model', { prediction_type: 'sample' }, noiseNames.filter((name) => name !== 'pndm')],
    [
      'a model with thresholding',
      { thresholding: true },
      noiseNames.filter((name) => !['pndm', 'euler', 'euler_ancestral'].includes(name)),
    ],
    ['a third-order solver', { solver_order: 3 }, noiseNames.filter((name) => !name.startsWith('dpmpp'))],
    ['a flow model', flowFile, flowNames],
    ['a flow model with a sigma schedule', { ...flowFile, use_beta_sigmas: true }, ['flow_match_euler']],
  ])('lists the schedulers that fit %s, and refuses the others', (_, fields, names) => {
    const { config } = parseSchedulerConfig({ _class_name: 'DDIMScheduler', skip_prk_steps: true, ...fields });
    expect(fittingSchedulers(config)).toEqual(names);
    for (const name of names) {
      expect(createScheduler(name, { config, numInferenceSteps: 5 }).timesteps.length).toBeGreaterThanOrEqual(5);
    }
    for (const name of schedulerNames.filter((candidate) => !names.includes(candidate))) {
      expect(() => createScheduler(name, { config, numInferenceSteps: 5 })).toThrow(RangeError);
    }
  });

  it('refuses flow models with a dynamic shift if no shift is given', () => {
    for (const name of flowNames) {
      expect(() => create(name, 4, { ...flowFile, use_dynamic_shifting: true })).toThrow('dynamicShift must be given');
    }
  });

  it('refuses a flow grid whose length is not the number of steps, and schedulers that take no flow grid', () => {
    const { config } = parseSchedulerConfig(flowFile);
    const options = { config, numInferenceSteps: 3, flowGrid: { sigmas: [1, 0.5] } };
    expect(() => createScheduler('flow_match_euler', options)).toThrow('flowGrid must have 3 sigmas and timesteps');
    expect(() => createScheduler('unipc', options)).toThrow('unipc cannot take sigmas or timesteps of the pipeline');
  });

  it('refuses more steps than a consistency model was distilled from', () => {
    const few = { original_inference_steps: 8 };
    expect(() => create('lcm', 9, few)).toThrow('9 steps are more than the 8 that the model was distilled from');
    expect(create('lcm', 8, few).timesteps).toEqual([999, 874, 749, 624, 499, 374, 249, 124]);
  });

  it('refuses pndm with fewer steps than its Runge-Kutta start needs', () => {
    const file = { skip_prk_steps: false };
    expect(() => create('pndm', 3, file)).toThrow('pndm with skip_prk_steps false needs at least 4 steps');
    expect(create('pndm', 4, file).timesteps).toHaveLength(13);
    expect(create('pndm', 3, {}).timesteps).toHaveLength(4);
  });

  it('euler_ancestral ends at the same latents whether the model predicts x0 or the equivalent noise', () => {
    const fields = { ...latentDiffusion, timestep_spacing: 'trailing' };
    const fromOriginal = run(create('euler_ancestral', 6, { ...fields, prediction_type: 'sample' }), () => original);
    const fromNoise = run(create('euler_ancestral', 6, fields), (sample, scaled) => {
      // scaled = sample / √(sigma² + 1), solved for sigma.
      const sigma = Math.sqrt((sample[0]! / scaled[0]!) ** 2 - 1);
      return sample.map((value, index) => (value - original[index]!) / sigma);
    });
    for (const [index, value] of fromNoise.sample.entries()) {
      expect(value).toBeCloseTo(fromOriginal.sample[index]!, 4);
    }
  });

  it.each([
    ['dpmpp_2m', 'linspace', 1000],
    ['dpmpp_2m', 'leading', 1000],
    ['unipc', 'leading', 1000],
  ] as const)('refuses %s with %s spacing and %s steps, two of which share a timestep', (name, spacing, steps) => {
    expect(() => create(name, steps, { timestep_spacing: spacing })).toThrow(
      `${steps} steps put two on one timestep of this model; use fewer steps`,
    );
  });

  it("refuses ddim if its first timestep is beyond the model's last", () => {
    expect(() => create('ddim', 1000, { steps_offset: 1 })).toThrow(
      '1000 steps of leading spacing with offset 1 start at timestep 1000, beyond the last of the model, 999',
    );
  });

  it("refuses pndm if a step would start beyond the model's last timestep", () => {
    expect(() => create('pndm', 1000, { steps_offset: 1 })).toThrow(
      'reach timestep 1000, beyond the last of the model',
    );
  });

  it('refuses lcm on a noise-predicting model with zero terminal SNR', () => {
    const zeroSnr = { rescale_betas_zero_snr: true };
    expect(() => create('lcm', 4, zeroSnr)).toThrow('lcm cannot start from zero terminal SNR');
    expect(create('lcm', 4, { ...zeroSnr, prediction_type: 'v_prediction' }).timesteps[0]).toBe(999);
  });

  it('refuses ddim on a noise-predicting model with zero terminal SNR', () => {
    const zeroSnr = { rescale_betas_zero_snr: true, timestep_spacing: 'trailing' };
    expect(() => create('ddim', 10, zeroSnr)).toThrow('ddim cannot start from zero terminal SNR');
    expect(create('ddim', 10, { ...zeroSnr, prediction_type: 'v_prediction' }).timesteps[0]).toBe(999);
  });

  it('draws noise once per step in stochastic schedulers (lcm: not at the last step), and never in others', () => {
    const drawCounts = { euler_ancestral: 4, dpmpp_2m_sde: 4, dpmpp_2m_sde_karras: 4, lcm: 3 };
    for (const name of schedulerNames) {
      const draws = drawCounts[name as keyof typeof drawCounts] ?? 0;
      const scheduler = create(name, 4, name === 'flow_match_euler' ? flowFile : latentDiffusion);
      let calls = 0;
      for (let step = 0; step < 4; step++) {
        scheduler.step({
          modelOutput: new Float32Array(4).fill(0.1),
          sample: new Float32Array(4).fill(1),
          predictedOriginal: new Float32Array(4),
          fillNoise: () => (calls += 1),
        });
      }
      expect([name, calls]).toEqual([name, draws]);
    }
  });
});
