import { expect, it } from 'vitest';
import { BackOff } from './back-off.ts';

it('returns no pause first, doubles up to the maximum, and resets after a long healthy time', () => {
  const backOff = new BackOff({ firstMs: 10, maxMs: 50, resetAfterMs: 100 });
  expect([0, 99, 0, 0, 0, 0].map((wellMs) => backOff.next(wellMs))).toEqual([0, 10, 20, 40, 50, 50]);
  expect([100, 0].map((wellMs) => backOff.next(wellMs))).toEqual([0, 10]);
});
