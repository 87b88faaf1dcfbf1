/** The shift that goes with the size of a picture, as the families' pipelines derive it (both called `calculate_shift`). */

import type { FlowConfig } from '../config/scheduler-config.ts';

/**
 * By straight line between the shifts at two sizes (diffusers' `StableDiffusion3Pipeline` and Flux).
 *
 * @param imageSeqLen how many patches the transformer sees of the picture.
 */
export function interpolatedShift(flow: FlowConfig, imageSeqLen: number): number {
  const { baseShift, maxShift, baseImageSeqLen, maxImageSeqLen } = flow;
  const slope = (maxShift - baseShift) / (maxImageSeqLen - baseImageSeqLen);
  return imageSeqLen * slope + (baseShift - slope * baseImageSeqLen);
}

/**
 * By the square root of the size (diffusers' `CogView4Pipeline`).
 *
 * @param imageSeqLen how many patches the transformer sees of the picture.
 */
export function squareRootShift(flow: FlowConfig, imageSeqLen: number): number {
  const { baseShift, maxShift, baseImageSeqLen } = flow;
  return Math.sqrt(imageSeqLen / baseImageSeqLen) * maxShift + baseShift;
}
