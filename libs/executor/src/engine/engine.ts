/**
 * Steps rows until they are done. One turn of the loop lets rows in and then takes one step of each shape that is present,
 * so shapes share the device step by step, whatever the number of their rows. Between two steps the event loop gets its
 * turn: a submit or cancel that came meanwhile takes effect at that boundary.
 */
import { setImmediate } from 'node:timers/promises';
import { DarkroomError, type Pipeline, type PipelineRow, type RowEvent, type RowRequest } from '@darkroom/core';
import type { EngineEvent, RequestEndEvent } from '../executor-event.ts';
import type { EngineStatus, ShutdownOptions } from '../executor.ts';
import { RowTable, type TableRequest, type TableRow } from './row-table.ts';
import { stepRows } from './step-rows.ts';

export interface EngineOptions<Row extends PipelineRow> {
  pipeline: Pipeline<Row>;
  /** Room for rows, in the slots that they take; those beyond wait. */
  maxSlots: number;
  /** A checkpoint of each row every so many of its steps; 0 for none. */
  checkpointEvery?: number;
  /** Gets the events of a step together. The next step waits for its promise: back pressure, so that nothing piles up. */
  onEvents: (events: readonly EngineEvent[]) => void | Promise<void>;
  /** Milliseconds, for `stepMs`. */
  now?: () => number;
}

const unknownError = { code: 'internal', message: 'the engine failed' } as const;

export class Engine<Row extends PipelineRow> {
  readonly #options: Required<EngineOptions<Row>>;
  readonly #table: RowTable<Row>;
  /** Requests that leave at the next boundary. */
  readonly #canceled = new Set<TableRequest<Row>>();
  #events: EngineEvent[] = [];
  #loop: Promise<void> | undefined;
  #isStopping = false;

  /** @throws RangeError if there is no room for a single row. */
  constructor(options: EngineOptions<Row>) {
    const { maxSlots } = options;
    if (!(maxSlots >= 1)) throw new RangeError(`maxSlots must be at least 1, not ${maxSlots}`);
    this.#options = { checkpointEvery: 0, now: () => performance.now(), ...options };
    this.#table = new RowTable(options);
  }

  get status(): EngineStatus {
    return this.#table.status;
  }

  /** Takes requests; one whose id is here already is ignored. */
  submit(requests: readonly RowRequest[]): void {
    if (this.#isStopping) return;
    for (const request of requests) this.#table.add(request);
    // A run that finds nothing has ended before its promise is here, and would never be started again.
    if (!this.#table.isEmpty) this.#loop ??= this.#run();
  }

  /** Takes a request's rows out at the next boundary. */
  cancel(requestId: string): void {
    const owner = this.#table.find(requestId);
    if (owner !== undefined) this.#canceled.add(owner);
  }

  /** Stops after the step under way. The pipeline stays loaded. */
  async stop({ shouldCheckpoint = false }: ShutdownOptions = {}): Promise<void> {
    this.#isStopping = true;
    await this.#loop;
    this.#dropCanceled();
    for (const entry of this.#table.rows) {
      if (shouldCheckpoint && entry.steps > 0 && !entry.owner.hasEnded) this.#emitCheckpoint(entry);
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
    // No await between the last look at the table and here, so no submit can fall between.
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
      // What fits into no empty table would wait for ever.
      const message = `output ${wide.index} takes ${wide.slots} slots, and this worker has room for ${maxSlots}`;
      throw new DarkroomError('invalid_request', 'engine.admit', message);
    } catch (error) {
      this.#fail(owner, error);
    }
  }

  async #takeStep(group: readonly TableRow<Row>[]): Promise<void> {
    const present = group.filter(({ row, owner }) => !owner.hasEnded && !row.isDone);
    if (present.length > 0) {
      const rows = present.map(({ row }) => row);
      // The step may give a row another.
      const { shapeKey } = rows[0]!;
      const { pipeline, now } = this.#options;
      const startedAtMs = now();
      const { modelRows, tokens, events, failures } = await stepRows(pipeline, rows);
      const stepMs = now() - startedAtMs;
      const { slots: tableSlots, waitingRequests } = this.status;
      const counts = { rows: rows.length, modelRows, tableSlots, waitingRequests, stepMs };
      this.#events.push({ type: 'stats', shapeKey, ...counts, ...(tokens !== undefined && { tokens }) });
      this.#dropCanceled();
      for (const { row, owner } of present) if (failures.has(row)) this.#fail(owner, failures.get(row));
      for (const entry of present) {
        if (!entry.owner.hasEnded) this.#reportStep(entry, events.get(entry.row));
      }
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
    // Spreading takes 3 to 25 times as long (Node 20), for each row in each step.
    for (const event of events) this.#events.push(Object.assign({ requestId, index }, event));
    this.#announceLastStep(entry);
    const { checkpointEvery } = this.#options;
    if (checkpointEvery > 0 && entry.steps % checkpointEvery === 0 && !row.isDone) this.#emitCheckpoint(entry);
  }

  /** As soon as only the last step is left, where that is known, for a replacement to be here when the row leaves. */
  #announceLastStep(entry: TableRow<Row>): void {
    const { row, owner } = entry;
    if (row.stepsLeft !== 1 || entry.isReleasing) return;
    entry.isReleasing = true;
    this.#events.push({ type: 'row-releasing', requestId: owner.request.id, index: row.index });
  }

  #emitCheckpoint({ row, owner }: TableRow<Row>): void {
    try {
      const checkpoint = this.#options.pipeline.checkpoint(row);
      this.#events.push({ type: 'checkpoint', requestId: owner.request.id, index: row.index, checkpoint });
    } catch (error) {
      this.#fail(owner, error);
    }
  }

  async #finish(entry: TableRow<Row>): Promise<void> {
    const { row, owner } = entry;
    // What the step said goes out first: an ending takes a while.
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
    // The text of an error that we did not write may hold a path or a prompt.
    const isOurs = DarkroomError.isInstance(error);
    const { code, message } = isOurs ? error : unknownError;
    const cause = isOurs ? undefined : error instanceof Error ? error.stack : String(error);
    this.#end(owner, { type: 'request-failed', requestId: owner.request.id, code, message, ...(cause && { cause }) });
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
