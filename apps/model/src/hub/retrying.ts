import { backOffMs, retry } from '@darkroom/core';
import { BrokenConnectionError } from './broken-connection-error.ts';

/** Max. consecutive failures; with the pauses between them about two minutes. */
const maxFailures = 7;
/** Max. Retry-After that is honoured, ms. */
const maxRetryAfterMs = 300_000;

export interface RetryOptions {
  signal: AbortSignal;
  /** Returns the pause after this many consecutive failures, ms. */
  pauseMs?: (failures: number) => number;
  report: (message: string) => void;
}

/**
 * Retries an operation as long as it fails with a BrokenConnectionError.
 *
 * @param attempt calls `onProgress` on progress, which resets the count of failures.
 * @throws the last BrokenConnectionError, or any other error of `attempt`.
 */
export async function withRetries<Result>(
  attempt: (onProgress: () => void) => Promise<Result>,
  { signal, pauseMs = (failures) => backOffMs(failures, { firstMs: 1000, maxMs: 30_000 }), report }: RetryOptions,
): Promise<Result> {
  let failures = 0;
  return retry(() => attempt(() => (failures = 0)), {
    signals: [signal],
    pauseMs(error) {
      if (!(error instanceof BrokenConnectionError) || ++failures >= maxFailures) return undefined;
      const retryAfterMs = Math.min(maxRetryAfterMs, error.retryAfterMs ?? 0);
      const waitMs = Math.max(retryAfterMs, pauseMs(failures));
      report(`${error.message}; trying again in ${(waitMs / 1000).toFixed(waitMs < 1000 ? 1 : 0)} s`);
      return waitMs;
    },
  });
}
