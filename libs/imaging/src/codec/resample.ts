/** Resizes images exactly as Pillow 13 does: models were trained on its pixels. Formulas: Pillow's Resample.c. */
import type { RawImage } from './decode-image.ts';

/** Filter, by the names of Pillow's `Resampling`. */
export type ResampleFilter = 'bilinear' | 'bicubic' | 'lanczos';

interface Kernel {
  /** Pixels to each side, at the scale of the smaller image. */
  readonly radius: number;
  /** @param x distance ≥ 0, at the scale of the smaller image. */
  readonly weightOf: (x: number) => number;
}

const kernels: Readonly<Record<ResampleFilter, Kernel>> = {
  bilinear: { radius: 1, weightOf: (x) => Math.max(0, 1 - x) },
  // Catmull-Rom: a = -0.5.
  bicubic: {
    radius: 2,
    weightOf: (x) => {
      if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
      return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
    },
  },
  lanczos: { radius: 3, weightOf: (x) => (x < 3 ? sinc(x) * sinc(x / 3) : 0) },
};

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}

/** Bits behind the point in Pillow's weights: 32, less 8 of a pixel and 2 for overshoot. */
const weightBits = 22;

/** Pixels from `first` to before `end`. */
export interface PixelRange {
  readonly first: number;
  readonly end: number;
}

/** Part of a resized image to compute. */
export interface ResampleWindow {
  readonly columns: PixelRange;
  readonly rows: PixelRange;
}

/** Source pixels of one target pixel: `weights` from `first` on. */
interface Tap {
  readonly first: number;
  readonly weights: Int32Array;
}

/** @param range pixels of the target to compute. */
function tapsOf(from: number, to: number, range: PixelRange, { radius, weightOf }: Kernel): Tap[] {
  const scale = from / to;
  const filterScale = Math.max(1, scale);
  const support = radius * filterScale;
  return Array.from({ length: range.end - range.first }, (_, at) => {
    const center = (range.first + at + 0.5) * scale;
    const first = Math.max(0, Math.trunc(center - support + 0.5));
    const end = Math.min(from, Math.trunc(center + support + 0.5));
    const weights = Array.from({ length: end - first }, (_each, tap) =>
      weightOf(Math.abs((tap + first - center + 0.5) / filterScale)),
    );
    const sum = weights.reduce((total, weight) => total + weight, 0);
    const rounded = weights.map((weight) => {
      const scaled = (weight / sum) * 2 ** weightBits;
      return Math.trunc(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
    });
    return { first, weights: Int32Array.from(rounded) };
  });
}

/** Multiplications between two yields: some milliseconds. */
const workPerPart = 4_000_000;

/**
 * Resizes an RGB image to exactly this size. Yields between parts of the work, so that a caller can do other work.
 *
 * @param image 3 bytes per pixel.
 * @param window returns only this part, with the same pixels; default all. A long narrow image may become very large.
 * @example
 *   const parts = resample(image, { width: 96, height: 96 }, 'bicubic');
 *   let part = parts.next();
 *   while (part.done !== true) part = parts.next();
 *   const resized = part.value;
 */
export function* resample(
  image: RawImage,
  { width, height }: { readonly width: number; readonly height: number },
  filter: ResampleFilter,
  window: ResampleWindow = { columns: { first: 0, end: width }, rows: { first: 0, end: height } },
): Generator<void, RawImage> {
  const kernel = kernels[filter];
  const { columns, rows } = window;
  const hasRows = image.width === width && isAll(columns, width);
  const hasColumns = image.height === height && isAll(rows, height);
  const rowTaps = hasRows ? undefined : tapsOf(image.width, width, columns, kernel);
  const columnTaps = hasColumns ? undefined : tapsOf(image.height, height, rows, kernel);
  const lostRows = image.height - height;
  // The order of the passes changes the result, because each pass rounds to 8 bits.
  const startsWithColumns = lostRows > 0 && lostRows > 2 * (image.width - width);
  let scaled = image;
  if (startsWithColumns && columnTaps !== undefined) scaled = yield* scaleColumns(scaled, columnTaps);
  if (rowTaps !== undefined) scaled = yield* scaleRows(scaled, rowTaps);
  if (!startsWithColumns && columnTaps !== undefined) scaled = yield* scaleColumns(scaled, columnTaps);
  return scaled;
}

function isAll({ first, end }: PixelRange, length: number): boolean {
  return first === 0 && end === length;
}

function* scaleRows(image: RawImage, taps: readonly Tap[]): Generator<void, RawImage> {
  const { height } = image;
  const width = taps.length;
  const data = new Uint8Array(3 * width * height);
  for (let y = 0, work = 0; y < height; y++) {
    const row = 3 * y * image.width;
    let at = 3 * y * width;
    for (const { first, weights } of taps) {
      mix(image.data, row + 3 * first, 3, weights, data, at);
      at += 3;
      work += 3 * weights.length;
    }
    if (work > workPerPart) {
      work = 0;
      yield;
    }
  }
  return { data, width, height };
}

function* scaleColumns(image: RawImage, taps: readonly Tap[]): Generator<void, RawImage> {
  const { width } = image;
  const data = new Uint8Array(3 * width * taps.length);
  let work = 0;
  for (const [y, { first, weights }] of taps.entries()) {
    for (let x = 0; x < width; x++)
      mix(image.data, 3 * (first * width + x), 3 * width, weights, data, 3 * (y * width + x));
    work += 3 * width * weights.length;
    if (work > workPerPart) {
      work = 0;
      yield;
    }
  }
  return { data, width, height: taps.length };
}

/** Computes one RGB pixel from weighted pixels, `stride` bytes apart. */
function mix(
  source: Uint8Array,
  from: number,
  stride: number,
  weights: Int32Array,
  target: Uint8Array,
  to: number,
): void {
  for (let channel = 0; channel < 3; channel++) {
    // Start at one half, to round. Sums stay below 2^31: weights sum to 2^22, and a pixel has 8 bits.
    let sum = 1 << (weightBits - 1);
    for (let tap = 0, at = from + channel; tap < weights.length; tap++, at += stride)
      sum += source[at]! * weights[tap]!;
    const value = sum >> weightBits;
    target[to + channel] = value < 0 ? 0 : value > 255 ? 255 : value;
  }
}
