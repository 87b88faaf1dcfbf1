/** What a row gives out in the end, and now and then before: bytes, and the facts that are needed to read them. */
export interface RowOutput {
  readonly data: Uint8Array;
  readonly facts: Readonly<Record<string, number | string>>;
}

/** Where a row stands, as bytes that only the pipeline that wrote them reads. */
export interface RowCheckpoint {
  /** How far it had come when this was written, counted as in its progress. */
  readonly done: number;
  readonly data: Uint8Array;
}

/** What rows are made from. */
export interface RowRequest {
  readonly id: string;
  /** What the door validated; each pipeline knows its own shape of it. */
  readonly input: unknown;
  /** Which of the request's outputs to make, counted from 0; all of them if absent. */
  readonly indexes?: readonly number[];
  /** By output index: where an earlier run of the row was. One that does not fit is ignored, the row starts afresh. */
  readonly checkpoints?: ReadonlyMap<number, RowCheckpoint>;
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
  /** No step is left. */
  readonly isDone: boolean;
  /** Absent where nobody knows before the end. */
  readonly stepsLeft?: number | undefined;
}

/** A row has come further. */
export interface RowProgress {
  readonly type: 'progress';
  /** Steps, tokens, or what else the kind of work is counted in: 1 … total. */
  readonly done: number;
  /** Absent where nobody knows it before the end. */
  readonly total?: number;
  /** What the row would become by now, small and quick to make; where one is due. Raw, the receiver encodes it. */
  readonly preview?: RowOutput;
}

/** Text was added to what a row has written. */
export interface RowDelta {
  readonly type: 'delta';
  /** Where `text` begins in the whole, in UTF-16 code units. */
  readonly offset: number;
  readonly text: string;
  /** What else there is to say of it, such as ids of tokens; the kind of work knows the names. */
  readonly facts?: Readonly<Record<string, number | string>>;
}

/** From `offset` on this stands now, in place of all that was there: a block of text that is worked on. */
export interface RowSnapshot extends Omit<RowDelta, 'type'> {
  readonly type: 'snapshot';
}

/** What a row has to say after a step. */
export type RowEvent = RowProgress | RowDelta | RowSnapshot;
