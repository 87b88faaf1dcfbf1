/**
 * What a model is to the engine: a maker of rows, and a step that takes many of them at once. Nothing here knows what a
 * row becomes in the end; a picture is one case, a text written token by token would be another.
 */
import type { DarkroomError, Device } from '@darkroom/core';
import type { PictureCard } from '@darkroom/kinds';
import type { DeviceRefusal, NodeCounts } from '@darkroom/runtime';

/** What a row gives out, before it is encoded for a client: raw bytes and the facts that are needed to read them. */
export interface RowOutput {
  /** For pictures: RGB, 8 bits, row by row, `width × height × 3` bytes. */
  readonly data: Uint8Array;
  /**
   * For pictures: `width`, `height` and, for a finished one, `seed`, and `promptTokensCut` and `negativePromptTokensCut`
   * where texts were longer than the model reads.
   */
  readonly facts: Readonly<Record<string, number | string>>;
}

/** Where a row stands, as bytes that only the pipeline that wrote them reads. */
export interface RowCheckpoint {
  /** Steps taken when it was written. */
  readonly step: number;
  readonly data: Uint8Array;
}

/** What rows are made from. */
export interface RowRequest {
  readonly id: string;
  /** What the route validated; each pipeline knows its own shape of it. */
  readonly input: unknown;
  /** Which of the request's outputs to make, counted from 0; all of them if absent. */
  readonly indexes?: readonly number[];
  /** By output index: where an earlier run of the row was. One that does not fit is ignored, the row starts afresh. */
  readonly checkpoints?: ReadonlyMap<number, RowCheckpoint>;
  /**
   * By output index: what to start from instead of the noise of the seed; for pictures channels × height × width values
   * of unit variance. Noise of later steps is still the seed's, from its start, as with diffusers' `latents`.
   */
  readonly initialNoise?: ReadonlyMap<number, Float32Array>;
}

/** What the engine sees of a row. Its pipeline knows more. */
export interface PipelineRow {
  /** Which output of its request it becomes, counted from 0. */
  readonly index: number;
  /** Rows of one shape can share a step. */
  readonly shapeKey: string;
  /** Steps taken, 0 … totalSteps; the row is done at totalSteps. */
  readonly step: number;
  readonly totalSteps: number;
  /** A preview is wanted every so many steps; 0 for none. */
  readonly previewEvery: number;
}

/** How a step went. */
export interface StepReport<Row> {
  /** Rows of the model's batch: more than the table's rows where guidance needs two each. */
  readonly modelRows: number;
  /** Rows that cannot go on. All others are as if these had never been there. */
  readonly failures: readonly { readonly row: Row; readonly error: DarkroomError }[];
}

/** A part of a loaded model, and what it runs on. */
export interface PipelineComponent {
  /** Its folder, such as `unet`. */
  readonly part: string;
  readonly device: Device;
  /** Devices that were preferred and did not take it. */
  readonly refusals: readonly DeviceRefusal[];
  /** Where its nodes really ran, on a device that leaves some to the CPU. */
  readonly nodes?: NodeCounts;
  /** What else an operator should know of it. */
  readonly remark?: string;
}

/** A loaded model. Calls must not overlap. */
export interface Pipeline<Row extends PipelineRow = PipelineRow> {
  readonly card: PictureCard;
  readonly components: readonly PipelineComponent[];
  /**
   * Makes one row for each output asked for, in the order of their indexes.
   *
   * @throws DarkroomError `invalid_request` if the input is not one this model can serve.
   */
  createRows(request: RowRequest): Promise<Row[]>;
  /** No `createRows` follows at once: what only that needs may be let go of. */
  settle(): Promise<void>;
  /**
   * Takes one step of every row given, with as few model calls as the model allows (normally one).
   * What becomes of a row does not depend on the others, to the byte on CPU.
   *
   * @param rows of one shape, none of them done.
   * @throws DarkroomError if the model call fails as a whole; all rows are then where they were before.
   */
  step(rows: readonly Row[]): Promise<StepReport<Row>>;
  /** What the row would become by its latest step, small and quick; undefined if the model has no way to say. */
  preview(row: Row): RowOutput | undefined;
  /**
   * What a done row has become.
   *
   * @throws DarkroomError if that fails; only this row is concerned.
   */
  finish(row: Row): Promise<RowOutput>;
  /** Where the row stands. A row made with it continues, and ends in the same bytes as without the interruption. */
  checkpoint(row: Row): RowCheckpoint;
  /** Frees the model. Rows made before are of no use after. */
  dispose(): Promise<void>;
}
