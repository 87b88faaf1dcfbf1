/** Many values as few. */
import type { Bar } from './plot.ts';

/** The middle value; of an even number the lower of the two. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value below which `share` (0–1) of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor((sorted.length - 1) * share)] ?? Number.NaN;
}

/** Of rounds: the middle one, with the lowest and the highest; undefined without any. */
export function middle(rounds: readonly number[]): Bar | undefined {
  if (rounds.length === 0) return undefined;
  const value = median(rounds);
  return rounds.length === 1 ? { value } : { value, spread: [Math.min(...rounds), Math.max(...rounds)] };
}
