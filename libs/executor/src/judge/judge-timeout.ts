/** Longest time for a verdict, ms. */
const maxMs = 10_000;

/**
 * Returns the timeout of a verdict, ms. The engine sends no events while moderation is pending: a slow verdict must not
 * count as a hung engine.
 */
export function judgeTimeoutOf(engineTimeoutS: number): number {
  return Math.min(maxMs, engineTimeoutS * 500);
}
