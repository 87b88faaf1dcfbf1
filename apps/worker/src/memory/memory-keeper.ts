/**
 * Which of the models of one process are in memory, where not all find room at once. A model that is asked for gets its room in the
 * order of asking. Those without work are freed for it, least lately used first; where that is not enough, it waits, and in the end one that
 * has work must take nothing new. Nobody who waits holds room, so no two wait for each other.
 */
import { DarkroomError } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import type { MemoryNeed } from './estimate-need.ts';

/** Who has a model, and frees its memory when it is told to. */
export interface Tenant {
  /** Whether there is work for the model, or somebody waits for it. */
  isWanted(): boolean;
  /** Takes no more work, ends what it has, and frees the memory: `MemoryPlace.free`. @returns whether it did; false if somebody wakes it, or it stops. */
  sleep(): Promise<boolean>;
}

export interface MemoryPlaceOptions extends MemoryNeed {
  model: string;
  /** What it takes now, once it is loaded, bytes; undefined if that cannot be known. */
  measure: () => Promise<number | undefined>;
}

/** A model's part of the memory, for whoever loads it. */
export interface MemoryPlace {
  /** Before anything else. */
  attach(tenant: Tenant): void;
  /** Another model lies there. @throws DarkroomError `model_unsupported` if it can never have room. */
  expect(need: MemoryNeed): void;
  /**
   * To be called before the model is loaded.
   *
   * @returns whether there is room for it; false if nobody wants it any more.
   * @throws DarkroomError `model_unsupported` if there can never be.
   */
  take(): Promise<boolean>;
  /** The model is loaded. @throws DarkroomError `model_unsupported` if it takes more than all may. */
  loaded(): Promise<void>;
  /** How long it may wait for room from now on, ms; 0 where there is some, or nobody with work has to make it. */
  readonly waitMs: number;
  /** There is work for it. */
  used(): void;
  /** To be called now and then, and when work has ended or is not wanted any more. */
  look(): void;
  /** It is not in memory any more. */
  free(): void;
}

export interface MemoryKeeperOptions {
  /** What all models may take together. */
  budgetBytes: number;
  /** How long one waits for those that have work. */
  maxWaitMs: number;
  /** The pause between two measures of what is loaded: the kernel, or the driver, has to look at every page for an answer. */
  measureEveryMs?: number;
  /** Hears of each load. */
  onLoaded?: (model: string) => void;
  /** Hears what a model takes from now on, as it is counted, bytes; 0 when it is freed. */
  onHeld?: (model: string, bytes: number) => void;
  log: Logger;
}

/** What is known of one model. */
interface Place extends MemoryPlaceOptions {
  tenant: Tenant | undefined;
  needBytes: number;
  /** 0 while it is not in memory. */
  heldBytes: number;
  isLeaving: boolean;
  /** When it was measured, or began to be. */
  measuredAtMs: number;
  wasWanted: boolean;
  /** By `performance.now()`, as all times here. */
  usedAtMs: number;
}

interface Waiter {
  place: Place;
  sinceMs: number;
  answer: (hasRoom: boolean) => void;
}

