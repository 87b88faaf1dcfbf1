import type { ClientContext } from './client-context.ts';

const firstMs = 250;
const maxMs = 15_000;
/** The longest timer there is; a longer one would fire at once. */
const maxTimerMs = 2 ** 31 - 1;

export interface BackOff {
  /** Tries in a row that brought nothing, before the one that just did so. */
  failures: number;
  /** What the server's `retry:` asks for, in place of the first wait. */
  retryMs?: number | undefined;
  /** What the server's `Retry-After` asks for: never less. */
  retryAfterS?: number | undefined;
}

/**
 * Milliseconds to wait before the next try: doubled each time up to 15 s, and up to half as much again by chance, so
 * that a thousand clients of a process that died do not come back in the same moment.
 */
export function backOffMs(
  { random }: ClientContext,
  { failures, retryMs = firstMs, retryAfterS = 0 }: BackOff,
): number {
  const grownMs = failures === 0 ? retryMs : Math.max(retryMs, firstMs) * 2 ** failures;
  const baseMs = Math.max(retryMs, Math.min(maxMs, grownMs), retryAfterS * 1000);
  return Math.min(maxTimerMs, Math.round(baseMs * (1 + random() / 2)));
}
