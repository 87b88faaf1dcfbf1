import { expect, it } from 'vitest';
import { floatsOfHalves, halvesOf } from './half-precision.ts';

it('converts every half to float32 and back unchanged', () => {
  const halves = Uint16Array.from({ length: 65_536 }, (_, bits) => bits).filter(
    (bits) => (bits & 0x7c00) !== 0x7c00 || (bits & 0x3ff) === 0,
  );
  expect(halvesOf(floatsOfHalves(halves))).toEqual(halves);
});

it.each([
  [1 + 2 ** -11, 0x3c00],
  [1 + 3 * 2 ** -11, 0x3c02],
  [65_519, 0x7bff],
  [65_520, 0x7c00],
  [-1e9, 0xfc00],
  [2 ** -25, 0x0000],
  [3 * 2 ** -25, 0x0002],
  [NaN, 0x7e00],
])('rounds %f to nearest, ties to even', (value, bits) => {
  expect(halvesOf(Float32Array.of(value))).toEqual(Uint16Array.of(bits));
});
