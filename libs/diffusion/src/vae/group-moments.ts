import { numberAt } from '@darkroom/core';
import type { FloatTensor } from '@darkroom/runtime';

/**
 * Accumulates mean and variance of each group of channels from tiles. Sums of squares are taken around each tile's own
 * mean and combined by Chan's formula: sums around 0 would cancel.
 * Source: Chan, Golub and LeVeque 1979, "Updating formulae and a pairwise algorithm for computing sample variances".
 */
export class GroupMoments {
  readonly #groups: { count: number; mean: number; squares: number }[];

  constructor(groups: number) {
    this.#groups = Array.from({ length: groups }, () => ({ count: 0, mean: 0, squares: 0 }));
  }

  /** Adds rows of a tile, whose dimensions are 1, channels, height and width. */
  add({ data, dims }: FloatTensor, { first, count }: { first: number; count: number }): void {
    const [, channels = 0, height = 0, width = 0] = dims;
    const perGroup = channels / this.#groups.length;
    const rows = (channel: number): Float32Array =>
      data.subarray((channel * height + first) * width, (channel * height + first + count) * width);
    for (const [at, group] of this.#groups.entries()) {
      const members = Array.from({ length: perGroup }, (_, member) => rows(at * perGroup + member));
      combine(group, momentsOf(members));
    }
  }

  /** Returns a norm's inputs: means, and one over the standard deviations. */
  read(epsilon: number): { means: Float32Array; inverses: Float32Array } {
    const means = Float32Array.from(this.#groups, ({ mean }) => mean);
    const inverses = Float32Array.from(this.#groups, ({ count, squares }) => 1 / Math.sqrt(squares / count + epsilon));
    return { means, inverses };
  }
}

interface Moments {
  count: number;
  mean: number;
  /** Sum of squared deviations from the mean. */
  squares: number;
}

function momentsOf(parts: readonly Float32Array[]): Moments {
  let count = 0;
  let sum = 0;
  for (const values of parts) {
    count += values.length;
    for (let at = 0; at < values.length; at++) sum += numberAt(values, at);
  }
  const mean = sum / count;
  let squares = 0;
  for (const values of parts) for (let at = 0; at < values.length; at++) squares += (numberAt(values, at) - mean) ** 2;
  return { count, mean, squares };
}

function combine(into: Moments, { count, mean, squares }: Moments): void {
  const total = into.count + count;
  const difference = mean - into.mean;
  into.squares += squares + (difference * difference * into.count * count) / total;
  into.mean += (difference * count) / total;
  into.count = total;
}
