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
  readonly #workers = new Set<Worker>();
  #stopping = new AbortController();
  #retrying: Promise<void> = Promise.resolve();

  /** Whether any model is served: one may just make room for another. */
  get isReady(): boolean {
    return [...this.#workers].some(({ isReady }) => isReady);
  }

  /** @throws if no model at all can be served. */
  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    const { directories, stopSignal } = this.options;
    const failures = await this.#serveAll(directories);
    stopSignal.throwIfAborted();
    if (failures.size === directories.length)
      throw new AggregateError([...failures.values()], 'no model can be served');
    this.#retrying = this.#keepTrying([...failures.keys()]);
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    const stopAll = (): Promise<unknown> => Promise.all([...this.#workers].map((worker) => worker.stop()));
    await Promise.all([this.#retrying, stopAll()]);
    // One may have come last.
    await stopAll();
    this.#workers.clear();
  }

  async #keepTrying(directories: readonly string[]): Promise<void> {
    const { signal } = this.#stopping;
    for (let left = directories; left.length > 0 && !signal.aborted; left = [...(await this.#serveAll(left)).keys()])
      await delay(this.options.retryMs ?? 30_000, undefined, { signal }).catch(() => {});
  }

  /**
   * One after the other: the first is served sooner, and only one at a time takes the memory that loading takes.
   *
   * @returns what cannot be served, and why.
   */
  async #serveAll(directories: readonly string[]): Promise<Map<string, unknown>> {
    const stopping = AbortSignal.any([this.options.stopSignal, this.#stopping.signal]);
    const failures = new Map<string, unknown>();
    for (const directory of directories)
      if (!stopping.aborted) await this.#serve(directory).catch((error: unknown) => failures.set(directory, error));
    return failures;
  }

  async #serve(directory: string): Promise<void> {
    const { createWorker, stopSignal, log } = this.options;
    let worker: Worker | undefined;
    try {
      worker = await createWorker(directory);
      this.#workers.add(worker);
      await worker.start();
    } catch (error) {
      // It has let go of all it had; another is made for the next try.
      if (worker !== undefined) this.#workers.delete(worker);
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
