import type { DynamicThresholding } from './config/scheduler-config.ts';

/**
 * Makes a function that presses x0 estimates into −1 … 1 by their own extremes: all values are clipped to ± s and divided
 * by s, the quantile `ratio` of their magnitudes, within 1 … `maxValue`.
 * Source: Saharia et al. 2022, "Imagen", section 2.3; diffusers `_threshold_sample`.
 *
 * @returns changes the array it is given; keeps one array of its own between calls, so that steps allocate nothing.
 */
export function createDynamicThreshold({ ratio, maxValue }: DynamicThresholding): (original: Float32Array) => void {
  let sorted = new Float32Array(0);
  return (original) => {
    if (sorted.length !== original.length) sorted = new Float32Array(original.length);
    for (let index = 0; index < original.length; index++) sorted[index] = Math.abs(original[index]!);
    sorted.sort();
    // torch.quantile: by straight line between the two nearest ranks.
    const rank = ratio * (sorted.length - 1);
    const below = sorted[Math.floor(rank)]!;
    const quantile = below + (sorted[Math.ceil(rank)]! - below) * (rank - Math.floor(rank));
    // torch.clamp with a minimum above its maximum gives the maximum.
    const limit = Math.min(Math.max(quantile, 1), maxValue);
    for (let index = 0; index < original.length; index++) {
      original[index] = Math.min(Math.max(original[index]!, -limit), limit) / limit;
    }
  };
}
