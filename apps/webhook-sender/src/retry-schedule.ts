/** Pauses between the attempts of a delivery, s; each is about three times the previous one; ten hours in total. */
const pausesS = [5, 15, 60, 3 * 60, 10 * 60, 30 * 60, 90 * 60, 3 * 3600, 5 * 3600];
export const retryDelaysMs: readonly number[] = pausesS.map((pauseS) => pauseS * 1000);

/** ±20 %, so that deliveries that failed together are not retried together. */
const jitter = 0.2;

export type RetrySchedule = ReturnType<typeof createRetrySchedule>;

export function createRetrySchedule(delaysMs: readonly number[] = retryDelaysMs, random: () => number = Math.random) {
  return {
    attempts: delaysMs.length + 1,
    /** Returns the pause after this attempt (counted from 1), ms. */
    delayMs: (attempt: number) => Math.round((delaysMs[attempt - 1] ?? 0) * (1 - jitter + 2 * jitter * random())),
  };
}
