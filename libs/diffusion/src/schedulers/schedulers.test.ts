import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { createTorchGenerator, restoreTorchGenerator } from '../random/torch-generator.ts';
import { createScheduler } from './create-scheduler.ts';
import { parseSchedulerConfig } from './scheduler-config.ts';
import { schedulerNames } from './scheduler.ts';
import type { Scheduler, SchedulerName } from './scheduler.ts';

/** A run of diffusers: see tools/reference/record-schedulers.py. */
interface RecordedCase {
  config: Record<string, unknown>;
  steps: number;
  seed: number;
  length: number;
  timesteps: number[];
  initNoiseSigma: number;
  samples: number[][];
  predictedOriginals: number[][];
}

interface Recording {
  cases: RecordedCase[];
  /** Runs of which only the timesteps were recorded. */
  grids: Pick<RecordedCase, 'config' | 'steps' | 'timesteps'>[];
}

// diffusers computes coefficients and products in float32 (relative error 6e-8), here they are doubles; with the model's
// feedback that comes to at most 8e-7 in these runs.
const TOLERANCE = 2e-6;
// With zero terminal SNR the first sigma is 4096, and so are the latents: float32 is 2e-4 coarse there, and what is left
// of that when they come down to 1 … 50 shows in diffusers' numbers (at most 1.7e-5).
const ZERO_SNR_TOLERANCE = 4e-5;
// A fractional timestep is a float32 up to 1000 and comes from float32 logarithms (at most 4e-5); whole ones are equal.
const TIMESTEP_TOLERANCE = 1e-4;

