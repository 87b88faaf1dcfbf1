import { numberAt } from '@darkroom/core';
import type { SchedulerConfig } from './config/scheduler-config.ts';

/** A row's position in its schedule: plain data, safe for structured clone. */
export interface SchedulerSnapshot {
  /** Steps already taken, 0 … timesteps.length. */
  readonly stepIndex: number;
  /**
   * Copies of the arrays of earlier steps that a multistep solver still needs, each as long as the latents; empty for
   * one-step solvers. Their meaning depends on the scheduler.
   */
  readonly history: Float32Array[];
}

/** The inputs and outputs of one step. All arrays have the length of the latents and share no memory. */
export interface SchedulerStepArguments {
  /** The model's output for this step, after guidance. Read only. */
  readonly modelOutput: Float32Array;
  /** The latents, at the scheduler's scale. Replaced by those of the next step. */
  readonly sample: Float32Array;
  /** Receives this step's estimate of the finished latents (x0). */
  readonly predictedOriginal: Float32Array;
  /** Fills an array with the row's next standard normal values. Called at most once per step, and by few schedulers. */
  readonly fillNoise: (target: Float32Array) => void;
}

export interface CreateSchedulerOptions {
  /** The model's config; shared by all its rows and all schedulers. */
  readonly config: SchedulerConfig;
  /** Steps to take, 1 … config.numTrainTimesteps. */
  readonly numInferenceSteps: number;
  /**
   * Flow models with `useDynamicShifting`: the shift for the image's size (diffusers: `mu`). Families compute it
   * differently, see `interpolatedShift` and `squareRootShift`.
   */
  readonly dynamicShift?: number;
  /** `flow_match_euler`: steps prescribed by the pipeline instead of the scheduler's, as for CogView4. */
  readonly flowGrid?: FlowGrid;
  /**
   * Number of skipped steps at the noisy end, 0 … numInferenceSteps − 1; 0 if absent. Runs with an input image start
   * after these steps, from the image with noise (`addNoise`).
   */
  readonly skippedSteps?: number;
  /**
   * `lcm`: the share of the distilled timesteps, from the least noisy one, that steps are selected from; 1 if absent.
   * Consistency models use this for input images instead of skipped steps (diffusers: `strength` of `set_timesteps`).
   */
  readonly distilledShare?: number;
}

/** The shares of x0 and noise in latents. */
export interface NoiseLevels {
  readonly signal: number;
  readonly noise: number;
}

/** Steps prescribed by a pipeline; both arrays have `numInferenceSteps` values. */
export interface FlowGrid {
  /** Falling, at most 1, before any shift. Without the final 0. */
  readonly sigmas: readonly number[];
  /** The model's timestep input at each step, instead of the shifted sigma × numTrainTimesteps. */
  readonly timesteps?: readonly number[];
}

/** The arrays that a scheduler retains from step to step. */
export interface SchedulerHistory {
  /** Returns the number of arrays needed after so many steps. */
  lengthAt(steps: number): number;
  /** Returns the arrays, in an order defined by the scheduler; only the first `lengthAt` are needed. */
  arrays(): readonly Float32Array[];
  /** Restores the arrays. The scheduler owns them afterwards. */
  restore(arrays: readonly Float32Array<ArrayBuffer>[], steps: number): void;
}

/** A scheduler's arithmetic. Step indexes count from the start of the complete schedule, including skipped steps. */
export interface SchedulerRule {
  /**
   * The model's timestep input at each step. Its length is the number of model calls, which equals the number of steps
   * except for `pndm`. Usually integers; fractions for `flow_match_euler`, and for `euler` and `euler_ancestral` with
   * linspace spacing or a sigma schedule. diffusers' ONNX pipeline truncates them if the input is an integer.
   */
  readonly timesteps: readonly number[];
  /** Standard deviation of the first latents: latents = standard normal noise × this. */
  readonly initNoiseSigma: number;
  /** Factor from latents to the model's input; 1 if absent. */
  readonly inputScaleAt?: (stepIndex: number) => number;
  /** The shares of x0 and noise in the latents before a step. */
  readonly levelsAt: (stepIndex: number) => NoiseLevels;
  readonly step: (stepArguments: SchedulerStepArguments, stepIndex: number) => void;
  /** Absent if the scheduler retains no arrays. */
  readonly history?: SchedulerHistory;
}

/** Runs a rule for one row: counts its steps and validates its arguments. */
export class Scheduler {
  readonly timesteps: readonly number[];
  readonly initNoiseSigma: number;
  readonly #rule: SchedulerRule;
  readonly #skippedSteps: number;
  #stepIndex = 0;

