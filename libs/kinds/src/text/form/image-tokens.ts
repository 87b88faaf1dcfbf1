/** The tokens that stand for an image in a prompt, by the rules of transformers' processors. */
import type { ImageSize } from '../../request/brought-images.ts';

/** How a model splits large images into tiles, as Idefics 3 and SmolVLM do. */
export interface ImageTiling {
  /** Pixels: each tile is a square of this side. */
  readonly side: number;
  /** Pixels: the image is scaled to this longest side before it is split. */
  readonly longestSide: number;
}

/** How a model reads images: each is one tile or several, and a tile has always the same number of tokens. */
export interface ImageTokens {
  /** Text of the image token. Chat templates write it once per image. */
  readonly token: string;
  readonly tokenId: number;
  /** Tokens of one tile. */
  readonly perTile: number;
  /** Images per request. With a minimum of 1, the model answers questions about images only. */
  readonly minImages: 0 | 1;
  readonly maxImages: number;
  /** Absent if an image is always one tile, as LLaVA's. */
  readonly tiling?: ImageTiling;
}

/** Rows and columns of tiles; the full image follows as one more tile. */
export interface TileGrid {
  readonly rows: number;
  readonly columns: number;
  /** Size to scale the image to before it is split. */
  readonly size: ImageSize;
}

/** Transformers limits the sides of an image to this, pixels. */
const maxSide = 4096;

/**
 * Returns how an image is split, as `Idefics3ImageProcessor` does it; undefined if it is one tile.
 *
 * @example
 *   tileGrid({ side: 512, longestSide: 2048 }, { width: 800, height: 600 });
 *   // { rows: 3, columns: 4, size: { width: 2048, height: 1536 } }
 */
export function tileGrid({ side, longestSide }: ImageTiling, image: ImageSize): TileGrid | undefined {
  const scaled = scaledSize(image, Math.min(longestSide, maxSide));
  const ratio = scaled.width / scaled.height;
  const inTiles = (pixels: number) => Math.ceil(pixels / side) * side;
  const isWide = scaled.width >= scaled.height;
  const long = inTiles(Math.max(scaled.width, scaled.height));
  const short = inTiles(Math.trunc(isWide ? long / ratio : long * ratio));
  const size = isWide ? { width: long, height: short } : { width: short, height: long };
  const [rows, columns] = [size.height / side, size.width / side];
  return rows * columns > 1 ? { rows, columns, size } : undefined;
}

/** Returns a size with this longest side; the other side is even, as transformers rounds it. */
export function scaledSize({ width, height }: ImageSize, longestSide: number): ImageSize {
  const ratio = width / height;
  return width >= height
    ? { width: longestSide, height: roundToEven(longestSide / ratio) }
    : { width: roundToEven(longestSide * ratio), height: longestSide };
}

function roundToEven(pixels: number): number {
  const whole = Math.trunc(pixels);
  return Math.max(1, whole + (whole % 2));
}

/** Returns the number of tiles of an image. */
export function countTiles({ tiling }: Pick<ImageTokens, 'tiling'>, image: ImageSize): number {
  const grid = tiling && tileGrid(tiling, image);
  return grid === undefined ? 1 : grid.rows * grid.columns + 1;
}

/** Returns the text that replaces the image token of one image in a rendered prompt. */
export function imagePrompt({ token, perTile, tiling }: ImageTokens, image: ImageSize): string {
  const tile = token.repeat(perTile);
  if (tiling === undefined) return tile;
  const border = '<fake_token_around_image>';
  const grid = tileGrid(tiling, image);
  const full = `${border}<global-img>${tile}${border}`;
  if (grid === undefined) return full;
  const columns = Array.from({ length: grid.columns }, (_, at) => at + 1);
  const lines = Array.from({ length: grid.rows }, (_, row) =>
    columns.map((column) => `${border}<row_${row + 1}_col_${column}>${tile}`).join(''),
  );
  return `${lines.join('\n')}\n\n${full}`;
}
