import type { ModelCard, PipelineRow, RowCheckpoint, RowEvent, RowOutput, RowRequest } from '@darkroom/core';
import { type DarkroomError, pairUp, type StepReport } from '@darkroom/core';
import type { ImageInput, UpstreamTextInput } from '@darkroom/kinds';
import type { SteppedPipeline } from '../engine/engine.ts';
import { ModuleImageReader } from '../module/image-reader.ts';
import { imageRequest, textRequest } from '../module/module-request.ts';
import type { OutputReader, ReaderState } from '../module/output-reader.ts';
import { ModuleTextReader } from '../module/text-reader.ts';
import { decodeCheckpoint, encodeCheckpoint } from './engine-checkpoint.ts';
import type { EngineChild } from './engine-child.ts';
import type { RowReport, RowState } from './engine-protocol.ts';

/** A row of an engine in another process. */
class EngineRow implements PipelineRow {
  readonly slots = 1;
  readonly index: number;
  readonly number: number;
  /** Validates the row's values. */
  readonly reader: OutputReader;
  state: RowState;

  constructor({ index, number, reader, state }: Pick<EngineRow, 'index' | 'number' | 'reader' | 'state'>) {
    this.index = index;
    this.number = number;
    this.reader = reader;
    this.state = state;
  }

  get shapeKey(): string {
    return this.state.shape;
  }

  get isDone(): boolean {
    return this.state.isDone;
  }

  get stepsLeft(): number | undefined {
    return this.state.stepsLeft;
  }
}

/** The rows of an engine in another process. Everything behind it can be trusted as from the built-in engine. */
export class EnginePipeline implements SteppedPipeline<EngineRow> {
  readonly card: ModelCard;
  readonly components = [];
  readonly #child: EngineChild;
  #nextRow = 0;

  constructor(child: EngineChild, card: ModelCard) {
    this.#child = child;
    this.card = card;
  }

  async createRows(request: RowRequest): Promise<EngineRow[]> {
    const { n } = request.input as { n: number };
    const indexes = request.indexes ?? Array.from({ length: n }, (_, at) => at);
    const created = await Promise.allSettled(indexes.map((index) => this.#create(request, index)));
    const rows = created.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
    const failure = created.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
    if (failure === undefined) return rows;
    for (const row of rows) this.release(row);
    throw failure.reason;
  }

  settle(): Promise<void> {
    return Promise.resolve();
  }

  async step(rows: readonly EngineRow[]): Promise<StepReport<EngineRow>> {
    const reports = await this.#child.call('step', { rows: rows.map(({ number }) => number) });
    if (reports.length !== rows.length)
      throw this.#child.violation(`step has ${reports.length} reports, expected ${rows.length}`);
    const events = new Map<EngineRow, readonly RowEvent[]>();
    const failures = new Map<EngineRow, DarkroomError>();
    for (const [row, report] of pairUp(rows, reports)) {
      const outcome = this.#apply(row, report);
      if (Array.isArray(outcome)) events.set(row, outcome);
      else failures.set(row, outcome);
    }
    return { modelRows: rows.length, events, failures };
  }

  async finish({ number, reader }: EngineRow): Promise<RowOutput> {
    const value = await this.#child.call('finish', { row: number });
    return this.#read(() => reader.end(value));
  }

  async checkpoint({ number, reader }: EngineRow): Promise<RowCheckpoint | undefined> {
    const data = await this.#child.call('checkpoint', { row: number });
    return data === null ? undefined : encodeCheckpoint(reader.state, data);
  }

  release({ number }: EngineRow): void {
    this.#child.send({ type: 'release', row: number });
  }

  dispose(): Promise<void> {
    return this.#child.close();
  }

  async #create(request: RowRequest, index: number): Promise<EngineRow> {
    const { input, attachments, checkpoints } = request;
    const isText = this.card.kind === 'text';
    const saved = decodeCheckpoint(checkpoints?.get(index));
    const number = this.#nextRow++;
    const own = isText
      ? textRequest(input as UpstreamTextInput, index, attachments)
      : imageRequest(input as ImageInput, index);
    const checkpoint = saved && { checkpoint: saved.data };
    const { isResumed, state } = await this.#child.call('create', { row: number, ...own, ...checkpoint });
    const reader = this.#reader(request, index, isResumed ? saved : undefined);
    return new EngineRow({ index, number, state, reader });
  }

  #reader({ input }: RowRequest, index: number, start: ReaderState | undefined): OutputReader {
    return this.card.kind === 'text'
      ? new ModuleTextReader(input as UpstreamTextInput, start)
      : new ModuleImageReader(input as ImageInput, index, start);
  }

  /** Returns the events of a row's report, or the error because of which it cannot continue. */
  #apply(row: EngineRow, report: RowReport): RowEvent[] | DarkroomError {
    if ('error' in report) return this.#child.errorOf(report.error);
    row.state = report.state;
    try {
      return report.values.flatMap((value) => [...row.reader.read(value)]).filter((event) => event !== undefined);
    } catch (error) {
      return this.#child.violation((error as Error).message);
    }
  }

  #read<Result>(read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      throw this.#child.violation((error as Error).message);
    }
  }
}
