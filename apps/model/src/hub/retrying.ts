import { setTimeout as delay } from 'node:timers/promises';
import { BrokenConnectionError } from './broken-connection-error.ts';

/** Failures in a row after which it is given up; with the pauses between them that takes about two minutes. */
const mostFailures = 7;
/** The longest wish of the hub to be left alone that is granted. */
const longestPauseMs = 300_000;

export interface RetryOptions {
  signal: AbortSignal;
  /** The pause after so many failures in a row. */
  pauseMs?: (failures: number) => number;
  say: (message: string) => void;
}

/**
 * Does something until it succeeds, as long as what it fails by may pass.
 *
 * @param attempt told to call `onProgress` when it got anywhere: failures are counted in a row.
 * @throws BrokenConnectionError the last one, or whatever else `attempt` throws.
 */
export async function retrying<Result>(
  attempt: (onProgress: () => void) => Promise<Result>,
  { signal, pauseMs = (failures) => Math.min(30_000, 500 * 2 ** failures), say }: RetryOptions,
): Promise<Result> {
  for (let failures = 0; ;) {
    try {
      return await attempt(() => (failures = 0));
    } catch (error) {
      if (!(error instanceof BrokenConnectionError) || ++failures >= mostFailures) throw error;
      const wantedMs = Math.min(longestPauseMs, error.retryAfterMs ?? 0);
      const waitMs = Math.max(wantedMs, pauseMs(failures));
      say(`${error.message}; trying again in ${(waitMs / 1000).toFixed(waitMs < 1000 ? 1 : 0)} s`);
      await delay(waitMs, undefined, { signal });
    }
  }
}
