import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { BaseService, type Logger } from '@darkroom/service';
import type { RestartableWorker } from './restartable-worker.ts';

export interface ModelWorkersOptions {
  /** One model each. */
  directories: readonly string[];
  createWorker: (directory: string) => RestartableWorker;
  stopSignal: AbortSignal;
  log: Logger;
  /** Pause before unreadable models are tried again, ms; a reported failure expires not much later. */
  retryMs?: number;
}

/** One worker per model directory, in one process. Retries models that cannot be read while the others serve. */
export class ModelWorkers extends BaseService<ModelWorkersOptions> {
  readonly #workers = new Set<RestartableWorker>();
  #stopping = new AbortController();
  #retrying: Promise<void> = Promise.resolve();

  /** True if any model is served; all of them need not be loaded at once. */
  get isReady(): boolean {
    return [...this.#workers].some(({ isReady }) => isReady);
  }

  /** @throws if no model can be served. */
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
    // A retry may have added a worker meanwhile.
    await stopAll();
    this.#workers.clear();
  }

  async #keepTrying(directories: readonly string[]): Promise<void> {
    const { signal } = this.#stopping;
    for (let left = directories; left.length > 0 && !signal.aborted; left = [...(await this.#serveAll(left)).keys()])
      await delay(this.options.retryMs ?? 30_000, undefined, { signal }).catch(() => {});
  }

  /**
   * Starts the workers one after the other, so that the first serves sooner and only one needs the memory of a load.
   *
   * @returns the directories that cannot be served, with the error.
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
    const worker = createWorker(directory);
    this.#workers.add(worker);
    try {
      await worker.start();
    } catch (error) {
      // The failed worker has released everything; the next try creates another one.
      this.#workers.delete(worker);
      if (!stopSignal.aborted) log.error({ model: basename(directory), err: error }, 'could not serve model');
      throw error;
    }
  }
}

const maxIdLength = 64;

/** Returns the worker id for one of several models, unique if `workerId` is. */
export function workerIdOf(workerId: string, model: string): string {
  const name = `${workerId}-${model}`;
  if (name.length <= maxIdLength) return name;
  const digest = createHash('sha256').update(name).digest('hex').slice(0, 12);
  return `${name.slice(0, maxIdLength - digest.length - 1)}-${digest}`;
}
