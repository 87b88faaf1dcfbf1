/** Calls `tick` at an interval; returns a function that stops it. */
export type Every = (intervalMs: number, tick: () => void) => () => void;

/** `Every` in real time. */
export const everyInterval: Every = (intervalMs, tick) => {
  const timer = setInterval(tick, intervalMs);
  return () => clearInterval(timer);
};
