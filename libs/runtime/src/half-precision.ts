/** IEEE 754 binary16, stored as bits in a Uint16Array: Float16Array requires Node 24. */

import { numberAt } from '@darkroom/core';

/** Four bytes, to read the bits of a float32. */
const bytes = new DataView(new ArrayBuffer(4));

function bitsOf(value: number): number {
  bytes.setFloat32(0, value);
  return bytes.getUint32(0);
}

/** Rounds to nearest, ties to even; values beyond ±65504 become ±Infinity. */
export function halvesOf(values: Float32Array): Uint16Array {
  const halves = new Uint16Array(values.length);
  for (let index = 0; index < values.length; index++) halves[index] = halfOf(numberAt(values, index));
  return halves;
}

/** Converts exactly: float32 can represent every half. */
export function floatsOfHalves(halves: Uint16Array): Float32Array {
  const floats = new Float32Array(halves.length);
  for (let index = 0; index < halves.length; index++) floats[index] = floatOfHalf(numberAt(halves, index));
  return floats;
}

function halfOf(value: number): number {
  const bits = bitsOf(value);
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // 65520 is halfway between the largest half and the next power of two: it and all above round to Infinity.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) {
    // Subnormal: a multiple of 2^-24. Adding 0.5 = 2^23 × 2^-24 rounds to one, ties to even.
    return sign | (bitsOf(Math.abs(value) + 0.5) - 0x3f000000);
  }
  const isOdd = (magnitude >>> 13) & 1;
  return sign | ((magnitude - 0x38000000 + 0xfff + isOdd) >>> 13);
}

function floatOfHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >>> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}
