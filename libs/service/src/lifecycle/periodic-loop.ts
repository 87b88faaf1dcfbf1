import { WakeSignal } from '@darkroom/core';
import type { Logger } from '../logging/logger.ts';
import { BaseService } from './service.ts';

export interface PeriodicLoopOptions {
  /** Name in log lines. */
  name: string;
  /** Pause after a tick, ms; 0 for a `runOnce` that blocks until there is work. */
  intervalMs: number;
  /** Runs one tick. The signal aborts when the loop stops. */
  runOnce: (signal: AbortSignal) => Promise<unknown>;
  log: Logger;
}

/** Minimum pause after a failed tick, ms, so that an unavailable Redis is not queried in a tight loop. */
const errorIntervalMs = 500;

/**
 * Calls `runOnce` repeatedly, never concurrently. Logs a tick that throws and continues. Owners expose their `runOnce`,
 * so that tests can call it directly.
 */
export class PeriodicLoop extends BaseService<PeriodicLoopOptions> {
  #stopping = new AbortController();
  readonly #triggered = new WakeSignal();
  #running: Promise<void> | undefined;
  /** Triggers that wait for the end of the next tick. */
  #waiting: (() => void)[] = [];

  /** Runs a tick now, or after the current one. Resolves at its end, or when the loop stops first. */
  trigger(): Promise<void> {
    if (!this.#running) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#triggered.wake();
    });
  }

  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    this.#running = this.#run(this.#stopping.signal);
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    this.#running = undefined;
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      this.#triggered.reset();
      const waiting = this.#waiting;
      this.#waiting = [];
      const pauseMs = await this.#runTick(stopping);
      for (const resolve of waiting) resolve();
      await this.#triggered.wait({ timeoutMs: pauseMs, signal: stopping });
    }
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Runs a tick. @returns the pause after it, ms. */
  async #runTick(stopping: AbortSignal): Promise<number> {
    const { name, intervalMs, runOnce, log } = this.options;
    try {
      await runOnce(stopping);
      return intervalMs;
    } catch (error) {
      if (!stopping.aborted) log.error({ err: error, loop: name }, 'tick failed');
      return Math.max(intervalMs, errorIntervalMs);
    }
  }
}
