/**
 * numpy's grids, which decide the timesteps of a run. Written out because a timestep that lands half-way between two
 * whole numbers must be rounded the same way as there, or a whole run differs.
 */

import type { SchedulerConfig } from '../config/scheduler-config.ts';

/** Rounds to the nearest whole number, halves to the even one (`numpy.round`, Python `round`). */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

/** `count` values from `start` to `stop`, both included (`numpy.linspace`); just `start` if `count` is 1. */
export function linspace(start: number, stop: number, count: number): number[] {
  if (count === 1) return [start];
  const step = (stop - start) / (count - 1);
  return Array.from({ length: count }, (_, index) => (index === count - 1 ? stop : start + index * step));
}

/**
 * The timesteps of "trailing" spacing (Lin et al. 2023, Table 2): from `last` − 1 down in even steps, ending well above 0.
 *
 * @param last one more than the first timestep returned: how many training timesteps are used.
 * @param numTrainTimesteps how many the model has; with `numInferenceSteps` this gives the distance.
 * @returns `numInferenceSteps` falling whole numbers; fewer where `last` is less than `numTrainTimesteps`.
 */
export function trailingTimesteps(last: number, numTrainTimesteps: number, numInferenceSteps: number): number[] {
  const distance = numTrainTimesteps / numInferenceSteps;
  // numpy.arange repeats the difference of its first two values, not the step it was given.
  const difference = last - distance - last;
  // For 62 of the numbers up to 1000 (61, 103, 121 …) arange's rounding gives diffusers one timestep more, and that is
  // −1, which no model was trained on. Those runs end a step earlier here.
  const count = Math.min(Math.ceil(last / distance), numInferenceSteps);
  return Array.from({ length: count }, (_, index) => roundHalfEven(last + index * difference) - 1);
}

export interface SpacedTimestepsOptions {
  count: number;
  /** What becomes of those of linspace spacing, which are fractions; nothing by default. */
  round?: (timestep: number) => number;
  /** How many training timesteps are used; all by default. */
  used?: number;
  /** Whether the training is divided by one step more, and that at timestep 0 left out. Not with trailing spacing. */
  leavesOutLast?: boolean;
}

/** The timesteps of a run by the config's spacing, from the highest down; linspace if it names none. */
export function spacedTimesteps(
  { numTrainTimesteps, stepsOffset, timestepSpacing }: SchedulerConfig,
  { count, round = (timestep) => timestep, used = numTrainTimesteps, leavesOutLast = false }: SpacedTimestepsOptions,
): number[] {
  if (timestepSpacing === 'trailing') return trailingTimesteps(used, numTrainTimesteps, count);
  const divisor = leavesOutLast ? count + 1 : count;
  const distance = Math.floor(used / divisor);
  const rising =
    timestepSpacing === 'leading'
      ? Array.from({ length: divisor }, (_, index) => index * distance + stepsOffset)
      : linspace(0, used - 1, divisor).map((timestep) => round(timestep));
  return rising.toReversed().slice(0, count);
}
