/**
 * Decides which models of one process stay in memory when they do not all fit. Evicts idle models first, least recently
 * used first; after `maxWaitMs` also busy ones, which then take no new work. Loads get memory in the order of their
 * requests; a waiting model holds no memory, so two waiting models cannot deadlock.
 */
import { DarkroomError } from '@darkroom/core';
import type { Logger } from '@darkroom/service';
import type { MemoryNeed } from './estimate-need.ts';

/** Owner of a model, which loads it into memory and frees that. */
export interface MemoryTenant {
  /** Returns true if the model has requests or must be loaded; otherwise it is idle. */
  wantsMemory(): boolean;
  /** Returns true if the model frees its memory (`MemoryAllocation.free`) as soon as its requests have ended. */
  isGivingUp(): boolean;
  giveUp(): void;
}

export interface MemoryAllocationOptions extends MemoryNeed {
  model: string;
  /** Measures the loaded model, bytes; undefined if that is not possible. */
  measure: () => Promise<number | undefined>;
}

export interface MemoryKeeperOptions {
  /** Budget of all models together. */
  budgetBytes: number;
  /** Time after which busy models are evicted for a waiting one, ms. */
  maxWaitMs: number;
  /** Minimum time between two measurements: each makes the kernel or the driver walk all pages of the process. */
  measureEveryMs?: number;
  /** Called after each load. */
  onLoaded?: (model: string) => void;
  /** Called when the accounted memory of a model changes, bytes; 0 when it is freed. */
  onMemoryChange?: (model: string, bytes: number) => void;
  log: Logger;
}

/** A model's share of the memory budget. Times are by `performance.now()`. */
export class MemoryAllocation {
  readonly #options: MemoryAllocationOptions;
  readonly #keeper: MemoryKeeper;
  #measuredAtMs = 0;
  tenant: MemoryTenant | undefined;
  needBytes: number;
  /** 0 while the model is not in memory. */
  heldBytes = 0;
  usedAtMs = performance.now();

  constructor(keeper: MemoryKeeper, options: MemoryAllocationOptions) {
    this.#options = options;
    this.#keeper = keeper;
    this.needBytes = Math.min(options.estimatedBytes, keeper.options.budgetBytes);
  }

  get model(): string {
    return this.#options.model;
  }

  get isIdle(): boolean {
    return this.tenant?.wantsMemory() === false;
  }

  get isGivingUp(): boolean {
    return this.tenant?.isGivingUp() === true;
  }

  /** Longest wait for memory from now on, ms; 0 if there is enough, counting idle models. */
  get waitMs(): number {
    return this.#keeper.waitMsFor(this.needBytes);
  }

  /** Sets the owner. Call first. */
  attach(tenant: MemoryTenant): void {
    this.tenant = tenant;
  }

  /**
   * Acquires memory. Call before the model is loaded; waits for its turn.
   *
   * @returns true once there is memory; false if the load is no longer wanted.
   * @throws DarkroomError `model_unsupported` if the model can never fit.
   */
  async acquire(): Promise<boolean> {
    this.#keeper.assertFits(this.model, this.needBytes);
    return this.heldBytes > 0 || this.#keeper.waitFor(this);
  }

  /** Measures the loaded model. @throws DarkroomError `model_unsupported` if it exceeds the whole budget. */
  async loaded(): Promise<void> {
    const { model, estimatedBytes, cacheBytes } = this.#options;
    const { budgetBytes, onLoaded, log } = this.#keeper.options;
    onLoaded?.(model);
    const bytes = await this.#measure();
    if (bytes === undefined) return;
    log.info({ model, bytes, estimated_bytes: estimatedBytes }, 'measured model memory');
    // Remembered, so that the next `acquire` fails without a load.
    if (bytes > budgetBytes) this.needBytes = bytes;
    this.#keeper.assertFits(model, bytes);
    this.#resize(bytes + cacheBytes);
  }

  /** Marks the model as used now. */
  touch(): void {
    this.usedAtMs = performance.now();
  }

  /** Measures from time to time and serves waiting loads. Call on every tick and after a request ends. */
  reconcile(): void {
    const { measureEveryMs = 10_000 } = this.#keeper.options;
    if (this.heldBytes > 0 && performance.now() - this.#measuredAtMs >= measureEveryMs) void this.#measureAgain();
    this.#keeper.schedule();
  }

  /** Releases the memory: the model is unloaded. */
  free(): void {
    this.hold(0);
    this.#keeper.schedule();
  }

  hold(bytes: number): void {
    this.heldBytes = bytes;
    this.#keeper.options.onMemoryChange?.(this.model, bytes);
  }

  #measure(): Promise<number | undefined> {
    this.#measuredAtMs = performance.now();
    return this.#options.measure();
  }

  /** Measures a working model, which takes more than right after its load. */
  async #measureAgain(): Promise<void> {
    const bytes = (await this.#measure()) ?? 0;
    if (this.heldBytes > 0 && bytes > this.heldBytes) this.#resize(bytes);
    this.#keeper.schedule();
  }

