import { type FloatTensor, lengthOf, type TensorValue } from '@darkroom/runtime';

/** A tensor of the complete image. Its last two dimensions are rows and the contents of a row: pixels, or a query. */
export interface Plane {
  readonly data: Float32Array;
  readonly dims: readonly number[];
}

/** channels, height, width */
export type LatentDims = readonly [number, number, number];

export function rowsOf({ dims }: Pick<Plane, 'dims'>): number {
  return dims.at(-2) ?? 1;
}

export function withRows(dims: readonly number[], rows: number): readonly number[] {
  return [...dims.slice(0, -2), rows, ...dims.slice(-1)];
}

/** Copies a range of a plane's rows, into the given array if there is one. */
export function cutRows(
  { data, dims }: Plane,
  { from, to, into }: { from: number; to: number; into?: Float32Array },
): TensorValue {
  const [channels, height, width] = flatten(dims);
  const size = (to - from) * width;
  const rows = into ?? new Float32Array(channels * size);
  for (let channel = 0; channel < channels; channel++) {
    const start = (channel * height + from) * width;
    rows.set(data.subarray(start, start + size), channel * size);
  }
  return { data: rows, dims: withRows(dims, to - from) };
}

/** Copies `count` rows of a tile, starting with its row `first`, into a plane at row `top`. */
export function pasteRows(
  piece: FloatTensor,
  plane: Plane,
  { first, count, top }: { first: number; count: number; top: number },
): void {
  const [channels, height, width] = flatten(plane.dims);
  const rows = rowsOf(piece);
  for (let channel = 0; channel < channels; channel++) {
    const start = (channel * rows + first) * width;
    plane.data.set(piece.data.subarray(start, start + count * width), (channel * height + top) * width);
  }
}

/** Merges all dimensions before the last two into one. */
function flatten(dims: readonly number[]): [number, number, number] {
  const [height = 1, width = 1] = dims.slice(-2);
  return [lengthOf(dims.slice(0, -2)), height, width];
}
