import { expect, it } from 'vitest';
import { BackOff } from './back-off.ts';

it('begins at once, doubles up to a limit, and begins again after a calm', () => {
  const backOff = new BackOff({ firstMs: 10, mostMs: 50, calmMs: 100 });
  expect([0, 99, 0, 0, 0, 0].map((wellMs) => backOff.next(wellMs))).toEqual([0, 10, 20, 40, 50, 50]);
  expect([100, 0].map((wellMs) => backOff.next(wellMs))).toEqual([0, 10]);
});
