import type { Logger } from '../logging/logger.ts';
import { BaseService } from './service.ts';

export interface PeriodicLoopOptions {
  /** Shows in log lines. */
  name: string;
  /** The pause after a turn; 0 for a `runOnce` that waits for work by itself. */
  intervalMs: number;
  /** One turn. The signal aborts when the loop is to stop. */
  runOnce: (signal: AbortSignal) => Promise<unknown>;
  log: Logger;
}

/** The pause after a turn that failed, when longer: a Redis that is away must not be asked in a tight loop. */
const errorIntervalMs = 500;

/**
 * Calls a `runOnce` again and again, never two at a time. All that is worth testing is in the `runOnce`, which its
 * owner makes public; this is only the loop around it. A turn that throws is logged and the loop goes on.
 */
export class PeriodicLoop extends BaseService<PeriodicLoopOptions> {
  #stopping = new AbortController();
  #endPause = (): void => {};
  #running: Promise<void> | undefined;
  /** Those who wait for the end of a turn that has not begun yet. */
  #waiting: (() => void)[] = [];

  /** Runs a turn now, or after the one under way; resolves at its end, or when the loop stops before it. */
  trigger(): Promise<void> {
    if (!this.#running) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#endPause();
    });
  }

  protected override async onStart(): Promise<void> {
    this.#stopping = new AbortController();
    this.#running = this.#run(this.#stopping.signal);
  }

  protected override async onStop(): Promise<void> {
    this.#stopping.abort();
    this.#endPause();
    await this.#running;
    this.#running = undefined;
  }

  async #run(stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      const waiting = this.#waiting;
      this.#waiting = [];
      const pauseMs = await this.#takeTurn(stopping);
      for (const resolve of waiting) resolve();
      if (!stopping.aborted && this.#waiting.length === 0) await this.#pause(pauseMs);
    }
    for (const resolve of this.#waiting.splice(0)) resolve();
  }

  /** Ends early when a turn is asked for. An `AbortSignal` for that would make an error with a stack each time. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** The pause that is due after the turn, in milliseconds. */
  async #takeTurn(stopping: AbortSignal): Promise<number> {
    const { name, intervalMs, runOnce, log } = this.options;
    try {
      await runOnce(stopping);
      return intervalMs;
    } catch (error) {
      if (!stopping.aborted) log.error({ err: error, loop: name }, 'a turn failed');
      return Math.max(intervalMs, errorIntervalMs);
    }
  }
}
