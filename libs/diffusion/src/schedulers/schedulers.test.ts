import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { createScheduler } from './create-scheduler.ts';
import { parseSchedulerConfig } from './config/parse-scheduler-config.ts';
import type { Scheduler } from './scheduler.ts';
import { type SchedulerName, schedulerNames } from './config/scheduler-config.ts';

/** A run of diffusers: see tools/golden/record-schedulers.py. */
interface RecordedCase {
  config: Record<string, unknown>;
  steps: number;
  /** Additional options from the pipeline. */
  given?: { mu?: number; sigmas?: number[]; timesteps?: number[] };
  timesteps: number[];
  initNoiseSigma: number;
  /** Per step, in base64. */
  samples: string;
  predictedOriginals: string;
}

interface Recording {
  /** The first latents and the noise of the steps, in base64. */
  noise: string;
  cases: RecordedCase[];
  /** Runs with recorded timesteps only. */
  grids: Pick<RecordedCase, 'config' | 'steps' | 'timesteps'>[];
}

const LENGTH = 16;
// diffusers computes coefficients and products in float32 (relative error 6e-8), here they are doubles; with the
// model's feedback the difference is at most 3.3e-6 in these runs, in most of them 1e-6.
const TOLERANCE = 5e-6;
// With zero terminal SNR the first sigma, and thus the latents, are 4096, where float32 has a resolution of 2e-4. A
// part of that error remains in diffusers' values when they come down to 1 … 50 (at most 4.3e-5).
const ZERO_SNR_TOLERANCE = 1e-4;
// If euler's timesteps follow from a sigma schedule, they come from float32 logarithms, which numpy may compute one
// unit in the last place off. This is one such unit for timesteps up to 1000; all other timesteps are equal.
const TIMESTEP_TOLERANCE = 2 ** -14;

