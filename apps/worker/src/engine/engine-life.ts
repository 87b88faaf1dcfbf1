import type { ModelCard } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import { BackOff, type BackOffOptions } from '../back-off.ts';
import { loadEngine, type LoadEngineOptions, takeRoom } from './load-engine.ts';
import { Pause } from './pause.ts';
import { type Wish, Wishes } from './wishes.ts';

/** `vacating`: it takes no more leases, and its memory is free once what is here has ended. */
export type EngineState = 'loading' | 'ready' | 'vacating' | 'asleep' | 'stopping';

export interface EngineLifeOptions extends LoadEngineOptions {
  /** It sleeps once it has had nothing to do for so long; never if it is undefined. */
  sleepAfterMs?: number | undefined;
  /** Whether there is work for it. */
  isBusy: () => boolean;
  /** Tells the system the state; `leased`: so it is, and there is work. */
  register: () => Promise<'registered' | 'leased'>;
  /** The pauses before a model that was loaded before is loaded again: what was lost, or could not be loaded (`BackOff`). */
  retryMs?: Omit<BackOffOptions, 'calmMs'> | undefined;
  log: Logger;
}

/** An engine that was lost so long after it was loaded is not one that dies of being loaded, ms. */
const calmMs = 60_000;

/**
 * When the model of a worker is in memory: loaded at the start and after a loss, freed while there is nothing to do or somebody
 * says so, loaded again for the next.
 */
export class EngineLife {
  readonly #options: EngineLifeOptions;
  readonly #stopping = new AbortController();
  readonly #backOff: BackOff;
  #state: EngineState = 'loading';
  #card: ModelCard | undefined;
  #loadMs: number | undefined;
  #loadedAtMs = -Infinity;
  /** It died, and was not loaded since. */
  #isLost = false;
  /** What somebody asked for, of which sleep goes first: who wakes loads anew. */
  #isToSleep = false;
  #isToReload = false;
  #isToWake = false;
  /** By `performance.now()`; undefined while it has work. */
  #idleSinceMs: number | undefined;
  /** What the system has not been told yet. */
  #isUntold = false;
  #vacating: Promise<void> | undefined;
  #waking: Promise<boolean> | undefined;
  readonly #wishes = new Wishes();
  readonly #pause = new Pause(() => this.#isToSleep || this.isStopping);

  constructor(options: EngineLifeOptions) {
    this.#options = options;
    this.#backOff = new BackOff({ firstMs: 1000, mostMs: 30_000, ...options.retryMs, calmMs });
    const isToLoad = (): boolean => this.#isToWake || (this.#state === 'loading' && !this.#isToSleep);
    options.shared?.place.attach({
      isWanted: () => !this.isStopping && (options.isBusy() || isToLoad()),
      sleep: () => this.sleep(),
    });
  }

  get state(): EngineState {
    return this.#state;
  }

  /** Asked again after every wait, since a stop may come meanwhile. */
  get isStopping(): boolean {
    return this.#state === 'stopping';
  }

  /** Whether it takes leases. */
  get isOpen(): boolean {
    return this.#state === 'ready' || this.#state === 'asleep';
  }

  /** As the engine says it, which knows more than the files tell; undefined where nothing is known before the first load. */
  get card(): ModelCard | undefined {
    return this.#card;
  }

  /** What the last load took, ms. */
  get loadMs(): number | undefined {
    return this.#loadMs;
  }

  /** The first load, where it does not begin asleep. A stop does not wait until the model is there: nothing has to be given back before that. */
  async load(): Promise<void> {
    const { executor, shared, register, stopSignal } = this.#options;
    this.#state = shared === undefined ? 'loading' : 'asleep';
    this.#card = shared?.card;
    await register();
    if (shared !== undefined) return;
    stopSignal?.throwIfAborted();
    const abandon = (): void => void executor.shutdown();
    stopSignal?.addEventListener('abort', abandon, { once: true });
    await this.#load().finally(() => stopSignal?.removeEventListener('abort', abandon));
    stopSignal?.throwIfAborted();
  }

