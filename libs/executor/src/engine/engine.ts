/**
 * Steps rows until they are done. Each tick admits rows, then takes one step of each shape, so shapes share the device
 * evenly whatever their numbers of rows. Between steps the event loop runs: a submit or cancel takes effect there.
 */
import { setImmediate } from 'node:timers/promises';
import { inspect } from 'node:util';
import {
  DarkroomError,
  type Pipeline,
  type PipelineRow,
  isNonEmpty,
  mapNonEmpty,
  type NonEmpty,
  type RowCheckpoint,
  type RowEvent,
  type RowRequest,
} from '@darkroom/core';
import type { EngineEvent, RequestEndEvent } from '../executor-event.ts';
import type { EngineStatus, ShutdownOptions } from '../executor.ts';
import { RowTable, type TableRequest, type TableRow } from './row-table.ts';
import { stepRows } from './step-rows.ts';

/** A pipeline, in this process or in another one, whose checkpoints take a call. A row may have none. */
export type SteppedPipeline<Row extends PipelineRow> = Omit<Pipeline<Row>, 'checkpoint'> & {
  checkpoint(row: Row): RowCheckpoint | undefined | Promise<RowCheckpoint | undefined>;
};

export interface EngineOptions<Row extends PipelineRow> {
  pipeline: SteppedPipeline<Row>;
  /** Capacity in slots; rows beyond it wait. */
  maxSlots: number;
  /** Emits a checkpoint of each row every this many of its steps; 0 disables them. */
  checkpointEvery?: number;
  /** Receives the events of a step together. The next step awaits its promise, which gives back pressure. */
  onEvents: (events: readonly EngineEvent[]) => void | Promise<void>;
  /** Clock for `stepMs`, ms. */
  now?: () => number;
}

const unknownError = { code: 'internal', message: 'the engine failed' } as const;

export class Engine<Row extends PipelineRow> {
  readonly #options: Required<EngineOptions<Row>>;
  readonly #table: RowTable<Row>;
  /** Requests to remove before the next step. */
  readonly #canceled = new Set<TableRequest<Row>>();
  #events: EngineEvent[] = [];
  #loop: Promise<void> | undefined;
  #isStopping = false;

  /** @throws RangeError if `maxSlots` is below 1. */
  constructor(options: EngineOptions<Row>) {
    const { maxSlots } = options;
    if (!(maxSlots >= 1)) throw new RangeError(`maxSlots must be at least 1, not ${maxSlots}`);
    this.#options = { checkpointEvery: 0, now: () => performance.now(), ...options };
    this.#table = new RowTable(options);
  }

  get status(): EngineStatus {
    return this.#table.status;
  }

  /** Queues requests; ignores one whose id is already present. */
  submit(requests: readonly RowRequest[]): void {
    if (this.#isStopping) return;
    for (const request of requests) this.#table.add(request);
    // With an empty table `#run()` would end before its promise is assigned, and block every later start.
    if (!this.#table.isEmpty) this.#loop ??= this.#run();
  }

  /** Removes the request's rows before the next step. */
  cancel(requestId: string): void {
    const owner = this.#table.find(requestId);
    if (owner !== undefined) this.#canceled.add(owner);
  }

  /** Stops after the current step. The pipeline stays loaded. */
  async stop({ shouldCheckpoint = false }: ShutdownOptions = {}): Promise<void> {
    this.#isStopping = true;
    await this.#loop;
    this.#dropCanceled();
    for (const entry of this.#table.rows) {
      if (shouldCheckpoint && entry.steps > 0 && !entry.owner.hasEnded) await this.#emitCheckpoint(entry);
    }
    this.#table.clear();
    await this.#flush();
  }

  async #run(): Promise<void> {
    while (!this.#table.isEmpty && !this.#isStopping) {
      this.#dropCanceled();
      await this.#admit();
      await this.#flush();
      for (const group of this.#table.groups()) {
        if (this.#isStopping) break;
        await this.#takeStep(group);
        await this.#flush();
        await setImmediate();
        this.#dropCanceled();
        await this.#flush();
      }
    }
    // No await separates the last check of the table from this line, so no submit can be missed.
    this.#loop = undefined;
  }

  async #admit(): Promise<void> {
    let hasCreated = false;
    for (let owner = this.#table.nextToEnter(); owner !== undefined; owner = this.#table.nextToEnter()) {
      if (owner.pending === undefined) {
        hasCreated = true;
        await this.#create(owner);
        continue;
      }
      const entry = this.#table.enter(owner);
      if (entry === undefined) this.#endIfComplete(owner);
      else this.#announceLastStep(entry);
    }
    if (hasCreated) await this.#options.pipeline.settle();
  }

  async #create(owner: TableRequest<Row>): Promise<void> {
    const { pipeline, maxSlots } = this.#options;
    try {
      owner.pending = await pipeline.createRows(owner.request);
      const wide = owner.pending.find(({ slots }) => slots > maxSlots);
      if (wide === undefined) return;
      // A row that exceeds an empty table would wait forever.
      const message = `output ${wide.index} takes ${wide.slots} slots, and this worker has room for ${maxSlots}`;
      throw new DarkroomError('invalid_request', 'engine.admit', message);
    } catch (error) {
      this.#fail(owner, error);
    }
  }

