/**
 * numpy's rounding and grids, which determine the timesteps of a run. A timestep half-way between two integers must be
 * rounded like in numpy, or the complete run differs.
 */

/** Rounds to the nearest integer, halves to the even one (`numpy.round`, Python `round`). */
export function roundHalfEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  if (rest !== 0.5) return rest < 0.5 ? below : below + 1;
  return below % 2 === 0 ? below : below + 1;
}

/** Returns `count` values from `start` to `stop`, both included (`numpy.linspace`); only `start` if `count` is 1. */
export function linspace(start: number, stop: number, count: number): number[] {
  if (count === 1) return [start];
  const step = (stop - start) / (count - 1);
  return Array.from({ length: count }, (_, index) => (index === count - 1 ? stop : start + index * step));
}
