/**
 * Quantiles of the symmetric beta distribution Beta(a, a), for the sigmas of "Beta Sampling is All You Need" (Lee et al.
 * 2024), which diffusers takes from `scipy.stats.beta.ppf`.
 *
 * Only x up to ½ is ever computed, where the power series of the incomplete beta function halves its terms at least; the
 * other half is its mirror image. The complete beta function needs no gamma function either, as half of it lies below ½.
 */

/** Newton's method from a start on the right side of the root doubles its digits; this many steps reach the last one. */
const NEWTON_STEPS = 60;

/**
 * The x below which Beta(`shape`, `shape`) has the probability `probability`, to 14 digits or better.
 *
 * @param shape 0 < shape ≤ 1, where the density rises towards both ends; diffusers has 0.6.
 * @param probability 0 … 1.
 */
export function symmetricBetaQuantile(probability: number, shape: number): number {
  if (probability > 0.5) return 1 - symmetricBetaQuantile(1 - probability, shape);
  if (probability <= 0) return 0;
  const area = probability * 2 * incompleteBeta(0.5, shape);
  // The first term of the series alone. All terms are positive, so this is above the root and, the function being
  // concave there, the next guess is below it and all others come up to it from there.
  let x = Math.min((area * shape) ** (1 / shape), 0.5);
  for (let step = 0; step < NEWTON_STEPS; step++) {
    const next = x - (incompleteBeta(x, shape) - area) / (x * (1 - x)) ** (shape - 1);
    if (Math.abs(next - x) <= Number.EPSILON * x) return next;
    x = next;
  }
  return x;
}

/**
 * ∫ t^(a−1) (1 − t)^(a−1) dt from 0 to x ≤ ½: x^a Σ (1 − a)(2 − a)…(n − a) / n! · x^n / (a + n)
 * (Abramowitz and Stegun 6.6.1 with the binomial series).
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
