/** Injected clock, so that policies can be tested without waiting. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/** Calls `tick` at an interval; returns a function that stops it. Injected like `Clock`. */
export type Every = (intervalMs: number, tick: () => void) => () => void;

/** `Every` in real time. */
export const everyInterval: Every = (intervalMs, tick) => {
  const timer = setInterval(tick, intervalMs);
  return () => clearInterval(timer);
};

/** Formats a time as ISO 8601; null for undefined. */
export function isoTime<Time extends number | undefined>(timeMs: Time): Time extends number ? string : string | null {
  return (timeMs === undefined ? null : new Date(timeMs).toISOString()) as Time extends number ? string : string | null;
}
