import { setTimeout as delay } from 'node:timers/promises';

export interface RetryOptions {
  /** Returns the pause after this many failures, ms; undefined if the error must be thrown. */
  pauseMs: (error: unknown, failures: number) => number | undefined;
  /** Each of them ends a pause. */
  signals?: readonly AbortSignal[];
}

/**
 * Repeats an operation until it succeeds.
 *
 * @throws the last error, or an AbortError if a signal aborts during a pause.
 */
export async function retry<Result>(
  attempt: () => Promise<Result>,
  { pauseMs, signals = [] }: RetryOptions,
): Promise<Result> {
  for (let failures = 1; ; failures++) {
    let ms: number | undefined;
    try {
      return await attempt();
    } catch (error) {
      ms = pauseMs(error, failures);
      if (ms === undefined) throw error;
    }
    await delay(ms, undefined, { signal: AbortSignal.any([...signals]) });
  }
}

/** Returns the pause after this many failures, ms: it doubles with each one, up to a maximum. */
export function backOffMs(failures: number, { firstMs, maxMs }: { firstMs: number; maxMs: number }): number {
  return Math.min(maxMs, firstMs * 2 ** (failures - 1));
}

export interface BackOffOptions {
  /** Pause after the second failure, ms; doubles with each further one. The first failure has no pause. */
  firstMs: number;
  /** Longest pause, ms. */
  maxMs: number;
  /** A failure after a healthy time of at least this long counts as the first one again, ms. */
  resetAfterMs: number;
}

/** Exponential back-off for retries and restarts. */
export class BackOff {
  readonly #options: BackOffOptions;
  #failures = 0;

  constructor(options: BackOffOptions) {
    this.#options = options;
  }

  /** Counts a failure after `wellMs` of healthy running. @returns the pause before the next try, ms. */
  next(healthyMs = 0): number {
    const { firstMs, maxMs, resetAfterMs } = this.#options;
    this.#failures = healthyMs >= resetAfterMs ? 1 : this.#failures + 1;
    return this.#failures === 1 ? 0 : backOffMs(this.#failures - 1, { firstMs, maxMs });
  }
}
