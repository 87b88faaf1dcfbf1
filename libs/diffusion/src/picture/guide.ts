import type { PictureRequest } from './picture-request.ts';

/**
 * Classifier-free guidance in float32: uncond + scale · (cond − uncond), and its rescaling.
 * Source: Ho and Salimans 2022; Lin et al. 2023, section 3.4; diffusers `rescale_noise_cfg`.
 *
 * @param unconditional the model's output without the prompt. Overwritten with the result, and returned.
 * @param conditional its output with the prompt, to whose spread `guidanceRescale`, 0 … 1, brings the result back.
 */
export function guide(
  unconditional: Float32Array,
  conditional: Float32Array,
  { guidanceScale, guidanceRescale }: Pick<PictureRequest, 'guidanceScale' | 'guidanceRescale'>,
): Float32Array {
  const guided = unconditional;
  const scale = Math.fround(guidanceScale);
  for (let at = 0; at < guided.length; at++) {
    const difference = Math.fround(conditional[at]! - unconditional[at]!);
    guided[at] = unconditional[at]! + Math.fround(scale * difference);
  }
  if (guidanceRescale > 0) rescale(guided, conditional, Math.fround(guidanceRescale));
  return guided;
}

function rescale(guided: Float32Array, conditional: Float32Array, part: number): void {
  const ratio = Math.fround(spread(conditional) / spread(guided));
  const rest = Math.fround(1 - part);
  for (let at = 0; at < guided.length; at++) {
    const rescaled = Math.fround(guided[at]! * ratio);
    guided[at] = Math.fround(part * rescaled) + Math.fround(rest * guided[at]!);
  }
}

/** The standard deviation, but for a factor that depends on the number of values only. */
function spread(values: Float32Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  const mean = sum / values.length;
  let squares = 0;
  for (const value of values) squares += (value - mean) ** 2;
  return Math.sqrt(squares);
}
