/** Time as an argument, so that policy can be tested without waiting. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** ISO 8601, or null for what has not happened. */
export function isoTime<Time extends number | undefined>(timeMs: Time): Time extends number ? string : string | null {
  return (timeMs === undefined ? null : new Date(timeMs).toISOString()) as Time extends number ? string : string | null;
}