  /** After the engine was lost. Tries until the model is loaded; one that was about to be freed is. One that shares its memory sleeps, after a pause in no open list. */
  async restart(giveBack: () => Promise<void>): Promise<void> {
    this.#isLost = true;
    // Who is about to load it finds that out.
    if (this.#state !== 'ready' && this.#state !== 'vacating') return;
    const wasVacating = this.#state === 'vacating';
    if (!wasVacating) this.#state = 'loading';
    await this.#tell();
    await giveBack();
    if (wasVacating) return this.look();
    const pauseMs = this.#backOff.next(performance.now() - this.#loadedAtMs);
    if (this.#options.shared === undefined) return this.#loadAnew(pauseMs);
    this.#options.shared.place.free();
    return this.#pause.wait(pauseMs).then(() => this.#fallAsleep());
  }

  stop(): void {
    this.#state = 'stopping';
    this.#stopping.abort();
    this.#pause.look();
    this.#wishes.answer(false);
  }

  /**
   * Takes no more leases, lets what is here end, and frees the memory: then it is asleep, and the next lease wakes it.
   *
   * @returns whether it sleeps; false if somebody wakes it meanwhile, or it stops.
   */
  sleep(): Promise<boolean> {
    this.#isToWake = false;
    if (this.#sleepsSoundly) return Promise.resolve(true);
    this.#isToSleep = true;
    this.#pause.look();
    return this.#wait('sleep');
  }

  /**
   * The same, and then it loads what lies there now: until it can be loaded. One that sleeps does that with its next lease.
   *
   * @returns whether it is so; false if it stops.
   */
  reload(): Promise<boolean> {
    if (this.#sleepsSoundly) return Promise.resolve(true);
    this.#isToReload = true;
    return this.#wait('reload');
  }

  /** To be called now and then, and when work has ended. */
  look(): void {
    const { isBusy, shared, log, sleepAfterMs = Infinity } = this.#options;
    const nowMs = performance.now();
    this.#idleSinceMs = isBusy() ? undefined : (this.#idleSinceMs ?? nowMs);
    shared?.place.look();
    if (this.#vacating !== undefined || this.isStopping) return;
    const isIdleForLong = nowMs - (this.#idleSinceMs ?? nowMs) >= sleepAfterMs;
    if (this.#state === 'ready' && (this.#isToSleep || this.#isToReload || isIdleForLong)) {
      this.#state = 'vacating';
      this.#isUntold = true;
    }
    if (this.#state === 'vacating' && (this.#isUntold || !isBusy())) {
      this.#vacating = this.#vacate()
        .catch((error: unknown) => log.error({ err: error }, 'could not free the memory'))
        .finally(() => (this.#vacating = undefined));
    } else if (this.#isUntold) void this.#tell();
  }

  /**
   * Has the model in memory. All who wait share one load.
   *
   * @param isAsked for itself, and not for work that there is.
   * @returns false if it could not be loaded, which is then tried until it can, or is not wanted any more.
   */
  wake({ isAsked = true }: { isAsked?: boolean } = {}): Promise<boolean> {
    this.#isToWake ||= isAsked;
    this.#isToSleep = false;
    this.#idleSinceMs = undefined;
    this.#wishes.answer(false, ['sleep']);
    return (this.#waking ??= this.#wakeOnce());
  }

  /** Where there is nothing left to do, it frees the memory; else it is called again. */
  async #vacate(): Promise<void> {
    const { executor, isBusy } = this.#options;
    // What was leased before it was in no open list may still be in the inbox.
    const told = await this.#tell();
    if (told === 'untold' || this.isStopping) return;
    const isWanted = this.#isToSleep || this.#isToReload;
    if (told === 'leased' || isBusy()) return isWanted ? undefined : this.#goOn();
    // Nobody asked, or has changed his mind.
    if (!isWanted && this.#idleSinceMs === undefined) return this.#goOn();
    await executor.shutdown();
    await (this.#isToReload && !this.#isToSleep ? this.#loadAnew() : this.#fallAsleep());
  }

  /** Nothing of the model is in memory. */
  async #fallAsleep(): Promise<void> {
    if (this.isStopping) return;
    this.#state = 'asleep';
    this.#options.log.info({ model: this.#card?.id }, 'asleep');
    this.#options.shared?.place.free();
    await this.#tell();
    this.#endWishes();
  }

  #endWishes(): void {
    this.#isToSleep = this.#isToReload = false;
    this.#wishes.answer(true);
  }

  async #goOn(): Promise<void> {
    if (this.#isLost) return this.#loadAnew();
    this.#state = 'ready';
    this.#wishes.answer(false);
    await this.#tell();
  }

  async #wakeOnce(): Promise<boolean> {
    try {
      await this.#vacating;
      if (this.#state === 'vacating' && !this.#isToReload) await this.#goOn();
      return this.#state === 'asleep' ? await this.#load() : this.#state !== 'loading' && !this.isStopping;
    } catch (error) {
      await this.#failed(error);
      void this.#loadAnew();
      return false;
    } finally {
      // At once, so that nobody shares an answer that was true a moment ago.
      this.#waking = undefined;
      this.#isToWake = false;
      if (this.#state === 'asleep') this.#endWishes();
      this.look();
    }
  }

  /** In no open list meanwhile, so that nothing waits for what cannot be loaded. Ends with a load, whatever became of it: a loss begins anew. */
  async #loadAnew(firstPauseMs = this.#backOff.next(Infinity)): Promise<void> {
    if (this.isStopping) return;
    this.#state = 'loading';
    // What lies there now may take another room.
    this.#options.shared?.place.free();
    for (let pauseMs = firstPauseMs; ; pauseMs = this.#backOff.next()) {
      await this.#pause.wait(pauseMs);
      if (this.isStopping || this.#isToSleep) return this.#fallAsleep();
      if (await this.#load().catch((error: unknown) => this.#failed(error))) return;
    }
  }

  async #failed(error: unknown): Promise<false> {
    if (this.isStopping) return false;
    this.#options.log.error({ err: error }, 'could not load the model');
    this.#state = 'loading';
    await this.#tell();
    return false;
  }

  /** What could not be told is told at the next look. */
  async #tell(): Promise<'registered' | 'leased' | 'untold'> {
    try {
      this.#isUntold = false;
      const told = await this.#options.register();
      // What has ended is not written yet: until then it counts as leased, and nothing was changed.
      this.#isUntold = told === 'leased' && this.#state === 'asleep';
      return told;
    } catch (error) {
      this.#isUntold = true;
      this.#options.log.error({ err: error, state: this.#state }, 'could not say how the engine is');
      return 'untold';
    }
  }

  /** @returns false if the model is not wanted any more. */
  async #load(): Promise<boolean> {
    if (!(await takeRoom(this.#options)) || this.isStopping) return false;
    const startedAtMs = performance.now();
    this.#isToReload = this.#isLost = false;
    this.#card = await loadEngine(this.#options, this.#stopping.signal, () => this.#isLost);
    if (this.isStopping) return false;
    this.#loadedAtMs = performance.now();
    this.#loadMs = Math.round(this.#loadedAtMs - startedAtMs);
    this.#idleSinceMs = undefined;
    this.#state = 'ready';
    await this.#tell();
    this.#options.log.info({ model: this.#card.id, load_ms: this.#loadMs }, 'loaded');
    if (!this.#isToReload) this.#wishes.answer(true, ['reload']);
    return true;
  }

  /** Nobody is about to wake it. */
  get #sleepsSoundly(): boolean {
    return this.#state === 'asleep' && this.#waking === undefined;
  }

  #wait(wish: Wish): Promise<boolean> {
    if (this.isStopping) return Promise.resolve(false);
    const answer = this.#wishes.wait(wish);
    this.look();
    return answer;
  }
}
