import { setTimeout as delay } from 'node:timers/promises';
import { DarkroomError } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import { clearLoadFailure, reportLoadFailure, type StoreConnection } from '@darkroom/store';

/** Lifetime of a reported failure after the last try; a supervisor retries sooner. */
const failureTtlMs = 60_000;
/** An unavailable Redis must not keep the process from exiting. */
const reportTimeoutMs = 2000;

export interface LoadWatchOptions {
  store: StoreConnection;
  model: string;
  host: string;
  /** Once aborted, a failing load counts as interrupted and is not reported. */
  stopSignal?: AbortSignal;
  log: Logger;
}

/** Reports load failures to the system. A worker that cannot load its model does not register, so nothing else does. */
export class LoadWatch {
  readonly #options: LoadWatchOptions;

  constructor(options: LoadWatchOptions) {
    this.#options = options;
  }

  /** Runs a part of the load. Rethrows its error, and reports it unless `stopping` was aborted: it ended the load. */
  async watch<Result>(load: () => Promise<Result>, stopping?: AbortSignal): Promise<Result> {
    const { store, model, host, stopSignal } = this.#options;
    try {
      return await load();
    } catch (error) {
      const failure = { reason: reasonOf(error), shownMs: failureTtlMs };
      const isInterrupted = stopSignal?.aborted === true || stopping?.aborted === true;
      if (!isInterrupted) await this.#publish(reportLoadFailure(store, { model, host }, failure));
      throw error;
    }
  }

  /** Reports why the load cannot complete for now; it continues. */
  reportWaiting(reason: string): void {
    const { store, model, host, log } = this.#options;
    log.warn({ reason }, 'model not ready yet');
    void this.#publish(reportLoadFailure(store, { model, host }, { reason, shownMs: failureTtlMs }));
  }

  /** Clears the reported failure: the model is loaded. */
  clear(): Promise<void> {
    const { store, model, host } = this.#options;
    return this.#publish(clearLoadFailure(store, { model, host }));
  }

  async #publish(writing: Promise<void>): Promise<void> {
    try {
      await Promise.race([writing, delay(reportTimeoutMs, undefined, { ref: false })]);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not publish the load status');
    }
  }
}

/** Returns the reason shown to clients: our errors name model files without paths; other errors may contain paths. */
function reasonOf(error: unknown): string {
  if (DarkroomError.isInstance(error) && error.code !== 'internal') return error.message;
  return "see the worker's log";
}
