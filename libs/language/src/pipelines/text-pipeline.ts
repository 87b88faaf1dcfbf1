import { DarkroomError, type Pipeline, type PipelineComponent } from '@darkroom/core';
import type { TextCard, TextCodec } from '@darkroom/kinds';
import type { Decoder } from '../decoder/decoder.ts';
import type { TextModelConfig } from '../model/text-model-config.ts';
import type { TextRow } from '../row/text-row.ts';

/** A loaded model that writes. */
export interface TextPipeline<Row extends TextRow = TextRow> extends Pipeline<Row> {
  readonly card: TextCard;
}

/** What both kinds of pipelines are made of. */
export interface TextPipelineOptions {
  card: TextCard;
  config: TextModelConfig;
  codec: TextCodec;
  decoder: Decoder;
  component: PipelineComponent;
  /** Tokens of prompts that are read in one step beside rows that write, which wait for it. */
  stepTokens: number;
}

/** Tokens of prompts that are read in one step where nobody waits for it. */
export const idleStepTokens = 512;

/** A row's part of what is to be read in this step. */
export interface ReadPart<Row> {
  readonly row: Row;
  readonly count: number;
}

/**
 * Shares a step out among rows with something to read, the first of them first: as many as there is room for, since all of
 * them take as much as the longest.
 *
 * @param sizeOf tokens of a row's next piece, given the room there is; at least 1.
 */
export function shareStep<Row>(
  rows: readonly Row[],
  budget: number,
  sizeOf: (row: Row, budget: number) => number,
): ReadPart<Row>[] {
  const parts: ReadPart<Row>[] = [];
  let width = 0;
  for (const row of rows) {
    const count = sizeOf(row, budget);
    const wider = Math.max(width, count);
    if (parts.length > 0 && (parts.length + 1) * wider > budget) continue;
    parts.push({ row, count });
    width = wider;
  }
  return parts;
}

/** What a row fails with when nothing can be chosen. */
export function notNumbers(): DarkroomError {
  const message = 'the text could not be written: the model gave values that are not numbers';
  return new DarkroomError({ code: 'engine_failed', op: 'language.step', message });
}
