/**
 * Which rows are in the engine, and who waits for room. First come, first served by request: a request's rows enter as
 * room comes up, and no later request overtakes them. Only one request is ever partly inside, so what waits is requests
 * and not rows with their latents.
 */
import type { PipelineRow, RowRequest } from '@darkroom/core';

/** A request that has not ended. */
export interface TableRequest<Row> {
  readonly request: RowRequest;
  /** Rows not yet in the table; undefined until the pipeline has made them. */
  pending: Row[] | undefined;
  /** Rows in the table. */
  active: number;
  /** Cancel was asked for; it leaves at the next boundary. */
  isCanceled: boolean;
  hasEnded: boolean;
}

/** A row in the table. */
export interface TableRow<Row> {
  readonly row: Row;
  readonly owner: TableRequest<Row>;
  /** That it has taken here. */
  steps: number;
  /** It was said that its last step comes. */
  isReleasing: boolean;
}

export interface RowTableOptions<Row> {
  /** Room for rows, in the slots that they take; those beyond wait. */
  maxSlots: number;
  /** Called once for each row that the table was given, when it leaves or will never enter. */
  release: (row: Row) => void;
}

/** The rows of one engine. */
export class RowTable<Row extends PipelineRow> {
  readonly #options: RowTableOptions<Row>;
  readonly #requests = new Map<string, TableRequest<Row>>();
  #waiting: TableRequest<Row>[] = [];
  #rows: TableRow<Row>[] = [];

  constructor(options: RowTableOptions<Row>) {
    this.#options = options;
  }

  /** Requests that have not ended. */
  get requestCount(): number {
    return this.#requests.size;
  }

  /** Requests with at least one row that is not in the table. */
  get waitingRequests(): number {
    return this.#waiting.length;
  }

  get rows(): readonly TableRow<Row>[] {
    return this.#rows;
  }

  /** What the rows in the table take. */
  get slots(): number {
    return this.#rows.reduce((sum, { row }) => sum + row.slots, 0);
  }

  /** Puts a request at the end of the line, unless one with its id is here. */
  add(request: RowRequest): void {
    if (this.#requests.has(request.id)) return;
    const owner: TableRequest<Row> = { request, pending: undefined, active: 0, isCanceled: false, hasEnded: false };
    this.#requests.set(request.id, owner);
    this.#waiting.push(owner);
  }

  find(requestId: string): TableRequest<Row> | undefined {
    return this.#requests.get(requestId);
  }

  canceled(): TableRequest<Row>[] {
    return [...this.#requests.values()].filter(({ isCanceled }) => isCanceled);
  }

  /** The request whose rows enter next, if there is one and room for a row of it. */
  nextToEnter(): TableRequest<Row> | undefined {
    const [first] = this.#waiting;
    const slots = first?.pending?.[0]?.slots ?? 1;
    return this.slots + slots <= this.#options.maxSlots ? first : undefined;
  }

  /** Moves the first waiting request's rows into the table, as many as there is room for. */
  enter(owner: TableRequest<Row>): TableRow<Row>[] {
    const pending = owner.pending ?? [];
    const entering: TableRow<Row>[] = [];
    let room = this.#options.maxSlots - this.slots;
    while (pending[0] !== undefined && pending[0].slots <= room) {
      const row = pending.shift()!;
      room -= row.slots;
      entering.push({ row, owner, steps: 0, isReleasing: false });
    }
    owner.active += entering.length;
    this.#rows.push(...entering);
    if (pending.length === 0) this.#waiting = this.#waiting.filter((waiting) => waiting !== owner);
    return entering;
  }

  /** Takes a finished row out. */
  leave(entry: TableRow<Row>): void {
    this.#rows = this.#rows.filter((candidate) => candidate !== entry);
    entry.owner.active -= 1;
    this.#options.release(entry.row);
  }

  /** Takes a request out with all it has. */
  remove(owner: TableRequest<Row>): void {
    const rows = this.#rows.filter((entry) => entry.owner === owner).map(({ row }) => row);
    rows.push(...(owner.pending?.splice(0) ?? []));
    owner.hasEnded = true;
    owner.active = 0;
    this.#requests.delete(owner.request.id);
    this.#waiting = this.#waiting.filter((waiting) => waiting !== owner);
    this.#rows = this.#rows.filter((entry) => entry.owner !== owner);
    for (const row of rows) this.#options.release(row);
  }

  /** Takes out all there is. */
  clear(): void {
    for (const owner of this.#requests.values()) this.remove(owner);
  }

  /** The rows by shape, the shape that has been here longest first. */
  groups(): TableRow<Row>[][] {
    const groups = new Map<string, TableRow<Row>[]>();
    for (const entry of this.#rows) {
      const group = groups.get(entry.row.shapeKey);
      if (group === undefined) groups.set(entry.row.shapeKey, [entry]);
      else group.push(entry);
    }
    return [...groups.values()];
  }
}
