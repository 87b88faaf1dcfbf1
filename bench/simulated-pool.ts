/**
 * A pool of workers with stand-in engines, and all that workers, former, APIs and janitors of such a pool ask Redis in a second: by
 * the store's own functions, as much in one call as they put there, each worker over connections of its own. Time is
 * simulated: what is due in the same few milliseconds is asked at once, and the next are begun when all is answered.
 */
import {
  connectStore,
  createEventHub,
  type Delivery,
  type EventHub,
  expireRequests,
  heartbeatWorker,
  openInbox,
  readStats,
  type RequestWrite,
  type StoreConnection,
  sweepWorkers,
  type WorkerIdentity,
  type WorkerInbox,
  writeBatch,
} from '@darkroom/store';
import { seedWorker, silentLogger } from '@darkroom/testing';
import { BatchFormer } from '../apps/batch-former/src/batch-former.ts';
import { SimulatedClients } from './simulated-clients.ts';

/** What the rows of a worker do. */
export interface Work {
  /** Simulated time between two calls of a worker, ms. */
  turnMs: number;
  /** Of a row. */
  turns: number;
  /** What a row says in its turn `turn`, from 1. `isSecond`: it is the worker's first of a second. */
  saying: (delivery: Delivery, turn: number, isSecond: boolean) => RequestWrite[];
  /** What follows in a call of its own when its output is there. */
  ending: (delivery: Delivery) => RequestWrite[];
}

export interface PoolOptions {
  url: string;
  workers: number;
  /** Of each worker. */
  rows: number;
  work: Work;
  isFollowed: boolean;
  /** Requests that wait, besides those that run. */
  waiting: number;
}

interface SimulatedWorker {
  store: StoreConnection;
  inbox: WorkerInbox;
  identity: WorkerIdentity;
  rows: { delivery: Delivery; turn: number }[];
  batches: number;
}

const model = 'tiny';
const prefix = 'bench';
/** About what a former's own turn takes. */
const tickMs = 5;
const heartbeatMs = 1000;
const sweepMs = 500;
const janitors = 2;
/** A busy worker's inbox is asked again when something came. */
const inboxWaitS = 3600;

export class SimulatedPool {
  readonly #options: PoolOptions;
  readonly #workers: SimulatedWorker[] = [];
  readonly #clients: SimulatedClients;
  readonly #former: BatchFormer;
  /** Of former and janitors. */
  readonly store: StoreConnection;
  readonly #wakeups: EventHub;
  #isClosed = false;
  #nowMs = 0;
  /** Requests that have ended. */
  ended = 0;
  /** Calls of workers. */
  calls = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#clients = new SimulatedClients({ ...options, prefix, model });
    this.store = connectStore({ ...options, prefix });
    this.#wakeups = createEventHub(this.store);
    const policy = { maxSize: options.rows, timeoutMs: 0, isBatching: true, maxAttempts: 3, lookahead: 0 };
    this.#former = new BatchFormer({ store: this.store, wakeups: this.#wakeups, policy, log: silentLogger() });
  }

  /** Until all rows run, each at another place of its way, and others wait. */
  async fill(): Promise<void> {
    const { url, workers, rows, waiting, work } = this.#options;
    for (let index = 0; index < workers; index++) {
      const store = connectStore({ url, prefix });
      const identity = await seedWorker(store, { model, workerId: `w${index}`, capacity: rows });
      this.#workers.push({ store, identity, inbox: openInbox(store, identity), rows: [], batches: 0 });
      void this.#receive(this.#workers.at(-1)!);
    }
    await this.#wakeups.listen(model, () => {});
    for (let left = workers * rows + waiting; left > 0; left -= 200)
      await Promise.all(Array.from({ length: Math.min(200, left) }, () => this.#clients.submit(0)));
    await this.#former.runOnce(model);
    const { running } = await readStats(this.store, model);
    if (running < workers * rows) throw new Error(`only ${running} rows run`);
    await this.run(work.turnMs);
    for (const worker of this.#workers)
      for (const row of worker.rows) row.turn = Math.floor(Math.random() * (work.turns - 1));
  }

  /** All that is asked in this time. */
  async run(ms: number): Promise<void> {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; this.#nowMs += tickMs) {
      await Promise.all([
        ...this.#clients.upkeep(this.#nowMs, this.#nowMs + tickMs),
        ...this.#due(this.#options.work.turnMs).map((worker) => this.#turn(worker)),
        ...this.#due(heartbeatMs).map((worker) => this.#beat(worker)),
        ...(this.#nowMs % sweepMs === 0 ? this.#sweep() : []),
      ]);
      await this.#former.runOnce(model);
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wakeups.close();
    for (const { inbox, store } of this.#workers) {
      inbox.close();
      await store.close();
    }
    await this.#clients.close();
    await this.store.close();
  }

  /** Those whose turn falls into this tick: spread over the interval. */
  #due(everyMs: number): SimulatedWorker[] {
    const from = ((this.#nowMs % everyMs) * this.#workers.length) / everyMs;
    const count = (tickMs * this.#workers.length) / everyMs;
    return this.#workers.slice(Math.round(from), Math.round(from + count));
  }

  async #turn(worker: SimulatedWorker): Promise<void> {
    const { saying, ending, turns, turnMs } = this.#options.work;
    const isSecond = this.#nowMs % 1000 < turnMs;
    const said = worker.rows.flatMap((row) => saying(row.delivery, ++row.turn, isSecond));
    await this.#write(worker, said);
    const done = worker.rows.filter(({ turn }) => turn >= turns);
    worker.rows = worker.rows.filter(({ turn }) => turn < turns);
    for (const { delivery } of done) {
      await this.#write(worker, ending(delivery));
      this.ended += 1;
      await Promise.all([this.#clients.fetch(delivery.id), this.#clients.submit(this.#nowMs)]);
    }
  }

  async #write({ store, identity, ...worker }: SimulatedWorker, writes: RequestWrite[]): Promise<void> {
    if (writes.length === 0) return;
    this.calls += 1;
    const outcomes = await writeBatch(store, identity, writes, { batch: this.calls });
    const refused = outcomes.find((outcome) => outcome !== 'written' && outcome !== 'finished');
    if (refused !== undefined) throw new Error(`a write of ${worker.rows.length} rows is ${refused}`);
  }

  async #beat({ store, identity, inbox: { lastRead } }: SimulatedWorker): Promise<void> {
    const pace = { costMs: { fast: 1, slow: 2 }, stepMs: { fast: 10, slow: 20 }, remainingCost: 4 };
    await heartbeatWorker(store, identity, { lastRead, pace });
  }

  #sweep(): Promise<unknown>[] {
    return Array.from({ length: janitors }, async () => {
      await sweepWorkers(this.store, model, { intervalMs: 0.9 * sweepMs, missedSweeps: 1000 });
      await expireRequests(this.store, model);
    });
  }

  async #receive(worker: SimulatedWorker): Promise<void> {
    while (!this.#isClosed) {
      const messages = await worker.inbox.next(inboxWaitS).catch(() => []);
      for (const message of messages)
        if (message.type === 'run')
          for (const { token, envelope } of message.requests)
            worker.rows.push({ delivery: { id: envelope.id, token }, turn: 0 });
    }
  }
}
