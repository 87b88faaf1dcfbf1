import { describe, expect, it } from 'vitest';

import { createTorchGenerator } from '../random/torch-generator.ts';
import { createScheduler } from './create-scheduler.ts';
import { parseSchedulerConfig } from './scheduler-config.ts';
import type { Scheduler, SchedulerName } from './scheduler.ts';

function create(name: SchedulerName, numInferenceSteps: number, fields: Record<string, unknown>): Scheduler {
  const { config } = parseSchedulerConfig({ _class_name: 'DDIMScheduler', clip_sample: false, ...fields });
  return createScheduler(name, { config, numInferenceSteps });
}

/** Runs a scheduler whose model says nothing but `output`, given the sample at the scheduler's scale and its sigma. */
function run(scheduler: Scheduler, modelOutput: (sample: Float32Array, scaled: Float32Array) => Float32Array) {
  const generator = createTorchGenerator(5);
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

  it.each(['ddim', 'euler', 'euler_ancestral', 'dpmpp_2m', 'dpmpp_2m_karras'] as const)(
    '%s ends at the picture that a model of prediction type sample insists on',
    (name) => {
      const scheduler = create(name, 12, { ...latentDiffusion, prediction_type: 'sample' });
      const { sample, predictedOriginal } = run(scheduler, () => original);
      expect(predictedOriginal).toEqual(original);
      for (const [index, value] of sample.entries()) expect(value).toBeCloseTo(original[index]!, 5);
    },
  );

  it('gives euler_ancestral the same picture from x0 as from the noise that this x0 means', () => {
    const fields = { ...latentDiffusion, timestep_spacing: 'trailing' };
    const fromOriginal = run(create('euler_ancestral', 6, { ...fields, prediction_type: 'sample' }), () => original);
    const fromNoise = run(create('euler_ancestral', 6, fields), (sample, scaled) => {
      // scaled = sample / √(sigma² + 1), which gives sigma back.
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
  ] as const)('refuses %s with %s spacing and %s steps, two of which share a timestep', (name, spacing, steps) => {
    expect(() => create(name, steps, { timestep_spacing: spacing })).toThrow(
      `${steps} steps put two on one timestep of this model; use fewer steps`,
    );
  });

  it('refuses ddim with a first timestep beyond the last of the model', () => {
    expect(() => create('ddim', 1000, { steps_offset: 1 })).toThrow(
      '1000 steps of leading spacing with offset 1 start at timestep 1000, beyond the last of the model, 999',
    );
  });

  it('refuses ddim on a noise-predicting model where nothing is left of the picture', () => {
    const zeroSnr = { rescale_betas_zero_snr: true, timestep_spacing: 'trailing' };
    expect(() => create('ddim', 10, zeroSnr)).toThrow('ddim cannot start from zero terminal SNR');
    expect(create('ddim', 10, { ...zeroSnr, prediction_type: 'v_prediction' }).timesteps[0]).toBe(999);
  });

  it('never draws noise for the deterministic schedulers and once a step for the ancestral one', () => {
    for (const [name, draws] of [
      ['ddim', 0],
      ['euler', 0],
      ['euler_ancestral', 4],
      ['dpmpp_2m', 0],
      ['dpmpp_2m_karras', 0],
    ] as const) {
      const scheduler = create(name, 4, latentDiffusion);
      let calls = 0;
      for (let step = 0; step < 4; step++) {
        scheduler.step({
          modelOutput: new Float32Array(4).fill(0.1),
          sample: new Float32Array(4).fill(1),
          predictedOriginal: new Float32Array(4),
          fillNoise: () => (calls += 1),
        });
      }
      expect(calls).toBe(draws);
    }
  });
});
