/**
 * Decodes latents tile by tile, to the same image as in one call: runs the parts of a decoder split at its group
 * norms one after the other, each over tiles of a few rows plus overlap, with the mean and variance of the complete
 * image. diffusers' `AutoencoderKL.tiled_decode` normalizes each tile separately, and differs by tens of 255 levels.
 */
import { itemAt, lastItem, nonEmpty, pairUp, valueOfKey } from '@darkroom/core';
import { type FloatTensor, lengthOf, type OnnxSession, type TensorValue } from '@darkroom/runtime';
import type { DecoderPart } from '../onnx/split-decoder.ts';
import { GroupMoments } from './group-moments.ts';
import { cutRows, type LatentDims, pasteRows, type Plane, rowsOf, withRows } from './plane.ts';

export interface DecodeInTilesOptions {
  parts: readonly DecoderPart[];
  /** Loads a part. Only the running part is in memory. */
  load: (file: Uint8Array) => Promise<OnnxSession>;
  latents: Float32Array;
  /** channels, height and width. */
  latentDims: LatentDims;
  /** Maximum number of image pixels per tile, unless a row of latents has more. */
  tilePixels: number;
  /** Pixels per latent, in each direction. */
  factor: number;
}

/**
 * Maximum attention scores per pixel of a tile. Takes about as much memory as the activations, of which a pixel has 128
 * or more.
 */
const scoresPerPixel = 64;

/**
 * Decodes latents.
 *
 * @returns the decoder's output: 3 × height × width.
 * @throws DarkroomError if a part fails, or RangeError if parts do not fit each other.
 */
export async function decodeInTiles(options: DecodeInTilesOptions): Promise<Float32Array> {
  const { parts, load, latents, latentDims } = options;
  const planes = new Map<string, Plane>([
    [itemAt(itemAt(parts, 0).inputs, 0), { data: latents, dims: [1, ...latentDims] }],
  ]);
  const norms = parts.flatMap((part) => part.norms);
  const moments = new Map(norms.map(({ of, groups }) => [of, new GroupMoments(groups)]));
  for (const [at, part] of parts.entries()) {
    // A part that is not tiled counts as one row.
    const height = part.kind === 'whole' ? 1 : Math.min(...part.cut.map((name) => rowsOf(valueOfKey(planes, name))));
    const tiles = tilesOf(part, height, rowsPerTile(part, height, options));
    const later = new Set(parts.slice(at + 1).flatMap(({ inputs }) => inputs));
    const session = await load(part.write());
    try {
      await runPart(session, { part, height, tiles, later, planes, moments });
    } finally {
      await session.dispose();
    }
    for (const name of part.inputs) if (!later.has(name)) planes.delete(name);
  }
  return valueOfKey(planes, itemAt(lastItem(parts).outputs, 0)).data;
}

/** Returns the number of input rows per tile. */
function rowsPerTile({ kind, halo }: DecoderPart, height: number, options: DecodeInTilesOptions): number {
  const { latentDims, tilePixels, factor } = options;
  const [, latentHeight, latentWidth] = latentDims;
  // Each query has as many scores as there are queries.
  if (kind === 'queries') return Math.max(1, Math.floor((tilePixels * scoresPerPixel) / height));
  const imageRows = tilePixels / (latentWidth * factor);
  // At least `halo` rows: a tile may overlap its direct neighbours only, because other rows are overwritten.
  return Math.max(1, halo, Math.floor((imageRows * height) / (latentHeight * factor)));
}

/** A tile, in rows of the smallest input. */
interface Tile {
  readonly top: number;
  readonly bottom: number;
  /** The rows from `top` to `bottom` plus the overlap that they depend on, or more. */
  readonly from: number;
  readonly to: number;
}

function tilesOf(part: DecoderPart, height: number, rows: number): Tile[] {
  const halo = part.kind === 'rows' ? part.halo : 0;
  const size = Math.min(height, rows + 2 * halo);
  return Array.from({ length: Math.ceil(height / rows) }, (_, at) => {
    const top = at * rows;
    const from = Math.min(Math.max(0, top - halo), height - size);
    return { top, bottom: Math.min(top + rows, height), from, to: from + size };
  });
}

