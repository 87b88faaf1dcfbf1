import type { Scheduler, SchedulerSnapshot, SchedulerStepArguments } from './scheduler.ts';

/** What a scheduler keeps from step to step, beside their number. */
export interface SchedulerHistory {
  /** How many arrays there are after so many steps. */
  lengthAt(steps: number): number;
  /** They themselves, in an order of the scheduler's own. */
  arraysAt(steps: number): readonly Float32Array[];
  /** Puts arrays in their place that nobody else has. */
  restore(arrays: readonly Float32Array<ArrayBuffer>[], steps: number): void;
}

/** A scheduler's arithmetic, which is told the step it is at. */
export interface SchedulerRule extends Pick<Scheduler, 'name' | 'timesteps' | 'initNoiseSigma'> {
  /** What the model's input is the latents times of; 1 if absent. */
  inputScaleAt?: (stepIndex: number) => number;
  step: (stepArguments: SchedulerStepArguments, stepIndex: number) => void;
  /** None if absent. */
  history?: SchedulerHistory;
}

/** Makes a scheduler of its arithmetic: counts its steps, and refuses what does not fit. */
export function countSteps({ inputScaleAt, step, history, ...facts }: SchedulerRule): Scheduler {
  const { length: stepCount } = facts.timesteps;
  let stepIndex = 0;

  return {
    ...facts,
    get stepIndex() {
      return stepIndex;
    },
    scaleModelInput(sample, target, targetOffset) {
      assertStepLeft(stepIndex, stepCount);
      target.set(sample, targetOffset); // Throws if it does not fit, which writing by index would not.
      if (inputScaleAt === undefined) return;
      const scale = inputScaleAt(stepIndex);
      for (let index = 0; index < sample.length; index++) target[targetOffset + index] = sample[index]! * scale;
    },
    step(stepArguments) {
      assertStepLeft(stepIndex, stepCount);
      assertSameLength(stepArguments);
      step(stepArguments, stepIndex);
      stepIndex += 1;
    },
    snapshot() {
      return { stepIndex, history: history?.arraysAt(stepIndex).map((array) => array.slice()) ?? [] };
    },
    restore(snapshot) {
      assertSnapshot(snapshot, stepCount, history?.lengthAt(snapshot.stepIndex) ?? 0);
      stepIndex = snapshot.stepIndex;
      history?.restore(
        snapshot.history.map((array) => array.slice()),
        stepIndex,
      );
    },
  };
}

/**
 * Refuses a number of steps that the model's schedule cannot be divided into.
 *
 * @throws RangeError unless 1 ≤ `numInferenceSteps` ≤ `numTrainTimesteps` and whole.
 */
export function assertStepCount(numInferenceSteps: number, numTrainTimesteps: number): void {
  if (Number.isInteger(numInferenceSteps) && numInferenceSteps >= 1 && numInferenceSteps <= numTrainTimesteps) return;
  throw new RangeError(
    `numInferenceSteps must be an integer in 1 … ${numTrainTimesteps} ` +
      `(the model was trained on ${numTrainTimesteps} timesteps), not ${numInferenceSteps}`,
  );
}

/**
 * Refuses a step after the last one.
 *
 * @throws Error if all `stepCount` steps are done.
 */
function assertStepLeft(stepIndex: number, stepCount: number): void {
  if (stepIndex < stepCount) return;
  throw new Error(`all ${stepCount} steps of this row are done`);
}

/**
 * Refuses arrays of different lengths, which typed arrays would silently turn into NaN or a partial step.
 *
 * @throws RangeError if the lengths differ.
 */
function assertSameLength({ modelOutput, sample, predictedOriginal }: SchedulerStepArguments): void {
  if (modelOutput.length === sample.length && predictedOriginal.length === sample.length) return;
  throw new RangeError(
    `modelOutput (${modelOutput.length}), sample (${sample.length}) and predictedOriginal ` +
      `(${predictedOriginal.length}) must have the same length`,
  );
}

/**
 * Refuses a snapshot that a scheduler with these options cannot have made.
 *
 * @param historyLength how many arrays this scheduler keeps after the snapshot's number of steps.
 * @throws RangeError if the index is outside 0 … `stepCount` or the history has another length.
 */
function assertSnapshot(snapshot: SchedulerSnapshot, stepCount: number, historyLength: number): void {
  const { stepIndex, history } = snapshot;
  if (!Number.isInteger(stepIndex) || stepIndex < 0 || stepIndex > stepCount) {
    throw new RangeError(`the snapshot's stepIndex must be an integer in 0 … ${stepCount}, not ${stepIndex}`);
  }
  if (history.length !== historyLength) {
    throw new RangeError(
      `the snapshot at step ${stepIndex} must have a history of ${historyLength} arrays, not ${history.length}`,
    );
  }
}
