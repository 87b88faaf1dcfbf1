import { byteAt } from '@darkroom/core';
/**
 * Resizes images like Pillow, to the bit: bicubic (a = −0.5) with its support widened for downscaling, first
 * horizontally and then vertically, each in fixed point and rounded to 8 bits.
 * Source: Pillow, `Resample.c`.
 */

/** RGB, 8 bits, interleaved. */
export interface RgbImage {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
}

/** The fixed-point 1 of weights, with 22 fractional bits. */
const one = 2 ** 22;
const support = 2;

/** The source values of one result value: index of the first, and their weights. */
interface Window {
  readonly first: number;
  readonly weights: readonly number[];
}

/** Returns the image in another size. */
export function resampleBicubic(image: RgbImage, width: number, height: number): RgbImage {
  const across = width === image.width ? image : scaleAcross(image, width);
  return height === image.height ? across : scaleDown(across, height);
}

function scaleAcross({ data, width: before, height }: RgbImage, width: number): RgbImage {
  const windows = windowsOf(before, width);
  const scaled = new Uint8Array(width * height * 3);
  for (let y = 0; y < height; y++) {
    for (const [x, { first, weights }] of windows.entries()) {
      const from = (y * before + first) * 3;
      weigh(data, { from, stride: 3, weights }, scaled, (y * width + x) * 3);
    }
  }
  return { data: scaled, width, height };
}

function scaleDown({ data, width, height: before }: RgbImage, height: number): RgbImage {
  const windows = windowsOf(before, height);
  const scaled = new Uint8Array(width * height * 3);
  for (const [y, { first, weights }] of windows.entries()) {
    for (let x = 0; x < width; x++) {
      const from = (first * width + x) * 3;
      weigh(data, { from, stride: width * 3, weights }, scaled, (y * width + x) * 3);
    }
  }
  return { data: scaled, width, height };
}

/** Computes one pixel. */
function weigh(
  data: Uint8Array,
  { from, stride, weights }: { from: number; stride: number; weights: readonly number[] },
  target: Uint8Array,
  at: number,
): void {
  for (let color = 0; color < 3; color++) {
    let sum = one / 2;
    for (const [tap, weight] of weights.entries()) sum += byteAt(data, from + tap * stride + color) * weight;
    target[at + color] = Math.min(Math.max(Math.floor(sum / one), 0), 255);
  }
}

function windowsOf(before: number, after: number): Window[] {
  const scale = before / after;
  const widening = Math.max(scale, 1);
  const reach = support * widening;
  return Array.from({ length: after }, (_, at) => {
    const center = (at + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - reach + 0.5));
    const last = Math.min(before, Math.trunc(center + reach + 0.5));
    const weights = Array.from({ length: last - first }, (_tap, tap) =>
      bicubic((first + tap - center + 0.5) * (1 / widening)),
    );
    let sum = 0;
    for (const weight of weights) sum += weight;
    return { first, weights: weights.map((weight) => fixed(weight * (1 / sum))) };
  });
}

function fixed(weight: number): number {
  return Math.trunc(weight * one + (weight < 0 ? -0.5 : 0.5));
}

/** Evaluates Keys' kernel with a = −0.5. */
function bicubic(distance: number): number {
  const a = -0.5;
  const x = Math.abs(distance);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}
