import type { WorkerThroughput } from '@darkroom/core';
import { type Executor, type ExecutorEvent, isRequestEnd } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';

export interface EngineWatchOptions {
  /** Silence that is always tolerated, ms; ten times as much before the first step, which includes one-time work. */
  timeoutMs: number;
  /** Longest gap between two polls that counts in full, ms; in a longer one this process was paused too. */
  maxGapMs: number;
}

const firstStepFactor = 10;
/** Silence tolerated for work without step events, in steps. Decoding one image takes two or three. */
const decodeSteps = 10;

/**
 * Detects a hung engine: one that has requests and sends no events, such as one whose call to the device never returns.
 * It waits as long as all of the engine's work should take, so that a slow engine is not taken for a hung one.
 */
export class EngineWatch {
  readonly #options: EngineWatchOptions;
  /** Ids of the requests in the engine. */
  readonly #requests = new Set<string>();
  #silenceMs = 0;
  /** Refers to the current engine process only. */
  #hasStepped = false;
  /** Since the last poll. */
  #hasNewEvents = false;
  #polledAtMs: number | undefined;
  #overdueCount = 0;

  constructor(options: EngineWatchOptions) {
    this.#options = options;
  }

  submitted(requestId: string): void {
    if (this.#requests.size === 0) this.#hasNewEvents = true;
    this.#requests.add(requestId);
  }

  /** Resets the state for a new engine process. */
  reset(): void {
    this.#hasStepped = false;
    this.#overdueCount = 0;
  }

  observe(events: readonly ExecutorEvent[]): void {
    this.#hasNewEvents = true;
    for (const event of events) {
      if (event.type === 'stats') this.#hasStepped = true;
      else if (event.type === 'engine-lost') {
        this.reset();
        this.#requests.clear();
      } else if (isRequestEnd(event)) this.#requests.delete(event.requestId);
    }
  }

  /**
   * Kills a hung engine. Call on every tick. If the kernel cannot end it, because it hangs in a driver call, this
   * process exits, so that other workers take over its requests, which would otherwise stay leased until their
   * deadlines.
   */
  endIfHung(executor: Executor, { pace, log }: { pace: WorkerThroughput | undefined; log: Logger }): void {
    const overdueCount = this.poll(performance.now(), pace);
    const fields = { requests: this.#requests.size };
    if (overdueCount === 1) {
      log.error(fields, 'engine hung: it has requests and sends no events; killing it');
      executor.kill();
    } else if (overdueCount > 1) {
      log.fatal(fields, 'could not kill the hung engine: check the driver and the device; exiting');
      process.exit(1);
    }
  }

  /** @returns 0, or, once per expired timeout, how often it has expired with this engine. */
  poll(nowMs: number, pace: WorkerThroughput | undefined): number {
    const { timeoutMs, maxGapMs } = this.#options;
    const elapsedMs = Math.min(nowMs - (this.#polledAtMs ?? nowMs), maxGapMs);
    this.#silenceMs = this.#hasNewEvents ? 0 : this.#silenceMs + elapsedMs;
    this.#hasNewEvents = false;
    this.#polledAtMs = nowMs;
    const minMs = this.#hasStepped ? timeoutMs : firstStepFactor * timeoutMs;
    const dueMs = pace ? [pace.costMs.slow * pace.remainingCost, decodeSteps * pace.stepMs.slow] : [];
    const limitMs = Math.max(minMs, ...dueMs);
    if (this.#requests.size === 0 || this.#silenceMs <= limitMs) return 0;
    this.#silenceMs = 0;
    return ++this.#overdueCount;
  }
}
