/**
 * What a loaded model is to the engine: a maker of rows, and a step that takes many of them at once. Nothing here knows
 * what a row becomes in the end: a picture, or a text that is written token by token or block by block.
 */
import type { DarkroomError } from '../errors/darkroom-error.ts';
import type { ModelCard } from '../model/model-card.ts';
import type { PipelineComponent } from './pipeline-component.ts';
import type { PipelineRow, RowCheckpoint, RowEvent, RowOutput, RowRequest } from './pipeline-row.ts';

export interface StepReport<Row> {
  /** Rows of the model's batch: more than the table's rows where guidance needs two each. */
  readonly modelRows: number;
  /** What rows have to say, in order; a row that has nothing to say may be left out. */
  readonly events: ReadonlyMap<Row, readonly RowEvent[]>;
  /** Rows that cannot go on. All others are as if these had never been there. */
  readonly failures: ReadonlyMap<Row, DarkroomError>;
}

/** A loaded model. Calls must not overlap. */
export interface Pipeline<Row extends PipelineRow = PipelineRow> {
  readonly card: ModelCard;
  readonly components: readonly PipelineComponent[];
  /**
   * Makes one row for each output asked for, in the order of their indexes. Everybody else stands still meanwhile, so what
   * takes long, such as reading a long prompt, belongs into the row's first steps.
   *
   * @throws DarkroomError `invalid_request` if the input is not one this model can serve. Nothing is held then.
   */
  createRows(request: RowRequest): Promise<Row[]>;
  /**
   * Whether there is memory for a row beside others. By default there is: slots are all that counts. One that is alone is let in in
   * any case.
   */
  hasRoomFor?(row: Row, others: readonly Row[]): boolean;
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
  /** What a done row has become. @throws DarkroomError if that fails; only this row is concerned. */
  finish(row: Row): Promise<RowOutput>;
  /** Where the row stands. A row made with it continues, and ends in the same bytes as without the interruption. */
  checkpoint(row: Row): RowCheckpoint;
  /**
   * Frees what the row holds, such as its part of a cache. The engine calls it once for every row it was given, whatever
   * the way the row leaves by, between steps; it must not throw.
   */
  release(row: Row): void;
  /** Frees the model. Rows are released before. */
  dispose(): Promise<void>;
}
