import { type NonEmpty, nonEmpty, type Pipeline, type PipelineRow } from '@darkroom/core';
import type { StepReport, TokenCounts } from '@darkroom/core';

/** Report of a step, with each error assigned to the rows it concerns. */
type StepOutcome<Row> = Omit<StepReport<Row>, 'failures'> & { readonly failures: ReadonlyMap<Row, unknown> };

/**
 * Takes one step of all rows. If the model call fails as a whole, halves the group until a call succeeds or a single
 * row fails alone. A batch that runs out of memory thus runs as two that fit.
 */
export async function stepRows<Row extends PipelineRow>(
  pipeline: Pick<Pipeline<Row>, 'step'>,
  rows: NonEmpty<Row>,
): Promise<StepOutcome<Row>> {
  try {
    return await pipeline.step(rows);
  } catch (error) {
    if (rows.length === 1) return { modelRows: 0, events: new Map(), failures: new Map([[rows[0], error]]) };
    const middle = Math.ceil(rows.length / 2);
    const first = await stepRows(pipeline, nonEmpty(rows.slice(0, middle)));
    const second = await stepRows(pipeline, nonEmpty(rows.slice(middle)));
    return {
      modelRows: first.modelRows + second.modelRows,
      ...addTokens(first.tokens, second.tokens),
      events: new Map([...first.events, ...second.events]),
      failures: new Map([...first.failures, ...second.failures]),
    };
  }
}

function addTokens(first?: TokenCounts, second?: TokenCounts): { tokens?: TokenCounts } {
  if (first === undefined || second === undefined) {
    const tokens = first ?? second;
    return tokens === undefined ? {} : { tokens };
  }
  return {
    tokens: {
      read: first.read + second.read,
      cached: first.cached + second.cached,
      written: first.written + second.written,
      calls: first.calls + second.calls,
    },
  };
}
