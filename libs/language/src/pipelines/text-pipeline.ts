import { DarkroomError, type Pipeline, type PipelineComponent, type TokenCounts } from '@darkroom/core';
import type { Grammars, TextCard, TextCodec } from '@darkroom/kinds';
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
  /** What matches texts with their constraints; block diffusion has none. */
  grammars: Grammars;
  component: PipelineComponent;
  /** Tokens of prompts that are read at most in one step beside rows that write, which wait for it. */
  stepTokens: number;
  /** Tokens that caches of ended texts may take the memory of, for those that begin as they did; block diffusion keeps none. */
  keptTokens: number;
  /** Tokens of cache that there is memory for: rows share buffers in which each is as long as the longest. */
  memoryTokens: number;
  /** Whether it leaves the same bits in a cache if tokens are read one by one or in pieces. */
  singlesAsPieces: boolean;
}

/** Whether a row fits into the buffers beside others. */
export function hasRoomFor(row: TextRow, others: readonly TextRow[], memoryTokens: number): boolean {
  const longest = others.reduce((most, { slots }) => Math.max(most, slots), row.slots);
  return (others.length + 1) * longest <= memoryTokens;
}

/** Tokens of prompts that are read in one step where nobody waits for it. */
export const idleStepTokens = 512;

/**
 * Tokens that a step may take.
 *
 * @param present rows of the step, of one shape: `read` or `write`.
 * @param all rows that there are.
 */
export function stepBudget(present: readonly TextRow[], all: Iterable<TextRow>, stepTokens: number): number {
  if (present[0]!.shapeKey === 'write') return Infinity;
  return hasWriters(all) ? stepTokens : idleStepTokens;
}

/** Whether there are rows that wait for each step of reading. */
export function hasWriters(all: Iterable<TextRow>): boolean {
  return [...all].some(({ shapeKey, isDone }) => shapeKey === 'write' && !isDone);
}

/** A row's part of a step. */
export interface StepPart<Row> {
  readonly row: Row;
  readonly count: number;
}

/**
 * Shares a step out, the first rows first: among as many as there is room for, since each takes as much as the widest.
 *
 * @param countOf tokens that a row has for a step; at least 1.
 * @returns at least the first row's part.
 */
export function shareStep<Row>(rows: readonly Row[], budget: number, countOf: (row: Row) => number): StepPart<Row>[] {
  const parts: StepPart<Row>[] = [];
  let width = 0;
  for (const row of rows) {
    const count = countOf(row);
    const wider = Math.max(width, count);
    if (parts.length > 0 && (parts.length + 1) * wider > budget) continue;
    parts.push({ row, count });
    width = wider;
  }
  return parts;
}

const noTokens: TokenCounts = { read: 0, cached: 0, written: 0, calls: 0 };

/** What rows have done with tokens so far, less what they had done before. */
export function countTokens(rows: readonly TextRow[], before: TokenCounts = noTokens): TokenCounts {
  const sum = (amountOf: (row: TextRow) => number): number => rows.reduce((total, row) => total + amountOf(row), 0);
  const known = sum(({ cache, request }) => Math.min(cache.length, request.prompt.length));
  const cached = sum((row) => row.takenTokens);
  return {
    read: known - cached - before.read,
    cached: cached - before.cached,
    written: sum(({ written }) => written.tokens.length) - before.written,
    calls: sum(({ calls }) => calls) - before.calls,
  };
}

/** What a row fails with when nothing can be chosen. */
export function notNumbers(): DarkroomError {
  const message = 'the text could not be written: the model gave values that are not numbers';
  return new DarkroomError('engine_failed', 'language.step', message);
}

/** What a row fails with when its constraint cannot be kept to. */
export function notWritable(problem: string): DarkroomError {
  return new DarkroomError('invalid_request', 'language.step', `the grammar of the text: ${problem}`);
}
