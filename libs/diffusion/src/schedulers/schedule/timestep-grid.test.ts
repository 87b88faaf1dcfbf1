import { describe, expect, it } from 'vitest';

import { linspace, roundHalfEven, trailingTimesteps } from './timestep-grid.ts';

describe('roundHalfEven', () => {
  it.each([
    [0.5, 0],
    [1.5, 2],
    [2.5, 2],
    [937.5, 938],
    [62.5, 62],
    [0.49, 0],
    [0.51, 1],
    [7, 7],
  ])('rounds %s to %s', (value, rounded) => {
    expect(roundHalfEven(value)).toBe(rounded);
  });
});

describe('linspace', () => {
  it('includes both ends', () => {
    expect(linspace(0, 999, 4)).toEqual([0, 333, 666, 999]);
  });

  it('is the start alone for one value', () => {
    expect(linspace(0, 999, 1)).toEqual([0]);
  });
});

describe('trailingTimesteps', () => {
  it('starts at the last timestep of training', () => {
    expect(trailingTimesteps(1000, 1000, 4)).toEqual([999, 749, 499, 249]);
  });

  it('never asks for a timestep below 0 nor for more steps than wanted', () => {
    for (let steps = 1; steps <= 1000; steps++) {
      const timesteps = trailingTimesteps(1000, 1000, steps);
      expect(timesteps).toHaveLength(steps);
      expect(timesteps.at(-1)).toBeGreaterThanOrEqual(0);
    }
  });

  it('gives fewer steps where the start is cut off', () => {
    expect(trailingTimesteps(500, 1000, 4)).toEqual([499, 249]);
  });
});