interface RunPartOptions {
  part: DecoderPart;
  /** Rows of the smallest input. */
  height: number;
  tiles: readonly Tile[];
  /** Tensors that later parts read. */
  later: ReadonlySet<string>;
  /** Tensors that the remaining parts read. */
  planes: Map<string, Plane>;
  /** Moments of tensors that the remaining parts normalize. */
  moments: ReadonlyMap<string, GroupMoments>;
}

async function runPart(session: OnnxSession, options: RunPartOptions): Promise<void> {
  const { part, height, tiles, later, planes, moments } = options;
  const inputs = part.inputs.map((name) => ({ name, plane: valueOfKey(planes, name), isCut: part.cut.includes(name) }));
  const norms = normsOf(part, moments);
  // Inputs that no later part reads are overwritten with outputs from the top down; the next tile still needs some of
  // their rows.
  const spare = inputs.filter(({ name, isCut }) => isCut && !later.has(name)).map(({ plane }) => plane);
  const names = nonEmpty([...new Set([...part.outputs, ...part.measured])]);

  /** Returns the inputs of a tile, in the memory of an earlier tile's inputs. */
  function cut({ from, to }: Tile, into: Readonly<Record<string, TensorValue>> = {}): Record<string, TensorValue> {
    const feeds = inputs.map(({ name, plane, isCut }) => {
      if (!isCut) return [name, plane];
      const scale = integerScale(rowsOf(plane), height);
      const target = into[name]?.data as Float32Array | undefined;
      return [name, cutRows(plane, { from: from * scale, to: to * scale, into: target })];
    });
    return Object.fromEntries(feeds) as Record<string, TensorValue>;
  }

  /** Adds a tile's output to the moments and planes that later parts read. */
  function store(name: string, output: FloatTensor, { top, bottom, from, to }: Tile): void {
    const scale = integerScale(rowsOf(output), to - from);
    /** The tile's own rows in the output, without overlap. */
    const bounds = { first: (top - from) * scale, count: (bottom - top) * scale };
    if (part.measured.includes(name)) valueOfKey(moments, name).add(output, bounds);
    if (!part.outputs.includes(name)) return;
    const dims = withRows(output.dims, height * scale);
    if (bounds.count === rowsOf({ dims })) {
      planes.set(name, output);
      return;
    }
    const plane = planes.get(name) ?? takeSpare(spare, dims) ?? { data: new Float32Array(lengthOf(dims)), dims };
    planes.set(name, plane);
    pasteRows(output, plane, { ...bounds, top: top * scale });
  }

  // All tiles have the same size, so their input and output arrays are reused.
  let feeds = cut(itemAt(tiles, 0));
  const results = new Map<string, FloatTensor>();
  for (const [at, tile] of tiles.entries()) {
    const outputs = await session.runForAll({ ...norms, ...feeds }, names, results);
    for (const [name, output] of pairUp(names, outputs)) results.set(name, output);
    const next = tiles[at + 1];
    if (next !== undefined) feeds = cut(next, feeds);
    for (const [name, output] of results) store(name, output, tile);
  }
}

function normsOf({ norms }: DecoderPart, moments: RunPartOptions['moments']): Record<string, TensorValue> {
  const feeds: Record<string, TensorValue> = {};
  for (const { of, epsilon, mean, inverse } of norms) {
    const { means, inverses } = valueOfKey(moments, of).read(epsilon);
    const dims = [1, means.length, 1];
    Object.assign(feeds, { [mean]: { data: means, dims }, [inverse]: { data: inverses, dims } });
  }
  return feeds;
}

function integerScale(rows: number, ofRows: number): number {
  const scale = rows / ofRows;
  if (scale >= 1 && Number.isInteger(scale)) return scale;
  throw new RangeError(`a part of the decoder has ${rows} rows for ${ofRows}`);
}

/** Returns the memory of an input of the same size that is not needed any more. */
function takeSpare(spare: Plane[], dims: Plane['dims']): Plane | undefined {
  const at = spare.findIndex((plane) => plane.dims.every((side, axis) => side === dims[axis]));
  return at === -1 ? undefined : spare.splice(at, 1)[0];
}
