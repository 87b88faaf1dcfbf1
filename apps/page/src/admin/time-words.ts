const units: readonly [name: string, seconds: number][] = [
  ['d', 86_400],
  ['h', 3600],
  ['min', 60],
];

/**
 * Formats a duration in its largest unit: `0.4 s`, `12 s`, `3 min`, `2 h`. Negative durations, from clocks that differ,
 * are 0.
 */
export function spanWords(seconds: number): string {
  const span = Math.max(0, seconds);
  for (const [name, size] of units) if (span >= size) return `${Math.floor(span / size)} ${name}`;
  return `${span < 10 ? span.toFixed(1) : Math.floor(span)} s`;
}

/** Formats the time between two ISO 8601 timestamps, such as `3 min ago`. */
export function agoWords(then: string, now: string): string {
  return `${spanWords((Date.parse(now) - Date.parse(then)) / 1000)} ago`;
}
