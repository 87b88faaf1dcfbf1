import type { SchedulerConfig } from './config/scheduler-config.ts';

/** The schedulers there are, under the names requests use. */
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

/** Where a row stands in its schedule: plain data, safe for a structured clone. */
export interface SchedulerSnapshot {
  /** Steps already taken, 0 … timesteps.length. */
  readonly stepIndex: number;
  /**
   * Copies of the arrays that a multistep solver still needs of the steps before, all of the latents' length; empty for
   * one-step solvers. Which they are is the scheduler's own affair.
   */
  readonly history: Float32Array[];
}

/** What one step reads and writes. All arrays have the length of the latents and share no memory. */
export interface SchedulerStepArguments {
  /** The model's output for this step, guidance already applied. Read only. */
  readonly modelOutput: Float32Array;
  /** The latents, at the scheduler's own scale. Replaced by those of the next step. */
  readonly sample: Float32Array;
  /** Receives the estimate of the finished latents (x0) that this step went by. */
  readonly predictedOriginal: Float32Array;
  /** Fills an array with the row's next standard normal values. Called once a step at most, and by few schedulers. */
  readonly fillNoise: (target: Float32Array) => void;
}

export interface CreateSchedulerOptions {
  /** The config of the model; shared by all its rows and all schedulers. */
  readonly config: SchedulerConfig;
  /** Steps to take, 1 … config.numTrainTimesteps. */
  readonly numInferenceSteps: number;
  /**
   * Flow models with `useDynamicShifting`: the shift that goes with the size of the picture (diffusers: `mu`), which
   * families derive differently, see `interpolatedShift` and `squareRootShift`.
   */
  readonly dynamicShift?: number;
  /** `flow_match_euler`: steps of the pipeline's own instead of the scheduler's, as CogView4 has them. */
  readonly flowGrid?: FlowGrid;
  /**
   * Steps that are left out at the noisy end, 0 … numInferenceSteps − 1: what is drawn over a picture begins after them,
   * with noise on the picture (`addNoise`). 0 if absent.
   */
  readonly skippedSteps?: number;
  /**
   * `lcm`: the share of the distilled timesteps, from the least noisy one, that steps are chosen of; 1 if absent. Models that
   * are drawn over a picture begin there, instead of with some steps left out (diffusers: `strength` of `set_timesteps`).
   */
  readonly distilledShare?: number;
}

/** How much of latents is x0 and how much noise. */
export interface NoiseLevels {
  readonly signal: number;
  readonly noise: number;
}

/** The steps that a pipeline prescribes; both arrays have `numInferenceSteps` values. */
export interface FlowGrid {
  /** Falling, 1 at most, before any shift. Without the 0 at the end. */
  readonly sigmas: readonly number[];
  /** What the model is given at each step, instead of the shifted sigma × numTrainTimesteps. */
  readonly timesteps?: readonly number[];
}

/** What a scheduler keeps from step to step, beside their number. */
export interface SchedulerHistory {
  /** How many arrays there are after so many steps. */
  lengthAt(steps: number): number;
  /** They themselves, in an order of the scheduler's own; what comes after so many is not needed. */
  arrays(): readonly Float32Array[];
  /** Puts arrays in their place that nobody else has. */
  restore(arrays: readonly Float32Array<ArrayBuffer>[], steps: number): void;
}

/**
 * A scheduler's arithmetic, which is told the step it is at: its number in the whole schedule, with the steps that were
 * skipped.
 */
export interface SchedulerRule {
  /**
   * What the model is given at each step; its length is the number of model calls, which is that of the steps except
   * for `pndm`. Usually whole numbers; `euler` and `euler_ancestral` with linspace spacing, and `euler` with sigmas of
   * their own, give fractions, which diffusers' ONNX pipeline truncates when the model's input is an integer, and so does
   * `flow_match_euler`, whose models take fractions.
   */
  readonly timesteps: readonly number[];
  /** Standard deviation of the first latents: latents = standard normal noise × this. */
  readonly initNoiseSigma: number;
  /** What the model's input is the latents times of; 1 if absent. */
  readonly inputScaleAt?: (stepIndex: number) => number;
  /** What the latents before a step are made of. */
  readonly levelsAt: (stepIndex: number) => NoiseLevels;
  readonly step: (stepArguments: SchedulerStepArguments, stepIndex: number) => void;
  /** None if absent. */
  readonly history?: SchedulerHistory;
}

/** One row's way from noise to latents: counts the steps of a rule, and refuses what does not fit. */
export class Scheduler {
  readonly timesteps: readonly number[];
  readonly initNoiseSigma: number;
  readonly #rule: SchedulerRule;
  readonly #skippedSteps: number;
  #stepIndex = 0;

  /** @throws RangeError if no step is left. */
  constructor(rule: SchedulerRule, skippedSteps = 0) {
    this.timesteps = rule.timesteps.slice(skippedSteps);
    if (this.timesteps.length === 0) {
      throw new RangeError(`of ${rule.timesteps.length} steps none is left after ${skippedSteps} that are skipped`);
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
   * Writes the latents as the model wants them at the present step into a batch tensor, without allocating.
   *
   * @param target the batch tensor; `sample.length` values from `targetOffset` (in values) are written.
   * @throws RangeError if they do not fit, Error if all steps are done.
   */
  scaleModelInput(sample: Float32Array, target: Float32Array, targetOffset: number): void {
    this.#assertStepLeft();
    target.set(sample, targetOffset); // Throws if it does not fit, which writing by index would not.
    const scale = this.#rule.inputScaleAt?.(this.#skippedSteps + this.#stepIndex);
    if (scale === undefined) return;
    for (let index = 0; index < sample.length; index++) target[targetOffset + index] = sample[index]! * scale;
  }

  /**
   * Writes what finished latents are before the present step, with the noise that belongs there; they themselves once all
   * steps are done.
   */
  addNoise(original: Float32Array, noise: Float32Array, target: Float32Array): void {
    const isDone = this.#stepIndex === this.timesteps.length;
    const levels = isDone ? { signal: 1, noise: 0 } : this.#rule.levelsAt(this.#skippedSteps + this.#stepIndex);
    const [signal, noiseLevel] = [Math.fround(levels.signal), Math.fround(levels.noise)];
    for (let index = 0; index < target.length; index++) {
      target[index] = Math.fround(signal * original[index]!) + Math.fround(noiseLevel * noise[index]!);
    }
  }

  /**
   * Takes one step: replaces `sample`, writes `predictedOriginal`, moves `stepIndex` on.
   *
   * @throws RangeError if the lengths differ, which typed arrays would silently turn into NaN or a partial step; Error if
   * all steps are done.
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

  /** A copy of the state; {@link Scheduler.restore} in a scheduler made with the same options continues bit for bit. */
  snapshot(): SchedulerSnapshot {
    const { history } = this.#rule;
    const arrays = history?.arrays().slice(0, history.lengthAt(this.#stepIndex)) ?? [];
    return { stepIndex: this.#stepIndex, history: arrays.map((array) => array.slice()) };
  }

  /** Puts the scheduler where the snapshot was taken. @throws RangeError if the snapshot cannot be of a scheduler with these options. */
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
