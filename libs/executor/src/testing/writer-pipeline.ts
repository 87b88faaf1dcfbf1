/**
 * A toy that writes text, with all about it that pictures have not: a prompt that takes several steps to read, a cache that
 * has to be freed, an end that nobody knows before, tokens that are added one by one or blocks that are worked on in place.
 */
import { DarkroomError } from '@darkroom/core';
import type { ModelCard, Pipeline, PipelineRow, RowCheckpoint, RowEvent, RowRequest, StepReport } from '@darkroom/core';

export interface WriterInput {
  prompt: string;
  /** Letters at most. Without a limit it never ends. */
  max?: number;
  /** As many as may be read and written if absent. */
  slots?: number;
  outputs?: number;
  /** Letters are added one by one, or four of them are worked on in place. */
  mode?: 'letters' | 'blocks';
  /** The step of writing in which the row fails. */
  failAt?: number;
  failsToFinish?: boolean;
}

export interface WriterRow extends PipelineRow {
  readonly requestId: string;
  readonly input: Required<WriterInput>;
  /** What is to be read before it can write: the prompt, and what an earlier run has written. */
  unread: string;
  /** Of all that it has read and written. */
  cache: number;
  text: string;
  /** The block in work; a `_` stands for what is not known yet. */
  block: string;
  nextSteps: number;
}

/** Letters of a prompt that are read in a step. */
const chunk = 4;
const letters = 'abcdefghijklmnopqrstuvwxyz .';

export class WriterPipeline implements Pipeline<WriterRow> {
  readonly card = { id: 'writer' } as ModelCard;
  readonly components = [];
  /** What each call of the model did, and for whom. */
  readonly calls: string[] = [];
  /** Rows that hold a part of the cache. */
  readonly held = new Set<WriterRow>();
  /** Rows that were ever made. */
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
        // Only of the last letter that there is room for it is known that it is the last.
        get stepsLeft() {
          return mode === 'letters' && this.unread === '' && this.text.length === max - 1 ? 1 : undefined;
        },
      };
    });
    for (const row of rows) this.held.add(row);
    this.rowCount += rows.length;
    return Promise.resolve(rows);
  }

  settle(): Promise<void> {
    return Promise.resolve();
  }

  step(rows: readonly WriterRow[]): Promise<StepReport<WriterRow>> {
    for (const row of rows) if (!this.held.has(row)) throw new Error(`${row.requestId} was released`);
    const events = new Map<WriterRow, RowEvent[]>();
    const failures = new Map<WriterRow, DarkroomError>();
    // A prompt is read alone; whoever else has one to read takes its turn.
    const present = rows[0]!.unread === '' ? rows : rows.slice(0, 1);
    this.calls.push(`${rows[0]!.shapeKey} ${present.map(({ requestId }) => requestId).join('')}`);
    for (const row of present) {
      if (row.unread !== '') read(row);
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
    if (!this.held.delete(row)) throw new Error(`${row.requestId} was released twice`);
    this.releaseCount += 1;
  }

  dispose(): Promise<void> {
    if (this.held.size > 0) throw new Error(`${this.held.size} rows were not released`);
    return Promise.resolve();
  }
}

function failure(message: string): DarkroomError {
  return new DarkroomError('engine_failed', 'test', message);
}

function read(row: WriterRow): void {
  for (const letter of row.unread.slice(0, chunk)) remember(row, letter);
  row.unread = row.unread.slice(chunk);
}

function remember(row: WriterRow, letter: string): void {
  row.cache = (row.cache * 31 + letter.codePointAt(0)!) % 1_000_003;
}

/** The letter that the cache and a place in the text lead to. */
function letterOf({ cache }: WriterRow, place: number): string {
  return letters[(cache + 7 * place) % letters.length]!;
}

function writeLetter(row: WriterRow): RowEvent[] {
  const { length: offset } = row.text;
  const text = letterOf(row, 0);
  row.text += text;
  remember(row, text);
  return [
    { type: 'progress', done: row.text.length },
    { type: 'delta', offset, text, facts: { token: letters.indexOf(text) } },
  ];
}

/** Two letters of the block in a step, from its end; when all four are there, it is what the row has written. */
function writeBlock(row: WriterRow): RowEvent[] {
  const { length: offset } = row.text;
  const block = (row.block === '' ? '____' : row.block).split('');
  for (const place of block[3] === '_' ? [3, 1] : [2, 0]) block[place] = letterOf(row, place);
  row.block = block.join('');
  const text = row.block;
  if (!text.includes('_')) {
    row.text += text;
    for (const letter of text) remember(row, letter);
    row.block = '';
  }
  return [{ type: 'snapshot', offset, text, facts: { calls: row.nextSteps } }];
}
