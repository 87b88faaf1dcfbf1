import { numberAt } from '@darkroom/core';
import type { ImageRowInput } from './image-request.ts';

/**
 * Applies classifier-free guidance in float32: uncond + scale · (cond − uncond), and rescales the result.
 * Source: Ho and Salimans 2022; Lin et al. 2023, section 3.4; diffusers `rescale_noise_cfg`.
 *
 * @param unconditional the model's output without the prompt; overwritten with the result and returned.
 * @param conditional the model's output with the prompt; `guidanceRescale` (0 … 1) moves the result's standard
 * deviation towards that of this output.
 */
export function guide(
  unconditional: Float32Array,
  conditional: Float32Array,
  { guidanceScale, guidanceRescale }: Pick<ImageRowInput, 'guidanceScale' | 'guidanceRescale'>,
): Float32Array {
  const guided = unconditional;
  const scale = Math.fround(guidanceScale);
  for (let at = 0; at < guided.length; at++) {
    const difference = Math.fround(numberAt(conditional, at) - numberAt(unconditional, at));
    guided[at] = numberAt(unconditional, at) + Math.fround(scale * difference);
  }
  if (guidanceRescale > 0) rescale(guided, conditional, Math.fround(guidanceRescale));
  return guided;
}

function rescale(guided: Float32Array, conditional: Float32Array, part: number): void {
  const ratio = Math.fround(spread(conditional) / spread(guided));
  const rest = Math.fround(1 - part);
  for (let at = 0; at < guided.length; at++) {
    const rescaled = Math.fround(numberAt(guided, at) * ratio);
    guided[at] = Math.fround(part * rescaled) + Math.fround(rest * numberAt(guided, at));
  }
}

/** Returns the standard deviation without its normalization by the number of values. */
function spread(values: Float32Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  const mean = sum / values.length;
  let squares = 0;
  for (const value of values) squares += (value - mean) ** 2;
  return Math.sqrt(squares);
}
