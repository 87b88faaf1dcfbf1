import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BaseService, type Logger } from '@darkroom/service';
import type { Worker } from '../worker.ts';

export interface ModelWorkersOptions {
  /** One model each. */
  directories: readonly string[];
  /** Reads a model; rejects, and has told the system why, if it cannot be served. */
  createWorker: (directory: string) => Promise<Worker>;
  stopSignal: AbortSignal;
  log: Logger;
  /** The pause before what could not be read is read again; a failure is not shown for much longer. */
  retryMs?: number;
}

/** One worker for each of several models, in one process. What cannot be read is tried again and again, and the others serve. */
export class ModelWorkers extends BaseService<ModelWorkersOptions> {
  readonly #workers: Worker[] = [];
  #stopping = new AbortController();
  #retrying: Promise<void>[] = [];

  /** Whether any model is served: one may just make room for another. */
  get isReady(): boolean {
    return this.#workers.some(({ isReady }) => isReady);
  }

  /** @throws if no model at all can be served. */
  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    const { directories } = this.options;
    const failures = new Map<string, unknown>();
    // One after the other: the first is served sooner, and only one at a time takes the memory that loading takes.
    for (const directory of directories) {
      this.options.stopSignal.throwIfAborted();
      await this.#serve(directory).catch((error: unknown) => failures.set(directory, error));
    }
    if (failures.size === directories.length)
      throw new AggregateError([...failures.values()], 'no model can be served');
    this.#retrying = [...failures.keys()].map((directory) => this.#keepTrying(directory));
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all([...this.#retrying, ...this.#workers.map((worker) => worker.stop())]);
    // One may have come last.
    await Promise.all(this.#workers.splice(0).map((worker) => worker.stop()));
  }

  async #keepTrying(directory: string): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await delay(this.options.retryMs ?? 30_000, undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      const isServed = await this.#serve(directory).then(
        () => true,
        () => false,
      );
      if (isServed) return;
    }
  }

  async #serve(directory: string): Promise<void> {
    const { createWorker, stopSignal, log } = this.options;
    try {
      const worker = await createWorker(directory);
      this.#workers.push(worker);
      await worker.start();
    } catch (error) {
      if (!stopSignal.aborted) log.error({ model: basename(directory), err: error }, 'cannot be served');
      throw error;
    }
  }
}

const longestName = 64;

/** The id of the worker of one model among several: unique where `workerId` is. */
export function workerIdOf(workerId: string, model: string): string {
  const name = `${workerId}-${model}`;
  if (name.length <= longestName) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 12);
  return `${name.slice(0, longestName - digest.length - 1)}-${digest}`;
}
