/**
 * Decides when a worker's model is in memory. Commands, requests and losses only change the desired state or record a
 * fact; `reconcile` moves the state towards it, one transition at a time.
 *
 *     loading  ──due──► ready ──must sleep──► vacating ──no requests──► asleep ──wake──► ready
 *     ready    ──engine lost──► loading                asleep  ──load failed──► loading
 *     vacating ──wake──► ready, or loading if the engine is lost
 *     loading  ──load failed──► loading, after a pause
 *     loading  ──must sleep──► asleep
 *
 * `loading`: no model, takes no leases. `vacating`: takes no more leases; frees its memory when its requests have
 * ended. `asleep`: no model; a lease wakes it, and the state remains until the model is loaded. `stopping`: final.
 */
import { BackOff, type BackOffOptions, type ModelCard } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import { acquireMemory, loadEngine, type LoadEngineOptions } from './load-engine.ts';

export type EngineState = 'loading' | 'ready' | 'vacating' | 'asleep' | 'stopping';

export interface EngineLifeOptions extends LoadEngineOptions {
  /** Idle time after which the model is freed, ms; never if undefined. */
  sleepAfterMs?: number | undefined;
  /** Returns true while the worker has requests. */
  isBusy: () => boolean;
  /** Publishes the state. Resolves to `leased` if the worker still has leases; `asleep` is then not published. */
  register: () => Promise<'registered' | 'leased'>;
  /** Back-off between loads after the engine is lost or a load fails. */
  retryMs?: Omit<BackOffOptions, 'resetAfterMs'> | undefined;
  log: Logger;
}

/** An engine that runs for at least this long before it is lost resets the back-off, ms. */
const resetAfterMs = 60_000;

export class EngineLife {
  readonly #options: EngineLifeOptions;
  readonly #stopping = new AbortController();
  readonly #backOff: BackOff;
  #state: EngineState = 'loading';
  /** `on demand`: called off if the requests that need the model are canceled while it waits for memory. */
  #desired: 'loaded' | 'on demand' | 'asleep' = 'loaded';
  /** A transition is in progress. The first one is `load`. */
  #isMoving = true;
  /** `reconcile` was called during the transition. */
  #mustRepeat = false;
  /** Earliest time to leave `loading`. All times by `performance.now()`. */
  #notBeforeMs = -Infinity;
  #timer: NodeJS.Timeout | undefined;
  /** The engine has died since the last load began. */
  #isLost = false;
  /** Requeues the requests of a lost engine, before anything else happens. */
  #requeue: (() => Promise<void>) | undefined;
  /** The published state is out of date. */
  #isDirty = false;
  /** Undefined while there are requests. */
  #idleSinceMs: number | undefined;
  /** Requests and commands that wait for `ready`. */
  #waiters: ((isReady: boolean) => void)[] = [];
  #loadedAtMs = -Infinity;
  /** Card reported by the last loaded engine. Before the first load: the files' card if memory is shared, else none. */
  card: ModelCard | undefined;
  /** Duration of the last load, ms. */
  loadMs: number | undefined;

