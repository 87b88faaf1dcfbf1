/** Summary statistics. */
import type { Bar } from './plot.ts';

/** Returns the median; for an even number of values the lower of the two middle ones. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Returns the value below which `share` (0–1) of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
}

/** Returns the median of rounds, with minimum and maximum; undefined without rounds. */
export function medianWithRange(rounds: readonly number[]): Bar | undefined {
  if (rounds.length === 0) return undefined;
  const value = median(rounds);
  return rounds.length === 1 ? { value } : { value, spread: [Math.min(...rounds), Math.max(...rounds)] };
}
