import type { ModelCard } from '@darkroom/core';
import type { Executor } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';
import type { LoadWatch } from './load-watch.ts';

export type EngineState = 'loading' | 'ready' | 'asleep' | 'stopping';

export interface EngineLifeOptions {
  executor: Executor;
  /** Tells the system when the model cannot be loaded. */
  loads: LoadWatch;
  /** It sleeps once it has had nothing to do for so long; never if it is undefined. */
  sleepAfterMs?: number | undefined;
  /** Aborted when the process is asked to stop. */
  stopSignal?: AbortSignal | undefined;
  /** Whether there is work for it. */
  isBusy: () => boolean;
  /** Tells the system the state; `leased`: there is work, and it must not sleep. */
  register: () => Promise<'registered' | 'leased'>;
  log: Logger;
}

/** When the model of a worker is in memory: loaded at the start and after a loss, freed while there is nothing to do, loaded again for the next. */
export class EngineLife {
  readonly #options: EngineLifeOptions;
  #state: EngineState = 'loading';
  #card: ModelCard | undefined;
  #loadMs: number | undefined;
  /** An operator asked for it. */
  #isToSleep = false;
  /** By `performance.now()`; undefined while it has work. */
  #idleSinceMs: number | undefined;
  #dozing: Promise<void> | undefined;
  #waking: Promise<boolean> | undefined;

  constructor(options: EngineLifeOptions) {
    this.#options = options;
  }

  get state(): EngineState {
    return this.#state;
  }

  /** Asked again after every wait, since a stop may come meanwhile. */
  get isStopping(): boolean {
    return this.#state === 'stopping';
  }

  /** As the engine says it, which knows more than the files tell; undefined before the first load. */
  get card(): ModelCard | undefined {
    return this.#card;
  }

  /** What the last load took, ms. */
  get loadMs(): number | undefined {
    return this.#loadMs;
  }

  /** The first load. A stop does not wait until the model is there: nothing has to be given back before that. */
  async load(): Promise<void> {
    const { executor, register, stopSignal } = this.#options;
    this.#state = 'loading';
    await register();
    stopSignal?.throwIfAborted();
    const abandon = (): void => void executor.shutdown();
    stopSignal?.addEventListener('abort', abandon, { once: true });
    await this.#start().finally(() => stopSignal?.removeEventListener('abort', abandon));
    stopSignal?.throwIfAborted();
    this.#state = 'ready';
    await register();
  }

  /** After the engine was lost. */
  async restart(giveBack: () => Promise<void>): Promise<void> {
    this.#state = 'loading';
    await this.#options.register();
    await giveBack();
    if (this.isStopping) return;
    await this.#start();
    if (this.isStopping) return;
    this.#state = 'ready';
    await this.#options.register();
  }

  stop(): void {
    this.#state = 'stopping';
  }

  /** An operator's: to sleep as soon as there is nothing to do, or to have the model in memory now. */
  ask(wanted: 'sleep' | 'wake'): void {
    this.#isToSleep = wanted === 'sleep';
    if (wanted === 'sleep') return this.sleepIfDue();
    this.#idleSinceMs = undefined;
    void this.wake();
  }

  /** To be called now and then. */
  sleepIfDue(): void {
    const { isBusy, log, sleepAfterMs = Infinity } = this.#options;
    const nowMs = performance.now();
    this.#idleSinceMs = isBusy() ? undefined : (this.#idleSinceMs ?? nowMs);
    const isDue = this.#isToSleep || nowMs - (this.#idleSinceMs ?? nowMs) >= sleepAfterMs;
    if (!isDue || isBusy() || this.#state !== 'ready') return;
    this.#dozing = this.#sleep()
      .catch((error: unknown) => log.error({ err: error }, 'could not go to sleep'))
      .finally(() => (this.#dozing = undefined));
  }

  /**
   * Has the model in memory. All who wait share one load.
   *
   * @returns false if it could not be loaded, or is not wanted any more; the next who asks tries again.
   */
  wake(): Promise<boolean> {
    this.#waking ??= this.#wakeOnce().finally(() => (this.#waking = undefined));
    return this.#waking;
  }

  /** Unless something was leased meanwhile: what is leased from then on finds it asleep. */
  async #sleep(): Promise<void> {
    const { executor, register, log } = this.#options;
    this.#state = 'asleep';
    if ((await register()) === 'leased') {
      if (!this.isStopping) this.#state = 'ready';
      return;
    }
    this.#isToSleep = false;
    await executor.shutdown();
    log.info({ model: this.#card?.id }, 'asleep');
  }

  async #wakeOnce(): Promise<boolean> {
    const { register, log } = this.#options;
    await this.#dozing;
    if (this.#state !== 'asleep') return !this.isStopping;
    try {
      await this.#start();
      if (this.isStopping) return false;
      this.#state = 'ready';
      await register();
      log.info({ model: this.#card?.id, load_ms: this.#loadMs }, 'awake');
      return true;
    } catch (error) {
      if (!this.isStopping) log.error({ err: error }, 'could not wake');
      return false;
    }
  }

  async #start(): Promise<void> {
    const { executor, loads } = this.#options;
    const startedAtMs = performance.now();
    this.#card = await loads.watch(() => executor.start());
    this.#loadMs = Math.round(performance.now() - startedAtMs);
    this.#idleSinceMs = undefined;
  }
}
