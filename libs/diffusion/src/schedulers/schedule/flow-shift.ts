/** How the sigmas of a flow model are shifted towards noise, by the config's shift or by one that goes with the size of a picture. */

import type { SchedulerConfig } from '../config/scheduler-config.ts';

/**
 * The shift that goes with a size, by straight line between those at two sizes (diffusers' `StableDiffusion3Pipeline` and
 * Flux: `calculate_shift`).
 *
 * @param imageSeqLen how many patches the transformer sees of the picture.
 */
export function interpolatedShift(config: SchedulerConfig, imageSeqLen: number): number {
  const { baseShift, maxShift, baseImageSeqLen, maxImageSeqLen } = config;
  const slope = (maxShift - baseShift) / (maxImageSeqLen - baseImageSeqLen);
  return imageSeqLen * slope + (baseShift - slope * baseImageSeqLen);
}

/** The same by the square root of the size (diffusers' `CogView4Pipeline`: `calculate_shift`). */
export function squareRootShift(
  { baseShift, maxShift, baseImageSeqLen }: SchedulerConfig,
  imageSeqLen: number,
): number {
  return Math.sqrt(imageSeqLen / baseImageSeqLen) * maxShift + baseShift;
}

export interface ShiftOptions {
  config: SchedulerConfig;
  dynamicShift: number | undefined;
  /** Applied after each operation: `Math.fround` where numpy has float32, which it has for sigmas that it is given. */
  round: (value: number) => number;
}

/**
 * Shifts sigmas, and stretches them to their end where the config has one.
 * Source: Esser et al. 2024, "Scaling Rectified Flow Transformers", section 5.3.2; diffusers
 * `FlowMatchEulerDiscreteScheduler.time_shift` and `stretch_shift_to_terminal`.
 *
 * @throws RangeError if the config wants a dynamic shift and there is none.
 */
export function shiftedSigmas(sigmas: readonly number[], options: ShiftOptions): number[] {
  const { config, round } = options;
  const shifted = sigmas.map(createShift(options));
  if (config.shiftTerminal === null) return shifted;
  const rests = shifted.map((sigma) => round(1 - sigma));
  const scale = round(rests.at(-1)! / round(1 - config.shiftTerminal));
  return rests.map((rest) => round(1 - round(rest / scale)));
}

function createShift({ config, dynamicShift, round }: ShiftOptions): (sigma: number) => number {
  const { shift, useDynamicShifting, timeShiftType } = config;
  if (!useDynamicShifting) {
    const more = round(shift - 1);
    return (sigma) => round(round(round(shift) * sigma) / round(1 + round(more * sigma)));
  }
  if (dynamicShift === undefined) {
    throw new RangeError('the config has use_dynamic_shifting: dynamicShift must be given');
  }
  const factor = round(timeShiftType === 'exponential' ? Math.exp(dynamicShift) : dynamicShift);
  return (sigma) => round(factor / round(factor + round(round(1 / sigma) - 1)));
}