/** Of one process, or of one GPU. */
export class MemoryKeeper {
  readonly #options: MemoryKeeperOptions;
  readonly #places: Place[] = [];
  /** In the order in which they get room. */
  #waiters: Waiter[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MemoryKeeperOptions) {
    this.#options = options;
  }

  /** @throws DarkroomError `model_unsupported` if the model can never have room. */
  open(options: MemoryPlaceOptions): MemoryPlace {
    this.#mustFit(options.model, options.leastBytes);
    const place: Place = {
      ...options,
      tenant: undefined,
      needBytes: Math.min(options.estimatedBytes, this.#options.budgetBytes),
      heldBytes: 0,
      isLeaving: false,
      measuredAtMs: 0,
      wasWanted: false,
      usedAtMs: performance.now(),
    };
    this.#places.push(place);
    const waitMs = (): number => this.#waitMs(place);
    return {
      get waitMs() {
        return waitMs();
      },
      attach: (tenant) => void (place.tenant = tenant),
      expect: (need) => this.#expect(place, need),
      take: () => this.#take(place),
      loaded: () => this.#loaded(place),
      used: () => void (place.usedAtMs = performance.now()),
      look: () => this.#look(place),
      free: () => this.#free(place),
    };
  }

  get budgetBytes(): number {
    return this.#options.budgetBytes;
  }

  /** What is in memory, by what it was measured to take or is thought to. */
  get heldBytes(): number {
    return sumOf(this.#places);
  }

  /** What was measured of the one before says nothing of it. */
  #expect(place: Place, need: MemoryNeed): void {
    // What is refused is not taken over: nothing is said of the one before where it lies there again.
    this.#mustFit(place.model, need.leastBytes);
    Object.assign(place, need, { needBytes: Math.min(need.estimatedBytes, this.#options.budgetBytes) });
  }

  async #take(place: Place): Promise<boolean> {
    this.#mustFit(place.model, place.needBytes);
    if (place.heldBytes > 0) return true;
    const answer = new Promise<boolean>((resolve) =>
      this.#waiters.push({ place, sinceMs: performance.now(), answer: resolve }),
    );
    this.#settle();
    return answer;
  }

  async #loaded(place: Place): Promise<void> {
    this.#options.onLoaded?.(place.model);
    place.measuredAtMs = performance.now();
    const bytes = await place.measure();
    if (bytes === undefined) return;
    this.#options.log.info({ model: place.model, bytes, estimated_bytes: place.estimatedBytes }, 'measured');
    // Remembered, so that it is not loaded in vain again.
    if (bytes > this.#options.budgetBytes) place.needBytes = bytes;
    this.#mustFit(place.model, bytes);
    this.#resize(place, bytes + place.cacheBytes);
  }

  #look(place: Place): void {
    const isWanted = place.tenant?.isWanted() === true;
    if (place.wasWanted && !isWanted) place.usedAtMs = performance.now();
    place.wasWanted = isWanted;
    const nowMs = performance.now();
    const { measureEveryMs = 10_000 } = this.#options;
    if (place.heldBytes > 0 && nowMs - place.measuredAtMs >= measureEveryMs) void this.#measureAgain(place, nowMs);
    this.#settle();
  }

  /** What it takes while it works is more than what it took when it was loaded. */
  async #measureAgain(place: Place, nowMs: number): Promise<void> {
    place.measuredAtMs = nowMs;
    const bytes = (await place.measure()) ?? 0;
    if (place.heldBytes > 0 && bytes > place.heldBytes) this.#resize(place, bytes);
    this.#settle();
  }

  /** One that needs all there is, or grew beyond it, is alone. */
  #resize(place: Place, bytes: number): void {
    const { budgetBytes, log } = this.#options;
    if (bytes > budgetBytes && place.needBytes < budgetBytes)
      log.warn({ model: place.model, bytes, budget_bytes: budgetBytes }, 'takes more than MEMORY_BUDGET_MB by itself');
    place.needBytes = Math.min(bytes, budgetBytes);
    this.#hold(place, place.needBytes);
  }

  #hold(place: Place, bytes: number): void {
    place.heldBytes = bytes;
    this.#options.onHeld?.(place.model, bytes);
  }

  #free(place: Place): void {
    this.#hold(place, 0);
    this.#settle();
  }

  /** Gives room to whoever waits, as far as there is some, and makes some for the next. */
  #settle(): void {
    clearTimeout(this.#timer);
    this.#answer(({ place }) => isIdle(place), false);
    for (;;) {
      const next = this.#waiters[0];
      if (next === undefined || next.place.needBytes > this.#freeBytes) break;
      this.#hold(next.place, next.place.needBytes);
      next.place.usedAtMs = performance.now();
      this.#answer((waiter) => waiter === next, true);
    }
    const [next] = this.#waiters;
    // Those that are in memory may have grown.
    if (next === undefined && this.#freeBytes < 0) this.#freeIdle(0);
    if (next === undefined || this.#freeIdle(next.place.needBytes)) return;
    const dueInMs = next.sinceMs + this.#options.maxWaitMs - performance.now();
    if (dueInMs > 0) this.#timer = setTimeout(() => this.#settle(), dueInMs).unref();
    else this.#freeAny(next.place.needBytes);
  }

  #waitMs({ needBytes }: Place): number {
    const idleBytes = sumOf(this.#places.filter(isIdle));
    return this.#waiters.length === 0 && needBytes <= this.#freeBytes + idleBytes ? 0 : this.#options.maxWaitMs;
  }

  /** @returns whether those without work are enough; if not, none of them is freed. */
  #freeIdle(neededBytes: number): boolean {
    const idle = this.#inMemory().filter(isIdle);
    let bytes = this.#freeBytes + sumOf(this.#places.filter((place) => place.isLeaving && isIdle(place)));
    if (bytes + sumOf(idle) < neededBytes) return false;
    for (const place of idle) {
      if (bytes >= neededBytes) break;
      bytes += place.heldBytes;
      this.#send(place);
    }
    return true;
  }

  /** Those without work go first. */
  #freeAny(neededBytes: number): void {
    const all = this.#inMemory();
    let bytes = this.#freeBytes + sumOf(this.#places.filter(({ isLeaving }) => isLeaving));
    for (const place of [...all.filter(isIdle), ...all.filter((one) => !isIdle(one))]) {
      if (bytes >= neededBytes) break;
      bytes += place.heldBytes;
      this.#send(place);
    }
  }

  #send(place: Place): void {
    const { log } = this.#options;
    place.isLeaving = true;
    log.info({ model: place.model, bytes: place.heldBytes, for: this.#waiters[0]?.place.model }, 'is to make room');
    // Not now: who is told looks here at once.
    void Promise.resolve()
      .then(() => place.tenant?.sleep())
      .catch((error: unknown) => log.error({ model: place.model, err: error }, 'could not make room'))
      // Once it is free others have their room. What was not to be freed is not asked again at once.
      .finally(() => (place.isLeaving = false));
  }

  /** Least lately used first. */
  #inMemory(): Place[] {
    return this.#places
      .filter(({ heldBytes, isLeaving }) => heldBytes > 0 && !isLeaving)
      .toSorted((left, right) => left.usedAtMs - right.usedAtMs);
  }

  get #freeBytes(): number {
    return this.#options.budgetBytes - this.heldBytes;
  }

  #answer(isMeant: (waiter: Waiter) => boolean, hasRoom: boolean): void {
    const meant = this.#waiters.filter(isMeant);
    this.#waiters = this.#waiters.filter((waiter) => !meant.includes(waiter));
    for (const { answer } of meant) answer(hasRoom);
  }

  #mustFit(model: string, bytes: number): void {
    const { budgetBytes } = this.#options;
    if (bytes <= budgetBytes) return;
    const [needed, budget] = [bytes, budgetBytes].map((size) => Math.ceil(size / 1e6));
    const problem = `${model} takes ${needed} MB of memory, and MEMORY_BUDGET_MB is ${budget}`;
    throw new DarkroomError('model_unsupported', 'worker.memory', problem);
  }
}

function isIdle({ tenant }: Place): boolean {
  return tenant?.isWanted() === false;
}

function sumOf(places: readonly Place[]): number {
  return places.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
}
