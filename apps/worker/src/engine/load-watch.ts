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
    try {
      return await load();
    } catch (error) {
      const facts = { reason: reasonOf(error), shownMs };
      if (this.#options.stopSignal?.aborted !== true)
        await this.#tell((store, place) => reportLoadFailure(store, place, facts));
      throw error;
    }
  }

  /** The model is loaded: what was said before is over. */
  async clear(): Promise<void> {
    await this.#tell(clearLoadFailure);
  }

  async #tell(write: (store: StoreConnection, place: { model: string; host: string }) => Promise<void>): Promise<void> {
    const { store, model, host, log } = this.#options;
    const gone = new AbortController();
    try {
      await Promise.race([write(store, { model, host }), delay(longestReportMs, undefined, { signal: gone.signal })]);
    } catch (error) {
      log.warn({ err: error }, 'could not say how the loading went');
    } finally {
      gone.abort();
    }
  }
}

/** For clients too: errors of ours name files of the model, never where it lies; what others say may. */
function reasonOf(error: unknown): string {
  if (DarkroomError.isInstance(error) && error.code !== 'internal') return error.message;
  return "its worker's log says why";
}
