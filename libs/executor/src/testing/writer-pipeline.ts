/**
 * A fake text pipeline with what image pipelines lack: prompts read in several steps, caches to free, unknown lengths,
 * and tokens that are appended one by one or denoised in blocks.
 */
import { DarkroomError } from '@darkroom/core';
import type { ModelCard, Pipeline, PipelineRow, RowCheckpoint, RowEvent, RowRequest, StepReport } from '@darkroom/core';

export interface WriterInput {
  prompt: string;
  /** Max letters; unlimited if absent. */
  max?: number;
  /** Default: the letters of the prompt plus `max`. */
  slots?: number;
  outputs?: number;
  /** Appends letters one by one, or denoises four at a time. */
  mode?: 'letters' | 'blocks';
  /** The writing step at which the row fails. */
  failAt?: number;
  failsToFinish?: boolean;
}

export interface WriterRow extends PipelineRow {
  readonly requestId: string;
  readonly input: Required<WriterInput>;
  /** Text still to be read: the prompt, and what an earlier run has written. */
  unread: string;
  /** A hash of everything read and written. */
  cache: number;
  text: string;
  /** The current block; `_` marks a masked letter. */
  block: string;
  nextSteps: number;
}

/** Letters of a prompt that are read per step. */
const chunk = 4;
const letters = 'abcdefghijklmnopqrstuvwxyz .';

export class WriterPipeline implements Pipeline<WriterRow> {
  readonly card = { id: 'writer' } as ModelCard;
  readonly components = [];
  /** The shape and request ids of each model call. */
  readonly calls: string[] = [];
  /** Rows that hold a part of the cache. */
  readonly allocated = new Set<WriterRow>();
  /** Number of rows ever created. */
  rowCount = 0;
  releaseCount = 0;

  createRows({ id, input, indexes, checkpoints }: RowRequest): Promise<WriterRow[]> {
    const { prompt, max = 12, outputs = 1, mode = 'letters', failAt = 0, failsToFinish = false } = input as WriterInput;
    const { slots = prompt.length + max } = input as WriterInput;
    if (prompt === '') throw new DarkroomError('invalid_request', 'test', 'prompt: is empty');
    const all = indexes ?? Array.from({ length: outputs }, (_, index) => index);
    const rows = all.map((index): WriterRow => {
      const text = new TextDecoder().decode(checkpoints?.get(index)?.data);
      return {
        requestId: id,
        index,
        slots,
        text,
        block: '',
        nextSteps: 0,
        input: { prompt, max, slots, outputs, mode, failAt, failsToFinish },
        unread: prompt + text,
        cache: index,
        get shapeKey() {
          return this.unread === '' ? mode : 'prompt';
        },
        get isDone() {
          return this.text.length >= max || (this.text.endsWith('.') && max < Infinity);
        },
        // The last step is known in advance only if the row reaches `max`.
        get stepsLeft() {
          return mode === 'letters' && this.unread === '' && this.text.length === max - 1 ? 1 : undefined;
        },
      };
    });
    for (const row of rows) this.allocated.add(row);
    this.rowCount += rows.length;
    return Promise.resolve(rows);
  }

  settle(): Promise<void> {
    return Promise.resolve();
  }

  step(rows: readonly WriterRow[]): Promise<StepReport<WriterRow>> {
    for (const row of rows) if (!this.allocated.has(row)) throw new Error(`${row.requestId} was released`);
    const events = new Map<WriterRow, RowEvent[]>();
    const failures = new Map<WriterRow, DarkroomError>();
    // Prompts are read one at a time; other rows with unread prompts wait.
    const present = rows[0]!.unread === '' ? rows : rows.slice(0, 1);
    this.calls.push(`${rows[0]!.shapeKey} ${present.map(({ requestId }) => requestId).join('')}`);
    for (const row of present) {
      if (row.unread !== '') readChunk(row);
      else if (++row.nextSteps === row.input.failAt) failures.set(row, failure('the cache is full'));
      else events.set(row, row.input.mode === 'letters' ? writeLetter(row) : writeBlock(row));
    }
    return Promise.resolve({ modelRows: present.length, events, failures });
  }

  finish({ text, input }: WriterRow) {
    if (input.failsToFinish) return Promise.reject(failure('no such letter'));
    return Promise.resolve({ data: new TextEncoder().encode(text), facts: { letters: text.length } });
  }

  checkpoint({ text }: WriterRow): RowCheckpoint {
    return { done: text.length, data: new TextEncoder().encode(text) };
  }

  release(row: WriterRow): void {
    if (!this.allocated.delete(row)) throw new Error(`${row.requestId} was released twice`);
    this.releaseCount += 1;
  }

  dispose(): Promise<void> {
    if (this.allocated.size > 0) throw new Error(`${this.allocated.size} rows were not released`);
    return Promise.resolve();
  }
}

function failure(message: string): DarkroomError {
  return new DarkroomError('engine_failed', 'test', message);
}

function readChunk(row: WriterRow): void {
  for (const letter of row.unread.slice(0, chunk)) updateCache(row, letter);
  row.unread = row.unread.slice(chunk);
}

function updateCache(row: WriterRow, letter: string): void {
  row.cache = (row.cache * 31 + letter.codePointAt(0)!) % 1_000_003;
}

/** Returns the letter for the cache and a position in the text. */
function letterOf({ cache }: WriterRow, position: number): string {
  return letters[(cache + 7 * position) % letters.length]!;
}

function writeLetter(row: WriterRow): RowEvent[] {
  const { length: offset } = row.text;
  const text = letterOf(row, 0);
  row.text += text;
  updateCache(row, text);
  return [
    { type: 'progress', done: row.text.length },
    { type: 'delta', offset, text, facts: { token: letters.indexOf(text) } },
  ];
}

/** Denoises two letters of the block per step, from its end, and appends the completed block to the text. */
function writeBlock(row: WriterRow): RowEvent[] {
  const { length: offset } = row.text;
  const block = (row.block === '' ? '____' : row.block).split('');
  for (const position of block[3] === '_' ? [3, 1] : [2, 0]) block[position] = letterOf(row, position);
  row.block = block.join('');
  const text = row.block;
  if (!text.includes('_')) {
    row.text += text;
    for (const letter of text) updateCache(row, letter);
    row.block = '';
  }
  return [{ type: 'snapshot', offset, text, facts: { calls: row.nextSteps } }];
}
