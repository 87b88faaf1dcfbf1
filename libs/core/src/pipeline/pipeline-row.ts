import type { Facts, Progress, TextPiece } from '../request/request-event.ts';

/** What a row gives out in the end, and now and then before: bytes, and the facts that are needed to read them. */
export interface RowOutput {
  readonly data: Uint8Array;
  /** Of bytes that are a file as they are; absent where they are raw, and the receiver encodes them. */
  readonly contentType?: string;
  readonly facts: Facts;
}

/** Where a row stands, as bytes that only the pipeline that wrote them reads. */
export interface RowCheckpoint {
  /** How far it had come when this was written, counted as in its progress. */
  readonly done: number;
  readonly data: Uint8Array;
}

export interface RowRequest {
  readonly id: string;
  /** Whose it is: nothing that is kept of it is of use to, or seen by, who is somebody else's. */
  readonly owner?: string;
  /** What the door validated; each pipeline knows its own shape of it. */
  readonly input: unknown;
  /** Which of the request's outputs to make, counted from 0; all of them if absent. */
  readonly indexes?: readonly number[];
  /** By output index: where an earlier run of the row was. One that does not fit is ignored, the row starts afresh. */
  readonly checkpoints?: ReadonlyMap<number, RowCheckpoint>;
  /** By name: files that came with the request, such as the picture that it starts from. Absent where there are none. */
  readonly attachments?: ReadonlyMap<string, Uint8Array>;
}

/**
 * What the engine sees of a row; its pipeline knows more. All but the index may be another after each step: a row whose
 * prompt takes several steps to read, for instance, may have a shape of its own until it is read.
 */
export interface PipelineRow {
  /** Which output of its request it becomes, counted from 0. */
  readonly index: number;
  /** Rows of one shape can share a step. */
  readonly shapeKey: string;
  /** What it takes of the engine's room, in the unit in which that is counted; at least 1. */
  readonly slots: number;
  readonly isDone: boolean;
  /** Absent where nobody knows before the end. */
  readonly stepsLeft?: number | undefined;
}

/** What a row has to say after a step. */
export type RowEvent =
  /** It has come further. `preview`: what it would become by now, small and quick to make, raw; where one is due. */
  | (Progress & { readonly type: 'progress'; readonly preview?: RowOutput })
  /** Text was added to what it has written. */
  | (TextPiece & { readonly type: 'delta' })
  /** From the offset on this stands now, in place of all that was there: a block of text that is worked on. */
  | (TextPiece & { readonly type: 'snapshot' });
