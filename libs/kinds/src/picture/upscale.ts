/** What is known of enlarging before there is a picture: by how much, in how many steps, and how large it becomes. */

/** What `upscale` may be, where a model has an upscaler for it. */
export const upscales = [2, 4] as const;
export type Upscale = (typeof upscales)[number];

/** Pixels that a side of an enlarged picture may have: three bytes of each pixel are in memory until it is encoded. */
export const maxUpscaledSide = 8192;

/** Pixels each way of what an upscaler is given in one step. */
export const upscalePieceSide = 256;
/** Pixels of these, on each side that lies within the picture, that are there for the others to be right, and come from the next piece. */
export const upscaleOverlap = 32;

interface Upscaled {
  /** Pixels, before. */
  readonly width: number;
  readonly height: number;
  readonly upscale?: Upscale | undefined;
}

/** A side of a picture in pieces, all of one length. */
export interface UpscalePiece {
  /** Pixels of the side that the upscaler is given. */
  readonly from: number;
  readonly to: number;
  /** Those of them that it is asked for. */
  readonly first: number;
  readonly last: number;
}

/** The pieces of one side, in pixels before. A side that fits into one is not cut. */
export function upscalePiecesOf(side: number): UpscalePiece[] {
  if (side <= upscalePieceSide) return [{ from: 0, to: side, first: 0, last: side }];
  const own = upscalePieceSide - 2 * upscaleOverlap;
  return Array.from({ length: Math.ceil(side / own) }, (_, at) => {
    const first = at * own;
    const from = Math.min(Math.max(0, first - upscaleOverlap), side - upscalePieceSide);
    return { from, to: from + upscalePieceSide, first, last: Math.min(first + own, side) };
  });
}

/** Steps that come after those of the model: one for each piece of the picture. */
export function upscaleSteps({ width, height, upscale }: Upscaled): number {
  return upscale === undefined ? 0 : upscalePiecesOf(width).length * upscalePiecesOf(height).length;
}

/** Pixels of the finished picture. */
export function outputSize({ width, height, upscale }: Upscaled): { width: number; height: number } {
  const scale = upscale ?? 1;
  return { width: width * scale, height: height * scale };
}
