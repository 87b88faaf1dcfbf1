/** Calls `tick` again and again until told to stop. */
export type Every = (intervalMs: number, tick: () => void) => () => void;

/** Above it Node ticks every millisecond instead. REQUEST_TIMEOUT_S may be 30 days. */
const maxTimerMs = 2 ** 31 - 1;

/** Real time; what is longer than a timer can be (24 days) ticks that often. */
export const everyInterval: Every = (intervalMs, tick) => {
  const timer = setInterval(tick, Math.min(intervalMs, maxTimerMs));
  return () => clearInterval(timer);
};
