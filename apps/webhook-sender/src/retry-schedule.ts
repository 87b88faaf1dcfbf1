const second = 1000;
const minute = 60 * second;
const hour = 60 * minute;

/** Pauses between the attempts of a delivery, ms: each about three times the one before, ten hours in all. */
export const retryDelaysMs: readonly number[] = [
  5 * second,
  15 * second,
  minute,
  3 * minute,
  10 * minute,
  30 * minute,
  1.5 * hour,
  3 * hour,
  5 * hour,
];

/** A fifth more or less, so that what failed together does not come back together. */
const jitter = 0.2;

export interface RetrySchedule {
  attempts: number;
  /** The pause after an attempt, counted from 1, ms. */
  delayMs(attempt: number): number;
}

export function createRetrySchedule(
  delaysMs: readonly number[] = retryDelaysMs,
  random: () => number = Math.random,
): RetrySchedule {
  return {
    attempts: delaysMs.length + 1,
    delayMs: (attempt) => Math.round((delaysMs[attempt - 1] ?? 0) * (1 - jitter + 2 * jitter * random())),
  };
}
