import { setTimeout as delay } from 'node:timers/promises';
import { BackOff, type BackOffOptions } from '@darkroom/core';
import { BaseService, type Logger } from '@darkroom/service';
import { acquireRestartLock, releaseRestartLock, type RestartLockHolder, type StoreConnection } from '@darkroom/store';
import type { Restart } from '../engine/worker-engine.ts';
import type { Worker } from '../worker/worker.ts';

export interface RestartableWorkerOptions {
  store: StoreConnection;
  holder: RestartLockHolder;
  /**
   * Reads the model's files and creates a worker, which calls `restart` on an operator's command, and forces it if it
   * cannot serve the files on disk. Rejects, after reporting the reason to the system, if the model cannot be served.
   */
  createWorker: (restart: Restart) => Promise<Worker>;
  log: Logger;
  /** Pauses between the tries of a failing restart. */
  retryMs?: Omit<BackOffOptions, 'resetAfterMs'>;
  /** Time between two tries to take the restart lock, ms. */
  lockRetryMs?: number;
}

/**
 * The lock expires this long after its holder last began a load, ms: a worker that died does not block the others for
 * longer. A holder whose loads fail renews it with each try, so that the others keep serving what they have loaded.
 */
const lockTtlMs = 600_000;

/**
 * Serves a model by one worker at a time. On an operator's command the worker drains, as on SIGTERM, and a fresh one
 * takes its place: it loads the files that are on disk by then.
 */
export class RestartableWorker extends BaseService<RestartableWorkerOptions> {
  #worker: Worker | undefined;
  #stopping = new AbortController();
  /** A restart that the current worker does not satisfy: it may have read its files before. */
  #wanted: 'in turn' | 'now' | undefined;
  #restarting: Promise<void> | undefined;
  #endPause: () => void = () => {};

  get isReady(): boolean {
    return this.#worker?.isReady === true;
  }

  /** @throws what the creation or the start of the worker throws. */
  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    await this.#serve();
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    await this.#worker?.stop();
    await this.#restarting;
  }

  async #serve(): Promise<void> {
    this.#wanted = undefined;
    const worker = await this.options.createWorker(({ isForced = false } = {}) => {
      // A worker that has been replaced needs no other restart.
      if (this.#worker !== worker) return;
      this.#want(isForced ? 'now' : 'in turn');
      this.#restarting ??= this.#restart();
    });
    this.#worker = worker;
    if (!this.#stopping.signal.aborted) await worker.start();
  }

  #want(when: 'in turn' | 'now'): void {
    if (this.#wanted !== 'now') this.#wanted = when;
    if (when === 'now') this.#endPause();
  }

  /** Replaces the worker until the fresh one has started and satisfies all commands, or until a stop. */
  async #restart(): Promise<void> {
    const { store, holder, log, retryMs = { firstMs: 1000, maxMs: 30_000 } } = this.options;
    const backOff = new BackOff({ ...retryMs, resetAfterMs: Infinity });
    const isWanted = (): boolean => this.#wanted !== undefined && !this.#stopping.signal.aborted;
    do {
      while (isWanted()) await this.#tryRestart(backOff);
      await releaseRestartLock(store, holder).catch((error: unknown) =>
        log.warn({ err: error }, 'could not release the restart lock; it expires'),
      );
    } while (isWanted());
    this.#restarting = undefined;
  }

  /** A forced restart needs no lock: the worker serves nothing. */
  async #tryRestart(backOff: BackOff): Promise<void> {
    const { store, holder, log, lockRetryMs = 2000 } = this.options;
    const when = this.#wanted ?? 'in turn';
    try {
      if (when === 'now' || (await acquireRestartLock(store, holder, lockTtlMs))) await this.#replaceWorker();
      else if (this.#wanted === when) await this.#pause(lockRetryMs);
    } catch (error) {
      // The files were replaced again since the fresh worker was created: no error.
      const level = this.#wanted === 'now' ? 'warn' : 'error';
      if (!this.#stopping.signal.aborted)
        log[level]({ model: holder.model, err: error }, 'could not restart the worker; retrying');
      this.#want(when);
      await this.#pause(backOff.next());
    }
  }

  async #replaceWorker(): Promise<void> {
    const { holder, log } = this.options;
    log.info({ model: holder.model }, 'restarting the worker');
    await this.#worker?.stop();
    this.#worker = undefined;
    await this.#serve();
    log.info({ model: holder.model }, 'worker restarted');
  }

  async #pause(ms: number): Promise<void> {
    const ending = new AbortController();
    this.#endPause = () => ending.abort();
    const signal = AbortSignal.any([this.#stopping.signal, ending.signal]);
    await delay(ms, undefined, { signal }).catch(() => {});
  }
}