  /** Creates a scheduler before its first step. @throws RangeError if no step is left. */
  constructor(rule: SchedulerRule, skippedSteps = 0) {
    this.timesteps = rule.timesteps.slice(skippedSteps);
    if (this.timesteps.length === 0) {
      throw new RangeError(`no step is left: ${skippedSteps} of ${rule.timesteps.length} are skipped`);
    }
    this.initNoiseSigma = rule.initNoiseSigma;
    this.#rule = rule;
    this.#skippedSteps = skippedSteps;
  }

  /** Steps taken so far, 0 … timesteps.length. The row is done at timesteps.length. */
  get stepIndex(): number {
    return this.#stepIndex;
  }

  /**
   * Writes the latents, scaled for the model at the current step, into a batch tensor without allocating.
   *
   * @param target the batch tensor; `sample.length` values from `targetOffset` (in values) are written.
   * @throws RangeError if they do not fit, Error if all steps are done.
   */
  scaleModelInput(sample: Float32Array, target: Float32Array, targetOffset: number): void {
    this.#assertStepLeft();
    target.set(sample, targetOffset); // Throws if it does not fit; writing by index would not.
    const scale = this.#rule.inputScaleAt?.(this.#skippedSteps + this.#stepIndex);
    if (scale === undefined) return;
    for (let index = 0; index < sample.length; index++) target[targetOffset + index] = numberAt(sample, index) * scale;
  }

  /** Writes finished latents with the noise level of the current step; without noise once all steps are done. */
  addNoise(original: Float32Array, noise: Float32Array, target: Float32Array): void {
    const isDone = this.#stepIndex === this.timesteps.length;
    const levels = isDone ? { signal: 1, noise: 0 } : this.#rule.levelsAt(this.#skippedSteps + this.#stepIndex);
    const [signal, noiseLevel] = [Math.fround(levels.signal), Math.fround(levels.noise)];
    for (let index = 0; index < target.length; index++) {
      target[index] =
        Math.fround(signal * numberAt(original, index)) + Math.fround(noiseLevel * numberAt(noise, index));
    }
  }

  /**
   * Takes one step: replaces `sample`, writes `predictedOriginal`, increments `stepIndex`.
   *
   * @throws RangeError if the lengths differ, which typed arrays would silently turn into NaN or a partial step; Error
   * if all steps are done.
   */
  step(stepArguments: SchedulerStepArguments): void {
    this.#assertStepLeft();
    const { modelOutput, sample, predictedOriginal } = stepArguments;
    if (modelOutput.length !== sample.length || predictedOriginal.length !== sample.length) {
      throw new RangeError(
        `modelOutput (${modelOutput.length}), sample (${sample.length}) and predictedOriginal ` +
          `(${predictedOriginal.length}) must have the same length`,
      );
    }
    this.#rule.step(stepArguments, this.#skippedSteps + this.#stepIndex);
    this.#stepIndex += 1;
  }

  /**
   * Returns a copy of the state. {@link Scheduler.restore} on a scheduler with the same options continues with
   * identical bits.
   */
  snapshot(): SchedulerSnapshot {
    const { history } = this.#rule;
    const arrays = history?.arrays().slice(0, history.lengthAt(this.#stepIndex)) ?? [];
    return { stepIndex: this.#stepIndex, history: arrays.map((array) => array.slice()) };
  }

  /** Restores the state of a snapshot. @throws RangeError if it cannot be from a scheduler with these options. */
  restore({ stepIndex, history }: SchedulerSnapshot): void {
    const { length: stepCount } = this.timesteps;
    if (!Number.isInteger(stepIndex) || stepIndex < 0 || stepIndex > stepCount) {
      throw new RangeError(`the snapshot's stepIndex must be an integer in 0 … ${stepCount}, not ${stepIndex}`);
    }
    const expected = this.#rule.history?.lengthAt(stepIndex) ?? 0;
    if (history.length !== expected) {
      const problem = `must have a history of ${expected} arrays, not ${history.length}`;
      throw new RangeError(`the snapshot at step ${stepIndex} ${problem}`);
    }
    const copies = history.map((array) => array.slice());
    this.#rule.history?.restore(copies, stepIndex);
    this.#stepIndex = stepIndex;
  }

  #assertStepLeft(): void {
    const { length: stepCount } = this.timesteps;
    if (this.#stepIndex >= stepCount) throw new Error(`all ${stepCount} steps of this row are done`);
  }
}
