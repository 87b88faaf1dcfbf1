import type { Metadata, Progress, TextChunk } from '../request/request-event.ts';

/** Result or preview of a row: bytes, and the metadata needed to read them. */
export interface RowOutput {
  readonly data: Uint8Array;
  /** Media type of bytes that are a file; absent for raw bytes, which the receiver encodes. */
  readonly contentType?: string;
  readonly facts: Metadata;
}

/** Saved state of a row; only the pipeline that wrote it can read it. */
export interface RowCheckpoint {
  /** Progress of the row when this was written. */
  readonly done: number;
  readonly data: Uint8Array;
}

export interface RowRequest {
  readonly id: string;
  /** Owner of the request; caches of a row must not be used for rows of other owners. */
  readonly owner?: string;
  /** Validated input; its shape depends on the pipeline. */
  readonly input: unknown;
  /** Indexes of the outputs to make, counted from 0; all outputs if absent. */
  readonly indexes?: readonly number[];
  /** Checkpoints of earlier runs, by output index. One that does not fit is ignored: the row starts over. */
  readonly checkpoints?: ReadonlyMap<number, RowCheckpoint>;
  /** Attached files by name, such as the input image. Absent if there are none. */
  readonly attachments?: ReadonlyMap<string, Uint8Array>;
}

/**
 * The engine's view of a row. All fields but `index` may change after each step: a row whose prompt takes several steps
 * to read may have another shape until then.
 */
export interface PipelineRow {
  /** Index of the request's output that it makes, counted from 0. */
  readonly index: number;
  /** Rows of one shape can share a step. */
  readonly shapeKey: string;
  /** Slots of the engine's capacity that it takes, at least 1. */
  readonly slots: number;
  readonly isDone: boolean;
  /** Absent if it is unknown before the end. */
  readonly stepsLeft?: number | undefined;
}

/** An event of a row after a step. */
export type RowEvent =
  /** Progress. `preview`: raw preview of the result, small and cheap, if one is due. */
  | (Progress & { readonly type: 'progress'; readonly preview?: RowOutput })
  /** Appended text. */
  | (TextChunk & { readonly type: 'delta' })
  /** Replaces the text from the offset on: a block of text that is being denoised. */
  | (TextChunk & { readonly type: 'snapshot' });
