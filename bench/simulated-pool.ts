/**
 * Simulated pool of workers: sends the Redis commands of its workers, batch-former, APIs and janitors, with the store's
 * own functions and batch sizes, over separate connections per worker. Time is simulated: commands due in the same few
 * milliseconds are sent together, and the next ones after all replies.
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

/** Work of a worker's rows. */
export interface Work {
  /** Simulated time between two writes of a worker, ms. */
  stepMs: number;
  /** Steps of a row. */
  steps: number;
  /** Returns the writes of a row in a step, from 1. `isSecond`: the worker's first step of a second. */
  stepWrites: (delivery: Delivery, step: number, isSecond: boolean) => RequestWrite[];
  /** Returns the writes of the output, in a separate call after the last step. */
  endWrites: (delivery: Delivery) => RequestWrite[];
}

export interface PoolOptions {
  url: string;
  workers: number;
  /** Rows per worker. */
  rows: number;
  work: Work;
  isFollowed: boolean;
  /** Waiting requests, in addition to running ones. */
  waiting: number;
}

interface SimulatedWorker {
  store: StoreConnection;
  inbox: WorkerInbox;
  identity: WorkerIdentity;
  rows: { delivery: Delivery; step: number }[];
  batches: number;
}

const model = 'tiny';
const prefix = 'bench';
/** Simulated tick, about as long as one pass of the batch-former. */
const tickMs = 5;
const heartbeatMs = 1000;
const sweepMs = 500;
const janitors = 2;
/** Timeout of an inbox read; a busy worker reads again only after a message. */
const inboxWaitS = 3600;

export class SimulatedPool {
  readonly #options: PoolOptions;
  readonly #workers: SimulatedWorker[] = [];
  readonly #clients: SimulatedClients;
  readonly #former: BatchFormer;
  /** Connection of the batch-former and the janitors. */
  readonly store: StoreConnection;
  readonly #wakeups: EventHub;
  #isClosed = false;
  #nowMs = 0;
  /** Requests that have ended. */
  ended = 0;
  /** Write calls of workers. */
  calls = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#clients = new SimulatedClients({ ...options, prefix, model });
    this.store = connectStore({ ...options, prefix });
    this.#wakeups = createEventHub(this.store);
    const policy = { maxSize: options.rows, timeoutMs: 0 };
    this.#former = new BatchFormer({ store: this.store, wakeups: this.#wakeups, policy, log: silentLogger() });
  }

  /** Fills the pool: all rows run, at random steps, and requests wait. */
  async fill(): Promise<void> {
    const { url, workers, rows, waiting, work } = this.#options;
    for (let index = 0; index < workers; index++) {
      const store = connectStore({ url, prefix });
      const identity = await seedWorker(store, { model, workerId: `w${index}`, capacity: rows });
      this.#workers.push({ store, identity, inbox: openInbox(store, () => identity), rows: [], batches: 0 });
      void this.#receive(this.#workers.at(-1)!);
    }
    await this.#wakeups.listen(model, () => {});
    for (let left = workers * rows + waiting; left > 0; left -= 200)
      await Promise.all(Array.from({ length: Math.min(200, left) }, () => this.#clients.submit(0)));
    await this.#former.runOnce(model);
    const { running } = await readStats(this.store, model);
    if (running < workers * rows) throw new Error(`only ${running} rows run`);
    await this.run(work.stepMs);
    for (const worker of this.#workers)
      for (const row of worker.rows) row.step = Math.floor(Math.random() * (work.steps - 1));
  }

  /** Runs the pool for this simulated time. */
  async run(ms: number): Promise<void> {
    for (const endMs = this.#nowMs + ms; this.#nowMs < endMs; this.#nowMs += tickMs) {
      await Promise.all([
        ...this.#clients.upkeep(this.#nowMs, this.#nowMs + tickMs),
        ...this.#due(this.#options.work.stepMs).map((worker) => this.#step(worker)),
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

  /** Returns the workers that are due in this tick; workers are spread over the interval. */
  #due(everyMs: number): SimulatedWorker[] {
    const from = ((this.#nowMs % everyMs) * this.#workers.length) / everyMs;
    const count = (tickMs * this.#workers.length) / everyMs;
    return this.#workers.slice(Math.round(from), Math.round(from + count));
  }

  async #step(worker: SimulatedWorker): Promise<void> {
    const { stepWrites, endWrites, steps, stepMs } = this.#options.work;
    const isSecond = this.#nowMs % 1000 < stepMs;
    const writes = worker.rows.flatMap((row) => stepWrites(row.delivery, ++row.step, isSecond));
    await this.#write(worker, writes);
    const done = worker.rows.filter(({ step }) => step >= steps);
    worker.rows = worker.rows.filter(({ step }) => step < steps);
    for (const { delivery } of done) {
      await this.#write(worker, endWrites(delivery));
      this.ended += 1;
      await Promise.all([this.#clients.fetch(delivery.id), this.#clients.submit(this.#nowMs)]);
    }
  }

  async #write({ store, identity, ...worker }: SimulatedWorker, writes: RequestWrite[]): Promise<void> {
    if (writes.length === 0) return;
    this.calls += 1;
    const outcomes = await writeBatch(store, identity, writes, { batch: this.calls });
    const refused = outcomes.find((outcome) => outcome !== 'written' && outcome !== 'finished');
    if (refused !== undefined) throw new Error(`a write of ${worker.rows.length} rows returned "${refused}"`);
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
            worker.rows.push({ delivery: { id: envelope.id, token }, step: 0 });
    }
  }
}
