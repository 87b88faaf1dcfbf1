/**
 * Upscales images with a super-resolution graph in tiles with overlap, so that memory is bounded for every size. The
 * graph has one input and one output, RGB in 0 … 1, with any names: like Optimum's exports of Swin2SR (`pixel_values`,
 * `reconstruction`), and exports of ESRGAN and similar models.
 */
import { byteAt, itemAt, numberAt } from '@darkroom/core';
import { type Upscale, type UpscaleTile, upscaleTilesOf } from '@darkroom/kinds';
import type { OnnxSession } from '@darkroom/runtime';
import { type LoadedGraph, tryGraph } from '../onnx/load-graph.ts';
import { modelFileError } from '@darkroom/runtime/model-file';
import type { RgbImage } from '../safety/resample.ts';
import { roundHalfEven } from '../schedulers/numpy.ts';

/** Size of the trial image. Not square, to detect graphs that accept a single size. */
const trial = { width: 64, height: 48 };

/**
 * Creates an upscaler from a graph, and calls it once.
 *
 * @throws DarkroomError `model_unsupported` naming the file if it is not an upscaler, or `out_of_memory`.
 */
export async function loadUpscaler({ file, session }: LoadedGraph, upscale: Upscale): Promise<Upscaler> {
  const [input, ...others] = session.inputs;
  if (input === undefined || others.length > 0) {
    const names = session.inputs.map(({ name }) => name).join(', ');
    throw modelFileError(file, `has the inputs ${names}; expected one, of images`);
  }
  const upscaler = new Upscaler(session, upscale);
  const { width, height } = trial;
  await tryGraph({
    file,
    run: () => upscaler.run(new Float32Array(3 * width * height), trial),
    inputs: `${input.name} [1, 3, ${height}, ${width}]`,
    outputDims: [1, 3, height * upscale, width * upscale],
  });
  return upscaler;
}

/** An image that is being upscaled. */
export interface UpscaleJob {
  readonly image: RgbImage;
  /** RGB of the upscaled image. */
  readonly target: Uint8Array;
}

export class Upscaler {
  readonly upscale: Upscale;
  readonly #session: OnnxSession;

  constructor(session: OnnxSession, upscale: Upscale) {
    this.#session = session;
    this.upscale = upscale;
  }

  /**
   * Upscales one tile.
   *
   * @param at index of the tile, row by row; `upscaleSteps` returns their number.
   * @throws DarkroomError if the graph fails.
   */
  async upscaleTile({ image, target }: UpscaleJob, at: number): Promise<void> {
    const columns = upscaleTilesOf(image.width);
    const across = itemAt(columns, at % columns.length);
    const down = itemAt(upscaleTilesOf(image.height), Math.floor(at / columns.length));
    const size = { width: across.to - across.from, height: down.to - down.from };
    const { data } = await this.run(cut(image, across, down), size);
    this.#paste(data, { target, targetWidth: image.width * this.upscale, across, down });
  }

  /** Runs the graph. @param sample 3 × height × width. */
  run(sample: Float32Array, { width, height }: { width: number; height: number }) {
    const input = itemAt(this.#session.inputs, 0).name;
    return this.#session.run({ [input]: { data: sample, dims: [1, 3, height, width] } });
  }

  /** Writes a tile without its overlap to the target, in 8 bits. */
  #paste(
    sample: Float32Array,
    options: { target: Uint8Array; targetWidth: number; across: UpscaleTile; down: UpscaleTile },
  ): void {
    const { target, targetWidth, across, down } = options;
    const { upscale } = this;
    const width = (across.to - across.from) * upscale;
    const plane = width * (down.to - down.from) * upscale;
    for (let y = down.first * upscale; y < down.last * upscale; y++) {
      for (let x = across.first * upscale; x < across.last * upscale; x++) {
        const from = (y - down.from * upscale) * width + (x - across.from * upscale);
        const to = (y * targetWidth + x) * 3;
        for (let color = 0; color < 3; color++) {
          const value = Math.min(Math.max(numberAt(sample, color * plane + from), 0), 1);
          target[to + color] = roundHalfEven(Math.fround(value * 255));
        }
      }
    }
  }
}

/** Returns a tile as the graph's input: 3 × height × width, 0 … 1. */
function cut({ data, width }: RgbImage, across: UpscaleTile, down: UpscaleTile): Float32Array {
  const pixels = (across.to - across.from) * (down.to - down.from);
  const sample = new Float32Array(3 * pixels);
  let at = 0;
  for (let y = down.from; y < down.to; y++) {
    for (let x = across.from; x < across.to; x++, at++) {
      for (let color = 0; color < 3; color++)
        sample[color * pixels + at] = byteAt(data, (y * width + x) * 3 + color) / 255;
    }
  }
  return sample;
}
