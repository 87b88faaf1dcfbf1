/** Injected clock, so that policies can be tested without waiting. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Formats a time as ISO 8601; null for undefined. */
export function isoTime<Time extends number | undefined>(timeMs: Time): Time extends number ? string : string | null {
  return (timeMs === undefined ? null : new Date(timeMs).toISOString()) as Time extends number ? string : string | null;
}
