import type { FlowConfig } from '../config/scheduler-config.ts';

/**
 * Shifts the sigmas of a flow model towards noise, by the config's shift or the one that goes with the picture's size, and
 * stretches them to their end where the config has one.
 * Source: Esser et al. 2024, "Scaling Rectified Flow Transformers", section 5.3.2; diffusers
 * `FlowMatchEulerDiscreteScheduler.time_shift` and `stretch_shift_to_terminal`.
 *
 * @param round applied after each operation: `Math.fround` where numpy has float32, which it has for sigmas that it is given.
 * @throws RangeError if the config wants a dynamic shift and there is none.
 */
export function shiftedSigmas(
  sigmas: readonly number[],
  {
    flow,
    dynamicShift,
    round,
  }: { flow: FlowConfig; dynamicShift: number | undefined; round: (value: number) => number },
): number[] {
  const shifted = sigmas.map(createShift(flow, dynamicShift, round));
  if (flow.shiftTerminal === null) return shifted;
  const rests = shifted.map((sigma) => round(1 - sigma));
  const scale = round(rests.at(-1)! / round(1 - flow.shiftTerminal));
  return rests.map((rest) => round(1 - round(rest / scale)));
}

function createShift(
  { shift, useDynamicShifting, timeShiftType }: FlowConfig,
  dynamicShift: number | undefined,
  round: (value: number) => number,
): (sigma: number) => number {
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
