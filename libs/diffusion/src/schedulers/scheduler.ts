/**
 * What every scheduler is to the pipeline. One instance serves one row (one picture), because each row has its own
 * steps, guidance and scheduler; a batch is rows of different instances that happen to share a model call.
 *
 * A step's result depends on nothing but the row's own inputs, so a picture is the same bytes whoever shares its batch
 * and however often it is run again.
 */

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

/** One of {@link schedulerNames}. */
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

/** What a scheduler of one row is made from. */
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
}

/** The steps that a pipeline prescribes; both arrays have `numInferenceSteps` values. */
export interface FlowGrid {
  /** Falling, 1 at most, before any shift. Without the 0 at the end. */
  readonly sigmas: readonly number[];
  /** What the model is given at each step, instead of the shifted sigma × numTrainTimesteps. */
  readonly timesteps?: readonly number[];
}

/** The state and arithmetic of one row's way from noise to latents. */
export interface Scheduler {
  readonly name: SchedulerName;
  /**
   * What the model is given at each step; its length is the number of model calls, which is that of the steps except
   * for `pndm`. Usually whole numbers; `euler` and `euler_ancestral` with linspace spacing, and `euler` with sigmas of
   * their own, give fractions, which diffusers' ONNX pipeline truncates when the model's input is an integer, and so does
   * `flow_match_euler`, whose models take fractions.
   */
  readonly timesteps: readonly number[];
  /** Standard deviation of the first latents: latents = standard normal noise × this. */
  readonly initNoiseSigma: number;
  /** Steps taken so far, 0 … timesteps.length. The row is done at timesteps.length. */
  readonly stepIndex: number;
  /**
   * Writes the latents as the model wants them at the present step into a batch tensor, without allocating.
   *
   * @param target the batch tensor; `sample.length` values from `targetOffset` (in values) are written.
   * @throws RangeError if they do not fit, Error if all steps are done.
   */
  scaleModelInput(sample: Float32Array, target: Float32Array, targetOffset: number): void;
  /**
   * Takes one step: replaces `sample`, writes `predictedOriginal`, moves `stepIndex` on.
   *
   * @throws RangeError if the lengths differ, Error if all steps are done.
   */
  step(stepArguments: SchedulerStepArguments): void;
  /** A copy of the state; {@link Scheduler.restore} in a scheduler made with the same options continues bit for bit. */
  snapshot(): SchedulerSnapshot;
  /**
   * Puts the scheduler where the snapshot was taken.
   *
   * @throws RangeError if the snapshot cannot be of a scheduler with these options.
   */
  restore(snapshot: SchedulerSnapshot): void;
}
