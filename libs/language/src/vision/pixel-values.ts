/** Prepares images for a vision encoder, as transformers' image processors do. */
import { type RawImage, resample } from '@darkroom/imaging';
import { scaledSize, tileGrid } from '@darkroom/kinds';
import type { ImageConfig } from '../model/image-config.ts';

/** Pixel values of one tile: `[3, side, side]`. */
export type TilePixels = Float32Array;

/**
 * Returns the tiles of an image, in the order of its tokens. Yields between parts of the work.
 *
 * @throws RangeError if a side of the image is 0.
 */
export function* tilesOf(image: RawImage, config: ImageConfig): Generator<void, TilePixels[]> {
  const { tiling, side, filter } = config;
  if (tiling === undefined) return [toPixels(yield* fitImage(image, config), config)];
  const scaled = yield* resample(image, scaledSize(image, tiling.longestSide), filter);
  const grid = tileGrid(tiling, image);
  if (grid === undefined) return [toPixels(yield* resample(scaled, { width: side, height: side }, filter), config)];
  const split = yield* resample(scaled, grid.size, filter);
  const tiles: TilePixels[] = [];
  for (let row = 0; row < grid.rows; row++)
    for (let column = 0; column < grid.columns; column++) {
      tiles.push(toPixels(crop(split, { left: column * side, top: row * side, side }), config));
      yield;
    }
  return [...tiles, toPixels(yield* resample(split, { width: side, height: side }, filter), config)];
}

function* fitImage(image: RawImage, { fit, side, filter }: ImageConfig): Generator<void, RawImage> {
  if (fit.type === 'stretch') return yield* resample(image, { width: side, height: side }, filter);
  const { width, height } = image;
  const ratio = fit.shortestSide / Math.min(width, height);
  const scaled = yield* resample(
    image,
    width <= height
      ? { width: fit.shortestSide, height: Math.trunc(height * ratio) }
      : { width: Math.trunc(width * ratio), height: fit.shortestSide },
    filter,
  );
  const [left, top] = [Math.floor((scaled.width - side) / 2), Math.floor((scaled.height - side) / 2)];
  return crop(scaled, { left, top, side });
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