function readRecording(name: SchedulerName): Recording {
  const file = new URL(`./__fixtures__/${name.replaceAll('_', '-')}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Recording;
}

/** The recorded case's own model: 0.3 x + 0.5 sin(i + t / 100). */
function fakeModel(scaled: Float32Array, timestep: number): Float32Array {
  return scaled.map((value, index) => 0.3 * value + 0.5 * Math.sin(index + timestep / 100));
}

function largest(values: ArrayLike<number>): number {
  return Array.from(values).reduce((most, value) => Math.max(most, Math.abs(value)), 0);
}

/** The largest difference, in units of the larger of 1 and the largest expected value. */
function relativeError(actual: Float32Array, expected: number[]): number {
  expect(actual).toHaveLength(expected.length);
  return largest(actual.map((value, index) => value - expected[index]!)) / Math.max(1, largest(expected));
}

/** Timesteps that are not the expected ones: not equal where whole, not near enough where fractional. */
function wrongTimesteps({ timesteps }: Scheduler, expected: number[]): number[] {
  expect(timesteps).toHaveLength(expected.length);
  return timesteps.filter((timestep, index) => {
    const allowed = Number.isInteger(expected[index]) ? 0 : TIMESTEP_TOLERANCE;
    return Math.abs(timestep - expected[index]!) > allowed;
  });
}

interface Row {
  scheduler: Scheduler;
  sample: Float32Array;
  predictedOriginal: Float32Array;
  fillNoise: (target: Float32Array) => void;
}

function start(name: SchedulerName, { config, steps, seed, length }: RecordedCase) {
  const generator = createTorchGenerator(seed);
  const scheduler = createScheduler(name, {
    config: parseSchedulerConfig(config).config,
    numInferenceSteps: steps,
  });
  const sample = new Float32Array(length);
  generator.fillNormal(sample);
  for (let index = 0; index < length; index++) sample[index]! *= scheduler.initNoiseSigma;
  const row: Row = {
    scheduler,
    sample,
    predictedOriginal: new Float32Array(length),
    fillNoise: (target) => generator.fillNormal(target),
  };
  return { row, generator };
}

function takeStep({ scheduler, sample, predictedOriginal, fillNoise }: Row): void {
  const scaled = new Float32Array(sample.length);
  scheduler.scaleModelInput(sample, scaled, 0);
  const modelOutput = fakeModel(scaled, scheduler.timesteps[scheduler.stepIndex]!);
  scheduler.step({ modelOutput, sample, predictedOriginal, fillNoise });
}

function describeCase({ config, steps }: RecordedCase): string {
  const shown = Object.entries(config).filter(([field]) => !/^_|^(num_train|trained|beta_start|beta_end)/.test(field));
  return `${steps} steps, ${JSON.stringify(Object.fromEntries(shown))}`;
}

describe.each(schedulerNames)('%s', (name) => {
  const { cases: recordedCases, grids } = readRecording(name);
  const cases = recordedCases.map((recorded) => ({ title: describeCase(recorded), recorded }));
  // The embedded model: the one recorded config that names its algorithm.
  const emoji = recordedCases.find(({ config }) => config['algorithm_type'] === 'dpmsolver++')!;

  it.each(cases)('agrees with diffusers: $title', ({ recorded }) => {
    const { row } = start(name, recorded);
    const { scheduler } = row;
    expect(scheduler.name).toBe(name);
    expect(wrongTimesteps(scheduler, recorded.timesteps)).toEqual([]);
    const tolerance = recorded.config['rescale_betas_zero_snr'] === true ? ZERO_SNR_TOLERANCE : TOLERANCE;
    expect(scheduler.initNoiseSigma / recorded.initNoiseSigma).toBeCloseTo(1, 6);
    for (const [index, samples] of recorded.samples.entries()) {
      expect(scheduler.stepIndex).toBe(index);
      takeStep(row);
      expect(relativeError(row.sample, samples)).toBeLessThan(tolerance);
      expect(relativeError(row.predictedOriginal, recorded.predictedOriginals[index]!)).toBeLessThan(tolerance);
    }
    expect(scheduler.stepIndex).toBe(scheduler.timesteps.length);
  });

  it.each(grids)('asks for the timesteps of diffusers: $steps steps, $config.timestep_spacing', (grid) => {
    const { config } = parseSchedulerConfig(grid.config);
    const scheduler = createScheduler(name, { config, numInferenceSteps: grid.steps });
    expect(wrongTimesteps(scheduler, grid.timesteps)).toEqual([]);
  });

  it('gives the same bytes when resumed after any step', () => {
    const whole = start(name, emoji).row;
    while (whole.scheduler.stepIndex < whole.scheduler.timesteps.length) takeStep(whole);
    for (let stop = 0; stop <= emoji.steps; stop++) {
      const { row: before, generator } = start(name, emoji);
      while (before.scheduler.stepIndex < stop) takeStep(before);
      const saved = structuredClone({ scheduler: before.scheduler.snapshot(), generator: generator.snapshot() });
      const sample = before.sample.slice();
      const predictedOriginal = before.predictedOriginal.slice();
      if (stop < emoji.steps) takeStep(before); // A snapshot must not move with the scheduler it was taken of.

      const { row: after } = start(name, emoji);
      const restored = restoreTorchGenerator(saved.generator);
      const resumed = {
        ...after,
        sample,
        predictedOriginal,
        fillNoise: (target: Float32Array) => restored.fillNormal(target),
      };
      resumed.scheduler.restore(saved.scheduler);
      expect(resumed.scheduler.stepIndex).toBe(stop);
      while (resumed.scheduler.stepIndex < emoji.steps) takeStep(resumed);
      expect(sample).toEqual(whole.sample);
      expect(predictedOriginal).toEqual(whole.predictedOriginal);
    }
  });

  it('can be rewound to an earlier snapshot of its own', () => {
    const { row, generator } = start(name, emoji);
    for (let step = 0; step < 3; step++) takeStep(row);
    const saved = { scheduler: row.scheduler.snapshot(), generator: generator.snapshot(), sample: row.sample.slice() };
    takeStep(row);
    takeStep(row);
    const expected = row.sample.slice();
    row.scheduler.restore(saved.scheduler);
    const restored = restoreTorchGenerator(saved.generator);
    const again = { ...row, sample: saved.sample, fillNoise: (target: Float32Array) => restored.fillNormal(target) };
    takeStep(again);
    takeStep(again);
    expect(again.sample).toEqual(expected);
  });

  it('writes the scaled latents at their place in the batch and nowhere else', () => {
    const { row } = start(name, emoji);
    const alone = new Float32Array(row.sample.length);
    row.scheduler.scaleModelInput(row.sample, alone, 0);
    const batch = new Float32Array(3 * row.sample.length).fill(9);
    row.scheduler.scaleModelInput(row.sample, batch, row.sample.length);
    const around = new Float32Array(row.sample.length).fill(9);
    expect(batch).toEqual(Float32Array.from([...around, ...alone, ...around]));
    expect(() => row.scheduler.scaleModelInput(row.sample, batch, batch.length - 1)).toThrow(RangeError);
  });

  it('finishes a run of one step on finite numbers', () => {
    const { row } = start(name, { ...emoji, steps: 1 });
    takeStep(row);
    expect(row.scheduler.timesteps).toHaveLength(1);
    expect(row.sample.every((value) => Number.isFinite(value))).toBe(true);
  });

  it.each([0, -1, 1.5, Number.NaN, 1001])('refuses %s steps', (steps) => {
    expect(() => start(name, { ...emoji, steps })).toThrow(
      `numInferenceSteps must be an integer in 1 … 1000 (the model was trained on 1000 timesteps), not ${steps}`,
    );
  });

  it('refuses a step after the last', () => {
    const { row } = start(name, { ...emoji, steps: 1 });
    takeStep(row);
    expect(() => takeStep(row)).toThrow('all 1 steps of this row are done');
    const { sample, predictedOriginal, fillNoise } = row;
    expect(() => row.scheduler.step({ modelOutput: sample.slice(), sample, predictedOriginal, fillNoise })).toThrow(
      'all 1 steps of this row are done',
    );
  });

  it('refuses arrays of different lengths without taking the step', () => {
    const { row } = start(name, emoji);
    const { sample, predictedOriginal, fillNoise } = row;
    const modelOutput = new Float32Array(3);
    expect(() => row.scheduler.step({ modelOutput, sample, predictedOriginal, fillNoise })).toThrow(RangeError);
    expect(row.scheduler.stepIndex).toBe(0);
  });

  it('refuses snapshots that are not its own', () => {
    const { scheduler } = start(name, emoji).row;
    expect(() => scheduler.restore({ stepIndex: 11, history: [] })).toThrow(/stepIndex must be an integer in 0 … 10/);
    const history = [new Float32Array(8), new Float32Array(8)];
    expect(() => scheduler.restore({ stepIndex: 2, history })).toThrow(/must have a history of . arrays, not 2/);
  });
});
