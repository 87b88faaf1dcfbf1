/**
 * Decodes latents piece by piece, to the same picture as in one go: part after part of a decoder that was cut at its group
 * norms, each over pieces of a few rows with what they need of their neighbours, and with the mean and variance of the
 * whole. Tiles that are decoded on their own and blended, as in diffusers' `AutoencoderKL.tiled_decode`, have a mean and
 * variance each, and differ from the picture by tens of its 255 levels.
 */
import type { FloatTensor, OnnxSession, TensorValue } from '@darkroom/runtime';
import type { DecoderPart } from '../onnx/split-decoder.ts';
import { GroupMoments } from './group-moments.ts';
import { cutRows, lengthOf, pasteRows, type Plane, rowsOf, withRows } from './plane.ts';

export interface DecodeInPiecesOptions {
  parts: readonly DecoderPart[];
  /** Loads a part, which is in memory only while it is run. */
  load: (file: Uint8Array) => Promise<OnnxSession>;
  latents: Float32Array;
  /** channels, height and width. */
  latentDims: readonly [number, number, number];
  /** Pixels of the picture in one piece, at most, unless a row of latents has more. */
  piecePixels: number;
  /** Pixels of the picture for one of the latents, each way. */
  factor: number;
}

/** Scores of attention that a piece may have for each of its pixels: about as many as values, of which there are 128 and more. */
const scoresOfPixel = 64;

/**
 * Decodes.
 *
 * @returns what the decoder would: 3 × height × width.
 * @throws DarkroomError if a part fails, or RangeError if parts do not fit each other.
 */
export async function decodeInPieces(options: DecodeInPiecesOptions): Promise<Float32Array> {
  const { parts, load, latents, latentDims } = options;
  const planes = new Map<string, Plane>([[parts[0]!.inputs[0]!, { data: latents, dims: [1, ...latentDims] }]]);
  const norms = parts.flatMap((part) => part.norms);
  const moments = new Map(norms.map(({ of, groups }) => [of, new GroupMoments(groups)]));
  for (const [at, part] of parts.entries()) {
    // One that is not cut is one row.
    const height = part.kind === 'whole' ? 1 : Math.min(...part.cut.map((name) => rowsOf(planes.get(name)!)));
    const pieces = piecesOf(part, height, rowsOfPiece(part, height, options));
    const later = new Set(parts.slice(at + 1).flatMap(({ inputs }) => inputs));
    const session = await load(part.write());
    try {
      await runPart(session, { part, height, pieces, later, planes, moments });
    } finally {
      await session.dispose();
    }
    for (const name of part.inputs) if (!later.has(name)) planes.delete(name);
  }
  return planes.get(parts.at(-1)!.outputs[0]!)!.data;
}

/** As many rows of what is cut as make a piece of the size asked for. */
function rowsOfPiece({ kind, halo }: DecoderPart, height: number, options: DecodeInPiecesOptions): number {
  const { latentDims, piecePixels, factor } = options;
  const [, latentHeight, latentWidth] = latentDims;
  // Each query has as many scores as there are queries; of a pixel there are as many values at least.
  if (kind === 'queries') return Math.max(1, Math.floor((piecePixels * scoresOfPixel) / height));
  const pictureRows = piecePixels / (latentWidth * factor);
  // A piece reaches into its neighbours and no further, so that the others may be written over.
  return Math.max(1, halo, Math.floor((pictureRows * height) / (latentHeight * factor)));
}

/** Rows of the smallest input. */
interface Piece {
  readonly top: number;
  readonly bottom: number;
  /** With the neighbours' rows that it depends on, or more of them. */
  readonly from: number;
  readonly to: number;
}

function piecesOf(part: DecoderPart, height: number, rows: number): Piece[] {
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
  /** Of the smallest input. */
  height: number;
  pieces: readonly Piece[];
  /** Tensors that later parts read. */
  later: ReadonlySet<string>;
  /** Tensors that parts yet to run read. */
  planes: Map<string, Plane>;
  /** Of tensors that parts yet to run normalize. */
  moments: ReadonlyMap<string, GroupMoments>;
}

async function runPart(session: OnnxSession, options: RunPartOptions): Promise<void> {
  const { part, height, pieces, later, planes, moments } = options;
  const inputs = part.inputs.map((name) => ({ name, plane: planes.get(name)!, isCut: part.cut.includes(name) }));
  const norms = normsOf(part, moments);
  // What is read here for the last time is written over, from the top down. A piece that is still to come needs some of it.
  const spare = inputs.filter(({ name, isCut }) => isCut && !later.has(name)).map(({ plane }) => plane);
  const names = [...new Set([...part.outputs, ...part.measured])];

  /** What a piece is fed, in the memory of an earlier one, which is not needed any more. */
  function cut({ from, to }: Piece, into: Readonly<Record<string, TensorValue>> = {}): Record<string, TensorValue> {
    const feeds = inputs.map(({ name, plane, isCut }) => {
      if (!isCut) return [name, plane];
      const scale = wholeScale(rowsOf(plane), height);
      const target = into[name]?.data as Float32Array | undefined;
      return [name, cutRows(plane, { from: from * scale, to: to * scale, into: target })];
    });
    return Object.fromEntries(feeds) as Record<string, TensorValue>;
  }

  /** Puts what came of a piece where it is read. */
  function keep(name: string, output: FloatTensor, { top, bottom, from, to }: Piece): void {
    const scale = wholeScale(rowsOf(output), to - from);
    /** Where in the output the piece's own rows lie. */
    const bounds = { first: (top - from) * scale, count: (bottom - top) * scale };
    if (part.measured.includes(name)) moments.get(name)!.add(output, bounds);
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

  // All pieces are of one size, and so are the arrays that go in and out, which are used again and again.
  let feeds = cut(pieces[0]!);
  const results = new Map<string, FloatTensor>();
  for (const [at, piece] of pieces.entries()) {
    const outputs = await session.runForAll({ ...norms, ...feeds }, names, results);
    for (const [position, name] of names.entries()) results.set(name, outputs[position]!);
    const next = pieces[at + 1];
    if (next !== undefined) feeds = cut(next, feeds);
    for (const [name, output] of results) keep(name, output, piece);
  }
}

function normsOf({ norms }: DecoderPart, moments: RunPartOptions['moments']): Record<string, TensorValue> {
  const feeds: Record<string, TensorValue> = {};
  for (const { of, epsilon, mean, inverse } of norms) {
    const { means, inverses } = moments.get(of)!.read(epsilon);
    const dims = [1, means.length, 1];
    Object.assign(feeds, { [mean]: { data: means, dims }, [inverse]: { data: inverses, dims } });
  }
  return feeds;
}

function wholeScale(rows: number, ofRows: number): number {
  const scale = rows / ofRows;
  if (scale >= 1 && Number.isInteger(scale)) return scale;
  throw new RangeError(`a part of the decoder has ${rows} rows for ${ofRows}`);
}

/** The memory of an input that is as large. */
function takeSpare(spare: Plane[], dims: Plane['dims']): Plane | undefined {
  const at = spare.findIndex((plane) => plane.dims.every((side, axis) => side === dims[axis]));
  return at === -1 ? undefined : spare.splice(at, 1)[0];
}
