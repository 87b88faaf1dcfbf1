/**
 * Which rows are in the engine, and who waits for room. First come, first served by request: a request's rows enter as
 * room comes up, and no later request overtakes them. Only one request is ever partly inside, so what waits is requests
 * and not rows with their latents.
 */
import { groupBy, type Pipeline, type PipelineRow, type RowRequest } from '@darkroom/core';
import type { EngineStatus } from '../executor.ts';

/** A request, until it has ended. */
export interface TableRequest<Row> {
  readonly request: RowRequest;
  /** Rows not yet in the table; undefined until the pipeline has made them. */
  pending: Row[] | undefined;
  hasEnded: boolean;
}

export interface TableRow<Row> {
  readonly row: Row;
  readonly owner: TableRequest<Row>;
  /** That it has taken here. */
  steps: number;
  /** It was said that its last step comes. */
  isReleasing: boolean;
}

/** Of the engine's. Each row that the table was given is released once, when it leaves or will never enter. */
interface RowTableOptions<Row extends PipelineRow> {
  maxSlots: number;
  pipeline: Pick<Pipeline<Row>, 'release' | 'hasRoomFor'>;
}

export class RowTable<Row extends PipelineRow> {
  readonly #options: RowTableOptions<Row>;
  readonly #requests = new Map<string, TableRequest<Row>>();
  #waiting: TableRequest<Row>[] = [];
  #rows: TableRow<Row>[] = [];

  constructor(options: RowTableOptions<Row>) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#requests.size === 0;
  }

  get rows(): readonly TableRow<Row>[] {
    return this.#rows;
  }

  get status(): EngineStatus {
    let slots = 0;
    for (const { row } of this.#rows) slots += row.slots;
    return { slots, waitingRequests: this.#waiting.length };
  }

  /** Puts a request at the end of the line, unless one with its id is here. */
  add(request: RowRequest): void {
    if (this.#requests.has(request.id)) return;
    const owner: TableRequest<Row> = { request, pending: undefined, hasEnded: false };
    this.#requests.set(request.id, owner);
    this.#waiting.push(owner);
  }

  find(requestId: string): TableRequest<Row> | undefined {
    return this.#requests.get(requestId);
  }

  /** Whether the request has no row left, here or waiting. */
  isComplete(owner: TableRequest<Row>): boolean {
    return owner.pending?.length === 0 && !this.#rows.some((entry) => entry.owner === owner);
  }

  /** The request whose rows enter next, if there is one and room for a row of it. */
  nextToEnter(): TableRequest<Row> | undefined {
    const [first] = this.#waiting;
    const row = first?.pending?.[0];
    const { maxSlots, pipeline } = this.#options;
    if (this.status.slots + (row?.slots ?? 1) > maxSlots) return undefined;
    if (row === undefined || this.#rows.length === 0) return first;
    const others = this.#rows.map((entry) => entry.row);
    return pipeline.hasRoomFor?.(row, others) === false ? undefined : first;
  }

  /** Moves the next row of the first waiting request into the table; undefined if that request has none. */
  enter(owner: TableRequest<Row>): TableRow<Row> | undefined {
    const row = owner.pending?.shift();
    if (owner.pending?.length === 0) this.#waiting.shift();
    if (row === undefined) return undefined;
    const entry = { row, owner, steps: 0, isReleasing: false };
    this.#rows.push(entry);
    return entry;
  }

  leave(entry: TableRow<Row>): void {
    this.#rows = this.#rows.filter((candidate) => candidate !== entry);
    this.#options.pipeline.release(entry.row);
  }

  remove(owner: TableRequest<Row>): void {
    owner.hasEnded = true;
    this.#requests.delete(owner.request.id);
    this.#waiting = this.#waiting.filter((waiting) => waiting !== owner);
    const pending = owner.pending?.splice(0) ?? [];
    for (const entry of this.#rows) if (entry.owner === owner) this.leave(entry);
    for (const row of pending) this.#options.pipeline.release(row);
  }

  clear(): void {
    for (const owner of this.#requests.values()) this.remove(owner);
  }

  /** The rows by shape, the shape that has been here longest first. */
  groups(): TableRow<Row>[][] {
    return groupBy(this.#rows, ({ row }) => row.shapeKey);
  }
}