  /** Caps the need at the budget: a model that exceeds it runs alone. */
  #resize(bytes: number): void {
    const { model } = this;
    const { budgetBytes, log } = this.#keeper.options;
    if (bytes > budgetBytes && this.needBytes < budgetBytes)
      log.warn({ model, bytes, budget_bytes: budgetBytes }, 'model uses more than MEMORY_BUDGET_MB');
    this.needBytes = Math.min(bytes, budgetBytes);
    this.hold(this.needBytes);
  }
}

/** Memory budget of one process or one GPU. */
export class MemoryKeeper {
  readonly options: MemoryKeeperOptions;
  #allocations: readonly MemoryAllocation[] = [];
  /** In the order of service. */
  #waiters: { allocation: MemoryAllocation; sinceMs: number; answer: (hasMemory: boolean) => void }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: MemoryKeeperOptions) {
    this.options = options;
  }

  /** Replaces an earlier share of the model. @throws DarkroomError `model_unsupported` if it can never fit. */
  open(options: MemoryAllocationOptions): MemoryAllocation {
    this.assertFits(options.model, options.minBytes);
    const allocation = new MemoryAllocation(this, options);
    this.#allocations = [...this.#allocations.filter(({ model }) => model !== options.model), allocation];
    return allocation;
  }

  get budgetBytes(): number {
    return this.options.budgetBytes;
  }

  /** Memory accounted to loaded models: measured, or estimated before that. */
  get heldBytes(): number {
    return sumOf(this.#allocations);
  }

  /** Resolves true once the model has memory, false if it no longer wants any. */
  waitFor(allocation: MemoryAllocation): Promise<boolean> {
    const answer = new Promise<boolean>((resolve) =>
      this.#waiters.push({ allocation, sinceMs: performance.now(), answer: resolve }),
    );
    this.schedule();
    return answer;
  }

  waitMsFor(bytes: number): number {
    const idleBytes = sumOf(this.#allocations.filter(({ isIdle }) => isIdle));
    return this.#waiters.length === 0 && bytes <= this.#freeBytes + idleBytes ? 0 : this.options.maxWaitMs;
  }

  /** Grants memory to waiting loads in order, and evicts models for the next one. */
  schedule(): void {
    clearTimeout(this.#timer);
    for (const { answer } of this.#waiters.filter(({ allocation }) => allocation.isIdle)) answer(false);
    this.#waiters = this.#waiters.filter(({ allocation }) => !allocation.isIdle);
    let [next] = this.#waiters;
    for (; next !== undefined && next.allocation.needBytes <= this.#freeBytes; [next] = this.#waiters) {
      this.#waiters.shift();
      next.allocation.hold(next.allocation.needBytes);
      next.allocation.touch();
      next.answer(true);
    }
    if (next === undefined) {
      // Loaded models may have grown beyond the budget.
      if (this.#freeBytes < 0) this.#evict(0, { isPatient: true });
      return;
    }
    const dueInMs = next.sinceMs + this.options.maxWaitMs - performance.now();
    const isEnough = this.#evict(next.allocation.needBytes, { isPatient: dueInMs > 0 });
    if (!isEnough && dueInMs > 0) this.#timer = setTimeout(() => this.schedule(), dueInMs).unref();
  }

  /**
   * Evicts idle models, least recently used first, then busy ones unless `isPatient`.
   *
   * @returns false if too little memory can be freed; if `isPatient`, no model is evicted then.
   */
  #evict(neededBytes: number, { isPatient }: { isPatient: boolean }): boolean {
    const loaded = this.#allocations
      .filter(({ heldBytes }) => heldBytes > 0)
      .toSorted((left, right) => Number(right.isIdle) - Number(left.isIdle) || left.usedAtMs - right.usedAtMs)
      .filter(({ isIdle }) => isIdle || !isPatient);
    if (isPatient && this.#freeBytes + sumOf(loaded) < neededBytes) return false;
    let bytes = this.#freeBytes + sumOf(loaded.filter(({ isGivingUp }) => isGivingUp));
    for (const allocation of loaded.filter(({ isGivingUp }) => !isGivingUp)) {
      if (bytes >= neededBytes) break;
      const { model, heldBytes, tenant } = allocation;
      bytes += heldBytes;
      this.options.log.info({ model, bytes: heldBytes, for: this.#waiters[0]?.allocation.model }, 'evicting model');
      tenant?.giveUp();
    }
    return bytes >= neededBytes;
  }

  get #freeBytes(): number {
    return this.options.budgetBytes - this.heldBytes;
  }

  assertFits(model: string, bytes: number): void {
    const { budgetBytes } = this.options;
    if (bytes <= budgetBytes) return;
    const [needed, budget] = [bytes, budgetBytes].map((size) => Math.ceil(size / 1e6));
    const problem = `${model} needs ${needed} MB of memory, expected at most MEMORY_BUDGET_MB (${budget})`;
    throw new DarkroomError('model_unsupported', 'worker.memory', problem);
  }
}

function sumOf(allocations: readonly MemoryAllocation[]): number {
  return allocations.reduce((sum, { heldBytes }) => sum + heldBytes, 0);
}
