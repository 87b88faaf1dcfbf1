/** Upscaling before there is an image: factors, steps, and output size. */

/** Values of `upscale`; a model supports those that it has an upscaler for. */
export const upscales = [2, 4] as const;
export type Upscale = (typeof upscales)[number];

/** Maximum side of an upscaled image in pixels: each pixel takes three bytes of memory until it is encoded. */
export const maxUpscaledSide = 8192;

/** Side of a tile in pixels: the input of one upscaler step. */
export const upscalePieceSide = 256;
/** Context pixels at each inner edge of a tile. They are only read; their output comes from the next tile. */
export const upscaleOverlap = 32;

interface Upscaled {
  /** Pixels before upscaling. */
  readonly width: number;
  readonly height: number;
  readonly upscale?: Upscale | undefined;
}

/** A tile of one side of an image. All tiles of a side have one length. */
export interface UpscaleTile {
  /** Input range in pixels. */
  readonly from: number;
  readonly to: number;
  /** Range whose output is used. */
  readonly first: number;
  readonly last: number;
}

/** Returns the tiles of one side, in pixels before upscaling. A side that fits one tile is not split. */
export function upscaleTilesOf(side: number): UpscaleTile[] {
  if (side <= upscalePieceSide) return [{ from: 0, to: side, first: 0, last: side }];
  const own = upscalePieceSide - 2 * upscaleOverlap;
  return Array.from({ length: Math.ceil(side / own) }, (_, at) => {
    const first = at * own;
    const from = Math.min(Math.max(0, first - upscaleOverlap), side - upscalePieceSide);
    return { from, to: from + upscalePieceSide, first, last: Math.min(first + own, side) };
  });
}

/** Returns the steps after those of the model: one per tile of the image. */
export function upscaleSteps({ width, height, upscale }: Upscaled): number {
  return upscale === undefined ? 0 : upscaleTilesOf(width).length * upscaleTilesOf(height).length;
}

/** Returns the size of the finished image in pixels. */
export function outputSize({ width, height, upscale }: Upscaled): { width: number; height: number } {
  const scale = upscale ?? 1;
  return { width: width * scale, height: height * scale };
}
