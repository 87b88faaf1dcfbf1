/**
 * The engine's interface to a loaded model: it creates rows, and steps many of them at once. Independent of the kind of
 * work: images, text written token by token or block by block.
 */
import type { NonEmpty } from '../checked-lookup.ts';
import type { DarkroomError } from '../errors/darkroom-error.ts';
import type { ModelCard } from '../model/model-card.ts';
import type { PipelineComponent } from './pipeline-component.ts';
import type { PipelineRow, RowCheckpoint, RowEvent, RowOutput, RowRequest } from './pipeline-row.ts';

/** Token counts, summed over rows. */
export interface TokenCounts {
  /** Prompt tokens that the model has read. */
  readonly read: number;
  /** Prompt tokens that were taken from the cache, because another row had read them. */
  readonly cached: number;
  readonly written: number;
  /** Model calls after the prompt, per row. */
  readonly calls: number;
}

export interface StepReport<Row> {
  /** Rows of the model's batch: more than the engine's rows if guidance needs two each. */
  readonly modelRows: number;
  /** Absent for models without text output. */
  readonly tokens?: TokenCounts;
  /** Events by row, in order; rows without events may be missing. */
  readonly events: ReadonlyMap<Row, readonly RowEvent[]>;
  /** Errors of rows that cannot continue. Other rows are not affected. */
  readonly failures: ReadonlyMap<Row, DarkroomError>;
}

/** A loaded model. Calls must not overlap. */
export interface Pipeline<Row extends PipelineRow = PipelineRow> {
  readonly card: ModelCard;
  readonly components: readonly PipelineComponent[];
  /**
   * Creates one row per requested output, in the order of their indexes. All other rows wait meanwhile, so move slow
   * work, such as reading a long prompt, to the row's first steps.
   *
   * @throws DarkroomError `invalid_request` if this model cannot serve the input. Nothing is retained then.
   */
  createRows(request: RowRequest): Promise<Row[]>;
  /**
   * Returns whether memory suffices for a row beside others; if absent, only slots count. A row that is alone is always
   * admitted.
   */
  fitsMemory?(row: Row, others: readonly Row[]): boolean;
  /** Called when no `createRows` follows soon: frees what only that needs. */
  settle(): Promise<void>;
  /**
   * Takes one step of the given rows, with as few model calls as possible (normally one). The result of a row does not
   * depend on the others; on a CPU its bytes are identical.
   *
   * @param rows of one shape, none of them done.
   * @throws DarkroomError if the whole model call fails; all rows are then unchanged.
   */
  step(rows: NonEmpty<Row>): Promise<StepReport<Row>>;
  /** Returns the result of a row that is done. @throws DarkroomError if that fails; other rows are not affected. */
  finish(row: Row): Promise<RowOutput>;
  /** Saves the state of a row. A row created with it ends in the same bytes as without the interruption. */
  checkpoint(row: Row): RowCheckpoint;
  /**
   * Frees what the row holds, such as its cache. The engine calls it once for every row, on every exit path, between
   * steps; it must not throw.
   */
  release(row: Row): void;
  /** Frees the model. All rows are released before. */
  dispose(): Promise<void>;
}
