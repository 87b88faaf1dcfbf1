import { describe, expect, it } from 'vitest';
import recorded from '../../../../../tools/golden/vectors/beta-quantiles.json' with { type: 'json' };
import { symmetricBetaQuantile } from './beta-quantile.ts';

describe('symmetricBetaQuantile', () => {
  it('has the quantiles of scipy', () => {
    const wrong = (recorded.quantiles as [number, number, number][]).filter(
      ([probability, shape, quantile]) =>
        !(Math.abs(symmetricBetaQuantile(probability, shape) - quantile) <= 1e-14 * quantile),
    );
    expect(wrong).toEqual([]);
  });

  it('falls from 1 to 0 with the probability', () => {
    const quantiles = Array.from({ length: 1001 }, (_, index) => symmetricBetaQuantile(1 - index / 1000, 0.6));
    expect([quantiles[0], quantiles[500], quantiles[1000]]).toEqual([1, 0.5, 0]);
    expect(quantiles.every((quantile, index) => index === 0 || quantile < quantiles[index - 1]!)).toBe(true);
  });
});
