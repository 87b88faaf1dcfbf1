import type { WorkerPace } from '@darkroom/core';
import { type Executor, type ExecutorEvent, isRequestEnd } from '@darkroom/executor';
import type { Logger } from '@darkroom/service';

export interface EngineWatchOptions {
  /** Silence that is always borne, ms; before an engine's first step ten times as much, for what is only done once. */
  timeoutMs: number;
  /** The longest pause between two looks that counts whole: in a longer one this process did not run either, ms. */
  longestPauseMs: number;
}

const firstStepFactor = 10;
/** Steps' worth of time for what no step tells of, the decoding of one picture above all: it takes two or three. */
const decodeSteps = 10;

/**
 * Notices an engine that has work and says nothing, such as one whose call to the device never returns: it lives, so
 * nobody else would. It is given as long as all of its work should take, so that nothing slow is taken for a hang.
 */
export class EngineWatch {
  readonly #options: EngineWatchOptions;
  /** Requests that the engine has, by the name it knows them by. */
  readonly #inside = new Set<string>();
  #silentMs = 0;
  /** This engine, not one before it. */
  #hasStepped = false;
  /** Since the last look. */
  #hasSpoken = false;
  #lookedAtMs: number | undefined;
  #timesOverdue = 0;

  constructor(options: EngineWatchOptions) {
    this.#options = options;
  }

  submitted(requestId: string): void {
    if (this.#inside.size === 0) this.#hasSpoken = true;
    this.#inside.add(requestId);
  }

  /** Another engine is about to be started. */
  renew(): void {
    this.#hasStepped = false;
    this.#timesOverdue = 0;
  }

  observe(events: readonly ExecutorEvent[]): void {
    this.#hasSpoken = true;
    for (const event of events) {
      if (event.type === 'stats') this.#hasStepped = true;
      else if (event.type === 'engine-lost') {
        this.renew();
        this.#inside.clear();
      } else if (isRequestEnd(event)) this.#inside.delete(event.requestId);
    }
  }

  /**
   * Kills an engine that hangs. One that the kernel cannot end, since it hangs in a call to a driver, never counts as
   * lost: its requests would stay here until their deadlines, with every lock renewed. So this process goes, and others
   * take them over. To be called again and again.
   */
  endIfHung(executor: Executor, { pace, log }: { pace: WorkerPace | undefined; log: Logger }): void {
    const timesOverdue = this.look(performance.now(), pace);
    const facts = { requests: this.#inside.size };
    if (timesOverdue === 1) {
      log.error(facts, 'the engine has work and says nothing: killing it');
      executor.kill();
    } else if (timesOverdue > 1) {
      log.fatal(facts, 'the engine cannot be killed: see the driver and its device');
      process.exit(1);
    }
  }

  /** 0, but once for each time that its patience is over: how often that was with this engine. */
  look(nowMs: number, pace: WorkerPace | undefined): number {
    const { timeoutMs, longestPauseMs } = this.#options;
    const passedMs = Math.min(nowMs - (this.#lookedAtMs ?? nowMs), longestPauseMs);
    this.#silentMs = this.#hasSpoken ? 0 : this.#silentMs + passedMs;
    this.#hasSpoken = false;
    this.#lookedAtMs = nowMs;
    const leastMs = this.#hasStepped ? timeoutMs : firstStepFactor * timeoutMs;
    const dueMs = pace ? [pace.costMs.slow * pace.remainingCost, decodeSteps * pace.stepMs.slow] : [];
    const patienceMs = Math.max(leastMs, ...dueMs);
    if (this.#inside.size === 0 || this.#silentMs <= patienceMs) return 0;
    this.#silentMs = 0;
    return ++this.#timesOverdue;
  }
}
