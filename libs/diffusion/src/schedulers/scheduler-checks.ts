import type { SchedulerSnapshot, SchedulerStepArguments } from './scheduler.ts';

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
export function assertStepLeft(stepIndex: number, stepCount: number): void {
  if (stepIndex < stepCount) return;
  throw new Error(`all ${stepCount} steps of this row are done`);
}

/**
 * Refuses arrays of different lengths, which typed arrays would silently turn into NaN or a partial step.
 *
 * @throws RangeError if the lengths differ.
 */
export function assertSameLength({ modelOutput, sample, predictedOriginal }: SchedulerStepArguments): void {
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
export function assertSnapshot(snapshot: SchedulerSnapshot, stepCount: number, historyLength: number): void {
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
