import { setTimeout as delay } from 'node:timers/promises';
import { DarkroomError } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import { clearLoadFailure, reportLoadFailure, type StoreConnection } from '@darkroom/store';

/** How long a failure is shown after the last try; a supervisor tries again sooner. */
const shownMs = 60_000;
/** A Redis that is away must not keep the process from ending. */
const longestReportMs = 2000;

export interface LoadWatchOptions {
  store: StoreConnection;
  model: string;
  host: string;
  /** Once it is aborted, a loading that fails was broken off. */
  stopSignal?: AbortSignal;
  log: Logger;
}

/** Tells the system of a model that cannot be loaded here: its worker does not register, so nothing else would. */
export class LoadWatch {
  readonly #options: LoadWatchOptions;

  constructor(options: LoadWatchOptions) {
    this.#options = options;
  }

  /** Does a part of the loading. What it throws is reported and thrown on. */
  async watch<Result>(load: () => Promise<Result>): Promise<Result> {
    const { store, model, host, stopSignal } = this.#options;
    try {
      return await load();
    } catch (error) {
      const facts = { reason: reasonOf(error), shownMs };
      if (stopSignal?.aborted !== true) await this.#tell(reportLoadFailure(store, { model, host }, facts));
      throw error;
    }
  }

  /** The loading goes on, and cannot end for now. */
  waitsFor(reason: string): void {
    const { store, model, host, log } = this.#options;
    log.warn({ reason }, 'not ready yet');
    void this.#tell(reportLoadFailure(store, { model, host }, { reason, shownMs }));
  }

  /** The model is loaded: what was said before is over. */
  clear(): Promise<void> {
    const { store, model, host } = this.#options;
    return this.#tell(clearLoadFailure(store, { model, host }));
  }

  async #tell(writing: Promise<void>): Promise<void> {
    try {
      await Promise.race([writing, delay(longestReportMs, undefined, { ref: false })]);
    } catch (error) {
      this.#options.log.warn({ err: error }, 'could not say how the loading went');
    }
  }
}

/** For clients too: errors of ours name files of the model, never where it lies; what others say may. */
function reasonOf(error: unknown): string {
  if (DarkroomError.isInstance(error) && error.code !== 'internal') return error.message;
  return "its worker's log says why";
}
