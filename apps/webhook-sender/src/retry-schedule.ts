/** Pauses between the attempts of a delivery, s: each about three times the one before, ten hours in all. */
const pausesS = [5, 15, 60, 3 * 60, 10 * 60, 30 * 60, 90 * 60, 3 * 3600, 5 * 3600];
export const retryDelaysMs: readonly number[] = pausesS.map((pauseS) => pauseS * 1000);

/** A fifth more or less, so that what failed together does not come back together. */
const jitter = 0.2;

export type RetrySchedule = ReturnType<typeof createRetrySchedule>;

export function createRetrySchedule(delaysMs: readonly number[] = retryDelaysMs, random: () => number = Math.random) {
  return {
    attempts: delaysMs.length + 1,
    /** The pause after an attempt, counted from 1, ms. */
    delayMs: (attempt: number) => Math.round((delaysMs[attempt - 1] ?? 0) * (1 - jitter + 2 * jitter * random())),
  };
}
