/**
 * The rows in the engine and the requests that wait for slots. First come, first served: no request overtakes an
 * earlier one. Rows of at most one request are partly admitted, so waiting requests hold no latents.
 */
import { groupBy, type NonEmpty, type Pipeline, type PipelineRow, type RowRequest } from '@darkroom/core';
import type { EngineStatus } from '../executor.ts';

/** A request that has not ended. */
export interface TableRequest<Row> {
  readonly request: RowRequest;
  /** Rows not yet in the table; undefined until the pipeline has made them. */
  pending: Row[] | undefined;
  hasEnded: boolean;
}

export interface TableRow<Row> {
  readonly row: Row;
  readonly owner: TableRequest<Row>;
  /** Steps that the row has taken in this engine. */
  steps: number;
  /** Set once the row's last step is announced. */
  isReleasing: boolean;
}

/**
 * The engine's options that the table needs. Each created row is released exactly once, on leaving or without entering.
 */
interface RowTableOptions<Row extends PipelineRow> {
  maxSlots: number;
  pipeline: Pick<Pipeline<Row>, 'release' | 'fitsMemory'>;
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

  /** Appends a request to the queue, unless one with its id is present. */
  add(request: RowRequest): void {
    if (this.#requests.has(request.id)) return;
    const owner: TableRequest<Row> = { request, pending: undefined, hasEnded: false };
    this.#requests.set(request.id, owner);
    this.#waiting.push(owner);
  }

  find(requestId: string): TableRequest<Row> | undefined {
    return this.#requests.get(requestId);
  }

  /** Returns true if the request has no row left, in the table or waiting. */
  isComplete(owner: TableRequest<Row>): boolean {
    return owner.pending?.length === 0 && !this.#rows.some((entry) => entry.owner === owner);
  }

  /** Returns the request whose row enters next, or undefined if none waits or its row does not fit. */
  nextToEnter(): TableRequest<Row> | undefined {
    const [first] = this.#waiting;
    const row = first?.pending?.[0];
    const { maxSlots, pipeline } = this.#options;
    if (this.status.slots + (row?.slots ?? 1) > maxSlots) return undefined;
    if (row === undefined || this.#rows.length === 0) return first;
    const others = this.#rows.map((entry) => entry.row);
    return pipeline.fitsMemory?.(row, others) === false ? undefined : first;
  }

  /** Moves the next row of the first waiting request into the table; returns undefined if it has none. */
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

  /** Groups the rows by shape, the longest present shape first. */
  groups(): NonEmpty<TableRow<Row>>[] {
    return groupBy(this.#rows, ({ row }) => row.shapeKey);
  }
}
