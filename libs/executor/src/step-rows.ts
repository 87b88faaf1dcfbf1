import type { Pipeline, PipelineRow } from '@darkroom/diffusion';

/** How a step went, with whatever was thrown laid at the rows it concerns. */
export interface StepOutcome<Row> {
  readonly modelRows: number;
  readonly failures: ReadonlyMap<Row, unknown>;
}

/**
 * Takes one step of all rows, and finds the guilty when the model call fails as a whole: the group is halved until the
 * call succeeds or one row is left, which then fails alone. A batch that does not fit into memory thus runs as two that do.
 */
export async function stepRows<Row extends PipelineRow>(
  pipeline: Pipeline<Row>,
  rows: readonly Row[],
): Promise<StepOutcome<Row>> {
  try {
    const { modelRows, failures } = await pipeline.step(rows);
    return { modelRows, failures: new Map(failures.map(({ row, error }) => [row, error])) };
  } catch (error) {
    if (rows.length === 1) return { modelRows: 0, failures: new Map([[rows[0]!, error]]) };
    const middle = Math.ceil(rows.length / 2);
    const first = await stepRows(pipeline, rows.slice(0, middle));
    const second = await stepRows(pipeline, rows.slice(middle));
    return {
      modelRows: first.modelRows + second.modelRows,
      failures: new Map([...first.failures, ...second.failures]),
    };
  }
}