  constructor(options: EngineLifeOptions) {
    this.#options = options;
    this.#backOff = new BackOff({ firstMs: 1000, maxMs: 30_000, ...options.retryMs, resetAfterMs });
    options.shared?.allocation.attach({
      wantsMemory: () =>
        !this.isStopping && (options.isBusy() || (this.#state !== 'ready' && this.#desired === 'loaded')),
      isGivingUp: () => this.#desired === 'asleep',
      giveUp: () => this.sleep(),
    });
  }

  get state(): EngineState {
    return this.#state;
  }

  /** True once `stop` was called. Check after every await. */
  get isStopping(): boolean {
    return this.#state === 'stopping';
  }

  /** True if the worker takes leases. */
  get acceptsLeases(): boolean {
    return this.#state === 'ready' || this.#state === 'asleep';
  }

  /** Asleep, and no load is in progress. */
  get isFullyAsleep(): boolean {
    return this.#state === 'asleep' && this.#desired === 'asleep';
  }

  /** Runs the first load, or starts asleep if memory is shared. */
  async load(): Promise<void> {
    const { shared, register } = this.#options;
    if (shared !== undefined) this.#state = this.#desired = 'asleep';
    this.card = shared?.card;
    await register();
    if (shared === undefined) await this.#loadOnce();
    this.#isMoving = false;
    this.reconcile();
  }

  /** Lets requests end, then frees memory, unless a wake is first. The next lease wakes the model. */
  sleep(): void {
    this.#desired = 'asleep';
    this.#notBeforeMs = -Infinity;
    // Later: the memory keeper calls this from `reconcile`.
    queueMicrotask(() => this.reconcile());
  }

  /**
   * Loads the model if it is asleep.
   *
   * @param isExplicit true for an operator's command, false for a request that needs the model.
   * @returns false if the load failed (retries follow), or if a stop or a sleep called it off.
   */
  wake({ isExplicit = true }: { isExplicit?: boolean } = {}): Promise<boolean> {
    if (this.#state === 'stopping') return Promise.resolve(false);
    if (isExplicit) this.#desired = 'loaded';
    else if (this.#desired === 'asleep') this.#desired = 'on demand';
    this.#idleSinceMs = undefined;
    if (this.#state === 'ready') return Promise.resolve(true);
    const isReady = new Promise<boolean>((resolve) => this.#waiters.push(resolve));
    this.reconcile();
    return isReady;
  }

  /**
   * Requeues a lost engine's requests, then loads or, with shared memory, sleeps. No back-off after a bad request. A
   * load in progress notices the loss through `#isLost`.
   */
  replaceLost(requeue: () => Promise<void>, { isCausedByRequest = false } = {}): void {
    this.#isLost = true;
    if (this.#state !== 'ready' && this.#state !== 'vacating') return;
    this.#requeue = requeue;
    if (this.#state === 'ready') {
      this.#state = 'loading';
      const nowMs = performance.now();
      this.#notBeforeMs = nowMs + (isCausedByRequest ? 0 : this.#backOff.next(nowMs - this.#loadedAtMs));
      // Another model may be next for the memory.
      if (this.#options.shared !== undefined) this.#desired = 'asleep';
    }
    this.reconcile();
  }

  stop(): void {
    this.#state = 'stopping';
    this.#stopping.abort();
    clearTimeout(this.#timer);
    this.#settle(false);
  }

  /** Begins the next transition, if one is due. Call on every tick and after a request ends. */
  reconcile(): void {
    const { shared, log } = this.#options;
    shared?.allocation.reconcile();
    const mustSleep = this.#mustSleep();
    this.#mustRepeat = this.#isMoving;
    if (this.#isMoving || this.isStopping) return;
    this.#isMoving = true;
    const transition = this.#beginTransition(mustSleep);
    if (transition === undefined) return void (this.#isMoving = false);
    void transition
      .catch((error: unknown) => log.error({ err: error, state: this.#state }, 'engine transition failed'))
      .then((mayContinue) => {
        this.#isMoving = false;
        // Otherwise the next tick tries again.
        if (mayContinue === true || this.#mustRepeat) this.reconcile();
      });
  }

  /** @returns the transition, if one is due; it resolves to true if another one may follow at once. */
  #beginTransition(mustSleep: boolean): Promise<unknown> | undefined {
    if (this.#requeue !== undefined) return this.#recover(this.#requeue);
    if (this.#state === 'ready' && mustSleep) return this.#vacate();
    if (this.#state === 'vacating' && !mustSleep) return this.#resume();
    if (this.#state === 'vacating' && (this.#isDirty || !this.#options.isBusy())) return this.#vacate();
    if (this.#state === 'loading' && this.#isDue())
      return this.#desired === 'asleep' ? this.#enterAsleep() : this.#load();
    if (this.#state === 'asleep' && this.#desired !== 'asleep') return this.#load();
    return this.#isDirty ? this.#publish() : undefined;
  }

  /** Returns true if sleep is desired, or if the model has been idle for too long. */
  #mustSleep(): boolean {
    const { isBusy, sleepAfterMs = Infinity } = this.#options;
    const nowMs = performance.now();
    this.#idleSinceMs = isBusy() ? undefined : (this.#idleSinceMs ?? nowMs);
    return this.#desired === 'asleep' || nowMs - (this.#idleSinceMs ?? nowMs) >= sleepAfterMs;
  }

  /** Returns true if the pause before the next load is over; otherwise reconciles at its end. */
  #isDue(): boolean {
    clearTimeout(this.#timer);
    const pauseMs = this.#notBeforeMs - performance.now();
    if (pauseMs > 0) this.#timer = setTimeout(() => this.reconcile(), pauseMs).unref();
    return pauseMs <= 0;
  }

  async #recover(requeue: () => Promise<void>): Promise<boolean> {
    this.#requeue = undefined;
    await this.#publish();
    await requeue();
    if (this.#state === 'loading') this.#options.shared?.allocation.free();
    return true;
  }

  /** Stops leases, then frees the memory unless requests are left or have arrived meanwhile. */
  async #vacate(): Promise<boolean> {
    this.#state = 'vacating';
    const result = await this.#publish();
    // The request of the lease is in the inbox: the model is not idle.
    if (result === 'leased') this.#idleSinceMs = undefined;
    if (result === 'failed' || this.isStopping) return false;
    if (this.#requeue !== undefined || !this.#mustSleep()) return true;
    if (result === 'leased' || this.#options.isBusy()) return false;
    await this.#options.executor.shutdown();
    // An idle model waits for a wake, unless one has arrived meanwhile.
    if (this.#waiters.length === 0) this.#desired = 'asleep';
    return this.#enterAsleep();
  }

  async #resume(): Promise<boolean> {
    this.#state = this.#isLost ? 'loading' : 'ready';
    await this.#publish();
    if (this.#state === 'ready') this.#settle(true);
    return true;
  }

  /** Publishes the asleep state after the model has left memory. */
  async #enterAsleep(): Promise<boolean> {
    const { shared, log } = this.#options;
    if (this.isStopping) return false;
    this.#state = 'asleep';
    log.info({ model: this.card?.id }, 'asleep');
    shared?.allocation.free();
    await this.#publish();
    if (this.#desired === 'asleep') this.#settle(false);
    return this.#desired !== 'asleep';
  }

  async #load(): Promise<boolean> {
    const wasAsleep = this.#state === 'asleep';
    try {
      await this.#loadOnce();
    } catch (error) {
      if (this.isStopping) return false;
      this.#options.log.error({ err: error }, 'could not load the model');
      if (this.#desired !== 'asleep')
        this.#notBeforeMs = performance.now() + this.#backOff.next(wasAsleep ? Infinity : 0);
      if (this.#desired === 'on demand') this.#desired = 'loaded';
      this.#state = 'loading';
      await this.#publish();
      this.#settle(false);
    }
    return true;
  }

  /** Does not load if that is called off: by a stop, or while it waits for memory. */
  async #loadOnce(): Promise<void> {
    const hasMemory = await acquireMemory(this.#options);
    if (!hasMemory) this.#desired = 'asleep';
    if (!hasMemory || this.isStopping) return this.#settle(false);
    const startedAtMs = performance.now();
    this.#isLost = false;
    this.card = await loadEngine(this.#options, this.#stopping.signal, () => this.#isLost);
    if (this.isStopping) return;
    this.#loadedAtMs = performance.now();
    this.loadMs = Math.round(this.#loadedAtMs - startedAtMs);
    this.#idleSinceMs = undefined;
    this.#state = 'ready';
    await this.#publish();
    this.#options.log.info({ model: this.card.id, load_ms: this.loadMs }, 'loaded');
    // It may have died meanwhile.
    this.#settle(this.acceptsLeases);
  }

  async #publish(): Promise<'registered' | 'leased' | 'failed'> {
    try {
      this.#isDirty = false;
      const result = await this.#options.register();
      // Redis refuses `asleep` while a lease exists, such as one whose request's end is not written yet: try again.
      this.#isDirty = result === 'leased' && this.#state === 'asleep';
      return result;
    } catch (error) {
      this.#isDirty = true;
      this.#options.log.error({ err: error, state: this.#state }, 'could not publish the engine state');
      return 'failed';
    }
  }

  #settle(isReady: boolean): void {
    for (const resolve of this.#waiters.splice(0)) resolve(isReady);
  }
}