function readRecording(name: SchedulerName): Recording {
  const file = new URL(`../../../../tools/golden/vectors/schedulers/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(file, 'utf8')) as Recording;
}

/** Decodes blocks of 16 float32 values. */
function unpack(base64: string): Float32Array[] {
  const { buffer } = Uint8Array.from(Buffer.from(base64, 'base64'));
  const values = new Float32Array(buffer);
  return Array.from({ length: values.length / LENGTH }, (_, at) => values.slice(at * LENGTH, (at + 1) * LENGTH));
}

/** The model of the recorded cases: 0.3 x + 0.5 sin(i + t / 100). */
function fakeModel(scaled: Float32Array, timestep: number): Float32Array {
  return scaled.map((value, index) => 0.3 * value + 0.5 * Math.sin(index + timestep / 100));
}

/** Computes ‖actual − expected‖ / ‖expected‖. */
function relativeError(actual: Float32Array, expected: Float32Array): number {
  expect(actual).toHaveLength(expected.length);
  return Math.hypot(...actual.map((value, index) => value - expected[index]!)) / Math.hypot(...expected);
}

/** Returns the timesteps that differ from the expected ones. */
function wrongTimesteps(
  { name, timesteps }: Pick<Scheduler, 'timesteps'> & { name: string },
  expected: number[],
  config: Record<string, unknown>,
): number[] {
  expect(timesteps).toHaveLength(expected.length);
  const hasOwnSigmas = Object.keys(config).some((field) => /^use_.*_sigmas$/.test(field) && config[field] === true);
  const allowed = name === 'euler' && hasOwnSigmas ? TIMESTEP_TOLERANCE : 0;
  return timesteps.filter((timestep, index) => Math.abs(timestep - Math.fround(expected[index]!)) > allowed);
}

interface Row {
  scheduler: Scheduler;
  sample: Float32Array;
  predictedOriginal: Float32Array;
  /** Noise that has not been drawn yet. */
  noise: Float32Array[];
}

function create(name: SchedulerName, { config, steps, given }: Pick<RecordedCase, 'config' | 'steps' | 'given'>) {
  return createScheduler(name, {
    config: parseSchedulerConfig(config).config,
    numInferenceSteps: steps,
    ...(given?.mu !== undefined && { dynamicShift: given.mu }),
    ...(given?.sigmas && {
      flowGrid: { sigmas: given.sigmas, ...(given.timesteps && { timesteps: given.timesteps }) },
    }),
  });
}

function start(name: SchedulerName, noise: Float32Array[], recorded: RecordedCase): Row {
  const scheduler = create(name, recorded);
  const [first, ...rest] = noise;
  const sample = first!.map((value) => value * scheduler.initNoiseSigma);
  return { scheduler, sample, predictedOriginal: new Float32Array(LENGTH), noise: rest };
}

function takeStep({ scheduler, sample, predictedOriginal, noise }: Row): void {
  const scaled = new Float32Array(sample.length);
  scheduler.scaleModelInput(sample, scaled, 0);
  const modelOutput = fakeModel(scaled, scheduler.timesteps[scheduler.stepIndex]!);
  scheduler.step({ modelOutput, sample, predictedOriginal, fillNoise: (target) => target.set(noise.shift()!) });
}

function describeCase({ config, steps, given }: RecordedCase): string {
  const shown = Object.entries(config).filter(
    ([field, value]) => value !== null && !/^_|^(num_train|trained|beta_start|beta_end)/.test(field),
  );
  return `${steps} steps, ${JSON.stringify(Object.fromEntries(shown))}, ${JSON.stringify(given?.mu)}`;
}

describe.each(schedulerNames)('%s', (name) => {
  const recording = readRecording(name);
  const noise = unpack(recording.noise);
  const cases = recording.cases.map((recorded) => ({ title: describeCase(recorded), recorded }));
  const short = cases.filter(({ recorded }) => recorded.timesteps.length <= 17);
  // The embedded model's case, or the first with about ten steps.
  const usual =
    recording.cases.find(({ config }) => config['algorithm_type'] === 'dpmsolver++') ??
    recording.cases.find(({ steps }) => steps >= 4 && steps <= 10)!;

  it.each(cases)('agrees with diffusers: $title', ({ recorded }) => {
    const row = start(name, noise, recorded);
    const { scheduler } = row;
    expect(wrongTimesteps({ name, timesteps: scheduler.timesteps }, recorded.timesteps, recorded.config)).toEqual([]);
    const tolerance = recorded.config['rescale_betas_zero_snr'] === true ? ZERO_SNR_TOLERANCE : TOLERANCE;
    expect(scheduler.initNoiseSigma / recorded.initNoiseSigma).toBeCloseTo(1, 6);
    const predictedOriginals = unpack(recorded.predictedOriginals);
    for (const [index, sample] of unpack(recorded.samples).entries()) {
      expect(scheduler.stepIndex).toBe(index);
      takeStep(row);
      expect(relativeError(row.sample, sample)).toBeLessThan(tolerance);
      expect(relativeError(row.predictedOriginal, predictedOriginals[index]!)).toBeLessThan(tolerance);
    }
    expect(scheduler.stepIndex).toBe(scheduler.timesteps.length);
  });

  it('has the timesteps of diffusers with other numbers of steps', () => {
    const wrong = recording.grids.filter(
      (grid) =>
        wrongTimesteps({ name, timesteps: create(name, grid).timesteps }, grid.timesteps, grid.config).length > 0,
    );
    expect(wrong).toEqual([]);
  });

  it.each(short)('makes the same bytes when resumed after any step: $title', ({ recorded }) => {
    const whole = start(name, noise, recorded);
    const total = whole.scheduler.timesteps.length;
    while (whole.scheduler.stepIndex < total) takeStep(whole);
    const before = start(name, noise, recorded);
    for (let stop = 0; stop <= total; stop++) {
      const snapshot = structuredClone(before.scheduler.snapshot());
      const { sample, predictedOriginal } = before;
      const after = {
        scheduler: create(name, recorded),
        sample: sample.slice(),
        predictedOriginal: predictedOriginal.slice(),
        noise: [...before.noise],
      };
      if (stop < total) takeStep(before); // A snapshot must not change with its scheduler.
      after.scheduler.restore(snapshot);
      expect(after.scheduler.stepIndex).toBe(stop);
      while (after.scheduler.stepIndex < total) takeStep(after);
      expect(after.sample).toEqual(whole.sample);
      expect(after.predictedOriginal).toEqual(whole.predictedOriginal);
    }
  });

  it('can be rewound to an earlier snapshot', () => {
    const row = start(name, noise, usual);
    for (let step = 0; step < 2; step++) takeStep(row);
    const saved = { ...row, sample: row.sample.slice(), noise: [...row.noise] };
    const snapshot = row.scheduler.snapshot();
    takeStep(row);
    takeStep(row);
    saved.scheduler.restore(snapshot);
    takeStep(saved);
    takeStep(saved);
    expect(saved.sample).toEqual(row.sample);
  });

  it('writes the scaled latents at their offset in the batch and nowhere else', () => {
    const row = start(name, noise, usual);
    const alone = new Float32Array(row.sample.length);
    row.scheduler.scaleModelInput(row.sample, alone, 0);
    const batch = new Float32Array(3 * row.sample.length).fill(9);
    row.scheduler.scaleModelInput(row.sample, batch, row.sample.length);
    const around = new Float32Array(row.sample.length).fill(9);
    expect(batch).toEqual(Float32Array.from([...around, ...alone, ...around]));
    expect(() => row.scheduler.scaleModelInput(row.sample, batch, batch.length - 1)).toThrow(RangeError);
  });

  it.each([0, -1, 1.5, Number.NaN, 1001])('refuses %s steps', (steps) => {
    const { config } = usual;
    expect(() => create(name, { config, steps })).toThrow(
      `numInferenceSteps must be an integer in 1 … 1000 (the model was trained on 1000 timesteps), not ${steps}`,
    );
  });

  it('refuses a step after the last', () => {
    const row = start(name, noise, usual);
    const total = row.scheduler.timesteps.length;
    while (row.scheduler.stepIndex < total) takeStep(row);
    expect(() => takeStep(row)).toThrow(`all ${total} steps of this row are done`);
    const { sample, predictedOriginal } = row;
    const stepArguments = { modelOutput: sample.slice(), sample, predictedOriginal, fillNoise: () => {} };
    expect(() => row.scheduler.step(stepArguments)).toThrow(`all ${total} steps of this row are done`);
  });

  it('refuses arrays of different lengths without taking the step', () => {
    const { scheduler, sample, predictedOriginal } = start(name, noise, usual);
    const stepArguments = { modelOutput: new Float32Array(3), sample, predictedOriginal, fillNoise: () => {} };
    expect(() => scheduler.step(stepArguments)).toThrow(RangeError);
    expect(scheduler.stepIndex).toBe(0);
  });

  it('refuses snapshots of other schedulers', () => {
    const { scheduler } = start(name, noise, usual);
    const total = scheduler.timesteps.length;
    expect(() => scheduler.restore({ stepIndex: total + 1, history: [] })).toThrow(
      `stepIndex must be an integer in 0 … ${total}`,
    );
    const history = Array.from({ length: 9 }, () => new Float32Array(8));
    expect(() => scheduler.restore({ stepIndex: 2, history })).toThrow(/must have a history of . arrays, not 9/);
  });
});
