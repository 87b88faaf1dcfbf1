import type { ErrorCode } from '@darkroom/core';
import type { RowCheckpoint, RowOutput } from '@darkroom/diffusion';

/** A row has taken a step. */
export interface ProgressEvent {
  readonly type: 'progress';
  readonly requestId: string;
  readonly index: number;
  /** Steps taken, 1 … total. */
  readonly done: number;
  /** Absent where nobody knows it before the end. */
  readonly total?: number;
  /** At the request's cadence, never on the last step; raw, the receiver encodes it. */
  readonly preview?: RowOutput;
}

/** A row is about to take its last step: whoever comes now joins when it leaves, without an idle step between. */
export interface RowReleasingEvent {
  readonly type: 'row-releasing';
  readonly requestId: string;
  readonly index: number;
}

/** A row is done; raw, the receiver encodes it. */
export interface OutputEvent {
  readonly type: 'output';
  readonly requestId: string;
  readonly index: number;
  readonly output: RowOutput;
}

/** All outputs that were asked for have been sent. */
export interface RequestDoneEvent {
  readonly type: 'request-done';
  readonly requestId: string;
}

/** The request's rows have left the table because `cancel` was called. */
export interface RequestCanceledEvent {
  readonly type: 'request-canceled';
  readonly requestId: string;
}

/** A row of the request could not go on, and its other rows were dropped. */
export interface RequestFailedEvent {
  readonly type: 'request-failed';
  readonly requestId: string;
  readonly code: ErrorCode;
  /** Safe to show to whoever sent the request. */
  readonly message: string;
}

/** Where a row stands, for another executor to go on from. */
export interface CheckpointEvent {
  readonly type: 'checkpoint';
  readonly requestId: string;
  readonly index: number;
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
  /** Slots of the table that are taken, by rows of all shapes. */
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

/** What the engine's row table says. Of one request, nothing follows done, canceled or failed. */
export type EngineEvent =
  | ProgressEvent
  | RowReleasingEvent
  | OutputEvent
  | RequestDoneEvent
  | RequestCanceledEvent
  | RequestFailedEvent
  | CheckpointEvent
  | StepStatsEvent;

/** What an executor says. */
export type ExecutorEvent = EngineEvent | EngineLostEvent;

/** Gets the events of a step in one call, in order. */
export type ExecutorListener = (events: readonly ExecutorEvent[]) => void;
