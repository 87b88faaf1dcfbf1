import type { ErrorCode, RowCheckpoint, RowDelta, RowOutput, RowProgress, RowSnapshot } from '@darkroom/core';

/** Which output of which request an event is about. */
interface OfOutput {
  readonly requestId: string;
  readonly index: number;
}

/** An output has come further. */
export interface ProgressEvent extends RowProgress, OfOutput {}

/** Text was added to an output. */
export interface DeltaEvent extends RowDelta, OfOutput {}

/** From an offset on, this stands now in an output. */
export interface SnapshotEvent extends RowSnapshot, OfOutput {}

/** An output is done; raw, the receiver encodes it. */
export interface OutputEvent extends OfOutput {
  readonly type: 'output';
  readonly output: RowOutput;
}

/** Where a row stands, for another executor to go on from. */
export interface CheckpointEvent extends OfOutput {
  readonly type: 'checkpoint';
  readonly checkpoint: RowCheckpoint;
}

/** One step of one group of rows. */
export interface StepStatsEvent {
  readonly type: 'stats';
  readonly shapeKey: string;
  /** Rows of the table that took the step. */
  readonly rows: number;
  /** Rows of the model's batch: more than `rows` where guidance needs two each. */
  readonly modelRows: number;
  /** What the rows of the table take of its room, those of all shapes. */
  readonly tableSlots: number;
  /** Requests that have at least one row waiting for room. */
  readonly waitingRequests: number;
  readonly stepMs: number;
}

/** The engine died. What it had is lost from the last checkpoints on; `start()` makes a new one. */
export interface EngineLostEvent {
  readonly type: 'engine-lost';
  /** For the log: exit code or signal. */
  readonly message: string;
  /** Submitted and not ended. */
  readonly requestIds: readonly string[];
}

/** The last that is said of a request. */
export type RequestEndEvent = { readonly requestId: string } & (
  | {
      /** All outputs that were asked for have been sent; or it was let go of because `cancel` was called. */
      readonly type: 'request-done' | 'request-canceled';
    }
  | {
      /** An output of the request could not be made, and its others were dropped. */
      readonly type: 'request-failed';
      readonly code: ErrorCode;
      /** Safe to show to whoever sent the request. */
      readonly message: string;
    }
);

/** What every executor says of a request. */
export type RequestEvent = ProgressEvent | DeltaEvent | SnapshotEvent | OutputEvent | RequestEndEvent;

/** What an engine says, that steps rows. An executor that has no steps never says the last three. */
export type EngineEvent =
  | RequestEvent
  /** A row is about to take its last step: whoever comes now joins when it leaves, without an idle step between. */
  | (OfOutput & { readonly type: 'row-releasing' })
  | CheckpointEvent
  | StepStatsEvent;

/** What an executor says. */
export type ExecutorEvent = EngineEvent | EngineLostEvent;

/** Gets what happened at one time, such as the events of a step, in one call and in order. */
export type ExecutorListener = (events: readonly ExecutorEvent[]) => void;

export function isRequestEnd(event: ExecutorEvent): event is RequestEndEvent {
  return event.type === 'request-done' || event.type === 'request-canceled' || event.type === 'request-failed';
}
