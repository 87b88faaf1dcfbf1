/** Prepares images for a vision encoder, as transformers' image processors do. */
import { type PixelRange, type RawImage, resample } from '@darkroom/imaging';
import { scaledSize, tileGrid } from '@darkroom/kinds';
import type { ImageConfig } from '../model/image-config.ts';

/** Pixel values of one tile: `[3, side, side]`. */
export type TilePixels = Float32Array;

/** Yields the tiles of an image, in the order of its tokens, and undefined between parts of the work. */
export function* tilesOf(image: RawImage, config: ImageConfig): Generator<TilePixels | undefined, void> {
  const { tiling, side, filter } = config;
  const whole = { width: side, height: side };
  if (tiling === undefined) {
    yield toPixels(yield* fitImage(image, config), config);
    return;
  }
  const scaled = yield* pausing(resample(image, scaledSize(image, tiling.longestSide), filter));
  const grid = tileGrid(tiling, image);
  if (grid === undefined) {
    yield toPixels(yield* pausing(resample(scaled, whole, filter)), config);
    return;
  }
  const split = yield* pausing(resample(scaled, grid.size, filter));
  for (let row = 0; row < grid.rows; row++)
    for (let column = 0; column < grid.columns; column++)
      yield toPixels(crop(split, { left: column * side, top: row * side, side }), config);
  yield toPixels(yield* pausing(resample(split, whole, filter)), config);
}

function* pausing(parts: Generator<void, RawImage>): Generator<undefined, RawImage> {
  for (;;) {
    const part = parts.next();
    if (part.done === true) return part.value;
    yield undefined;
  }
}

function* fitImage(image: RawImage, { fit, side, filter }: ImageConfig): Generator<undefined, RawImage> {
  if (fit.type === 'stretch') return yield* pausing(resample(image, { width: side, height: side }, filter));
  const { width, height } = image;
  const short = fit.shortestSide;
  // In this order, as transformers does: a quotient may be just below a whole number.
  const long = Math.trunc((short * Math.max(width, height)) / Math.min(width, height));
  const size = width <= height ? { width: short, height: long } : { width: long, height: short };
  const [left, top] = [Math.floor((size.width - side) / 2), Math.floor((size.height - side) / 2)];
  const columns = rangeWithin(size.width, left, side);
  const rows = rangeWithin(size.height, top, side);
  const center = yield* pausing(resample(image, size, filter, { columns, rows }));
  return crop(center, { left: left - columns.first, top: top - rows.first, side });
}

/** Returns the part of a range of pixels that is within the image. */
function rangeWithin(length: number, first: number, count: number): PixelRange {
  return { first: Math.max(0, first), end: Math.min(length, first + count) };
}

/** Returns a square of an image; black where it reaches beyond the image. */
function crop(image: RawImage, { left, top, side }: { left: number; top: number; side: number }): RawImage {
  const data = new Uint8Array(3 * side * side);
  const first = Math.max(0, left);
  const end = Math.min(image.width, left + side);
  for (let y = Math.max(0, top); y < Math.min(image.height, top + side); y++) {
    const row = image.data.subarray(3 * (y * image.width + first), 3 * (y * image.width + end));
    data.set(row, 3 * ((y - top) * side + first - left));
  }
  return { data, width: side, height: side };
}

function toPixels({ data }: RawImage, { side, scale, mean, deviation }: ImageConfig): TilePixels {
  const area = side * side;
  const pixels = new Float32Array(3 * area);
  for (const [channel, average] of mean.entries()) {
    const divisor = deviation[channel]!;
    for (let at = 0; at < area; at++)
      pixels[channel * area + at] = (data[3 * at + channel]! * scale - average) / divisor;
  }
  return pixels;
}
