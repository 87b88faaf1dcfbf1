import { backOffMs } from '@darkroom/core';

export interface RestartBackOffOptions {
  /** Pause after the second failure, ms; doubles with each further one. The first failure has no pause. */
  firstMs: number;
  /** Longest pause, ms. */
  maxMs: number;
  /** A failure after a healthy time of at least this long counts as the first one again, ms. */
  resetAfterMs: number;
}

/** Exponential back-off for retries and restarts. */
export class BackOff {
  readonly #options: RestartBackOffOptions;
  #failures = 0;

  constructor(options: RestartBackOffOptions) {
    this.#options = options;
  }

  /** Counts a failure after `wellMs` of healthy running. @returns the pause before the next try, ms. */
  next(healthyMs = 0): number {
    const { firstMs, maxMs, resetAfterMs } = this.#options;
    this.#failures = healthyMs >= resetAfterMs ? 1 : this.#failures + 1;
    return this.#failures === 1 ? 0 : backOffMs(this.#failures - 1, { firstMs, maxMs });
  }
}
