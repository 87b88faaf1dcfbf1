/**
 * Quantiles of the symmetric beta distribution Beta(a, a), for the sigmas of "Beta Sampling is All You Need" (Lee et
 * al. 2024); diffusers uses `scipy.stats.beta.ppf`.
 *
 * Only x up to ½ is computed, where the terms of the incomplete beta function's power series at least halve; the other
 * half follows by symmetry. No gamma function is needed: the complete beta function is twice the integral up to ½.
 */

/** Maximum number of Newton steps. From a start on the right side of the root, each doubles the number of digits. */
const NEWTON_STEPS = 60;

/**
 * Returns the x below which Beta(`shape`, `shape`) has the given probability, to at least 14 digits.
 *
 * @param shape 0 < shape ≤ 1, where the density rises towards both ends; diffusers uses 0.6.
 * @param probability 0 … 1.
 */
export function symmetricBetaQuantile(probability: number, shape: number): number {
  if (probability > 0.5) return 1 - symmetricBetaQuantile(1 - probability, shape);
  if (probability <= 0) return 0;
  const area = probability * 2 * incompleteBeta(0.5, shape);
  // Start with the first term of the series. All terms are positive, so the start is above the root. The function is
  // concave there, so the next value is below the root and all further ones approach it from below.
  let x = Math.min((area * shape) ** (1 / shape), 0.5);
  for (let step = 0; step < NEWTON_STEPS; step++) {
    const next = x - (incompleteBeta(x, shape) - area) / (x * (1 - x)) ** (shape - 1);
    if (Math.abs(next - x) <= Number.EPSILON * x) return next;
    x = next;
  }
  return x;
}

/**
 * Integrates t^(a−1) (1 − t)^(a−1) from 0 to x ≤ ½: x^a Σ (1 − a)(2 − a)…(n − a) / n! · x^n / (a + n) (Abramowitz and
 * Stegun 6.6.1 with the binomial series).
 */
function incompleteBeta(x: number, shape: number): number {
  let coefficient = 1;
  let sum = 0;
  for (let index = 0; ; index++) {
    const term = coefficient / (shape + index);
    sum += term;
    if (term <= sum * (Number.EPSILON / 4)) return x ** shape * sum;
    coefficient *= ((index + 1 - shape) / (index + 1)) * x;
  }
}