  async #takeStep(group: NonEmpty<TableRow<Row>>): Promise<void> {
    const present = group.filter(({ row, owner }) => !owner.hasEnded && !row.isDone);
    if (isNonEmpty(present)) {
      const rows = mapNonEmpty(present, ({ row }) => row);
      // Read it before the step, which may change a row's shape.
      const { shapeKey } = rows[0];
      const { pipeline, now } = this.#options;
      const startedAtMs = now();
      const { modelRows, tokens, events, failures } = await stepRows(pipeline, rows);
      const stepMs = now() - startedAtMs;
      const { slots: tableSlots, waitingRequests } = this.status;
      const counts = { rows: rows.length, modelRows, tableSlots, waitingRequests, stepMs };
      this.#events.push({ type: 'stats', shapeKey, ...counts, ...(tokens !== undefined && { tokens }) });
      this.#dropCanceled();
      for (const { row, owner } of present) if (failures.has(row)) this.#fail(owner, failures.get(row));
      const reported = present.filter(({ owner }) => !owner.hasEnded);
      for (const entry of reported) this.#reportStep(entry, events.get(entry.row));
      // Together: an engine in another process is called for all of them, and waited for once.
      await Promise.all(
        reported.filter((entry) => this.#isCheckpointDue(entry)).map((entry) => this.#emitCheckpoint(entry)),
      );
    }
    for (const entry of group) {
      if (!entry.owner.hasEnded && entry.row.isDone) await this.#finish(entry);
    }
  }

  #reportStep(entry: TableRow<Row>, events: readonly RowEvent[] = []): void {
    const { row, owner } = entry;
    const { index } = row;
    entry.steps += 1;
    const requestId = owner.request.id;
    // Spreading is 3 to 25 times slower (Node 20), and this runs for each row in each step.
    for (const event of events) this.#events.push(Object.assign({ requestId, index }, event));
    this.#announceLastStep(entry);
  }

  #isCheckpointDue({ row, steps }: TableRow<Row>): boolean {
    const { checkpointEvery } = this.#options;
    return checkpointEvery > 0 && steps % checkpointEvery === 0 && !row.isDone;
  }

  /** Announces a row's last step, where its steps are known, so that a replacement is present when it leaves. */
  #announceLastStep(entry: TableRow<Row>): void {
    const { row, owner } = entry;
    if (row.stepsLeft !== 1 || entry.isReleasing) return;
    entry.isReleasing = true;
    this.#events.push({ type: 'row-releasing', requestId: owner.request.id, index: row.index });
  }

  async #emitCheckpoint({ row, owner }: TableRow<Row>): Promise<void> {
    try {
      const checkpoint = await this.#options.pipeline.checkpoint(row);
      if (checkpoint === undefined || owner.hasEnded) return;
      this.#events.push({ type: 'checkpoint', requestId: owner.request.id, index: row.index, checkpoint });
    } catch (error) {
      this.#fail(owner, error);
    }
  }

  async #finish(entry: TableRow<Row>): Promise<void> {
    const { row, owner } = entry;
    // Flush the step's events first: finishing a row (such as decoding) takes a while.
    await this.#flush();
    try {
      const output = await this.#options.pipeline.finish(row);
      if (this.#canceled.has(owner)) return;
      this.#table.leave(entry);
      this.#events.push({ type: 'output', requestId: owner.request.id, index: row.index, output });
      this.#endIfComplete(owner);
    } catch (error) {
      this.#fail(owner, error);
    }
  }

  #endIfComplete(owner: TableRequest<Row>): void {
    if (this.#table.isComplete(owner)) this.#end(owner, { type: 'request-done', requestId: owner.request.id });
  }

  #dropCanceled(): void {
    for (const owner of this.#canceled) this.#end(owner, { type: 'request-canceled', requestId: owner.request.id });
    this.#canceled.clear();
  }

  #fail(owner: TableRequest<Row>, error: unknown): void {
    // The message of a foreign error may contain a path or a prompt, so clients do not get it.
    const isOurs = DarkroomError.isInstance(error);
    const { code, message } = isOurs ? error : unknownError;
    const requestId = owner.request.id;
    // An engine in another process may be at fault, so the request can be retried.
    if (isOurs && code === 'unavailable')
      return this.#end(owner, { type: 'request-lost', requestId, message, ...(error.stack && { stack: error.stack }) });
    // What a request got wrong is no trouble of the engine's, and its message says all.
    const reason = !isOurs ? error : code === 'invalid_request' ? undefined : error.cause;
    const cause = reason instanceof Error ? reason.stack : reason === undefined ? undefined : inspect(reason);
    this.#end(owner, { type: 'request-failed', requestId, code, message, ...(cause && { cause }) });
  }

  #end(owner: TableRequest<Row>, event: RequestEndEvent): void {
    if (owner.hasEnded) return;
    this.#table.remove(owner);
    this.#events.push(event);
  }

  #flush(): void | Promise<void> {
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    return this.#options.onEvents(events);
  }
}
