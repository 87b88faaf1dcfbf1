/**
 * Enlarges pictures by a super-resolution graph, piece by piece, each with some of what lies around it: so memory is bounded whatever the
 * size, and no piece depends on who else is served. One tensor in and one out, of RGB in 0 … 1: as Optimum exports Swin2SR
 * (`pixel_values`, `reconstruction`), and as ESRGAN and its like are exported, whatever theirs are called.
 */
import { type Upscale, type UpscalePiece, upscalePiecesOf } from '@darkroom/kinds';
import type { OnnxSession } from '@darkroom/runtime';
import { type LoadedGraph, tryGraph } from '../graphs/load-graph.ts';
import { modelFileError } from '../model/model-file.ts';
import type { RgbPicture } from '../safety/resample.ts';
import { roundHalfEven } from '../schedulers/schedule/timestep-grid.ts';

/** Pixels of the picture that a graph is tried with: no square, for one that takes a single size to be found out. */
const trial = { width: 64, height: 48 };

/**
 * Takes a graph for an upscaler, and calls it once.
 *
 * @throws DarkroomError `model_unsupported` naming the file if it is none, or `out_of_memory`.
 */
export async function loadUpscaler({ file, session }: LoadedGraph, upscale: Upscale): Promise<Upscaler> {
  const [input, ...others] = session.inputs;
  if (input === undefined || others.length > 0) {
    const names = session.inputs.map(({ name }) => name).join(', ');
    throw modelFileError(file, `takes ${names}; expected one input, of pictures`);
  }
  const upscaler = new Upscaler(session, upscale);
  const { width, height } = trial;
  await tryGraph({
    file,
    run: () => upscaler.run(new Float32Array(3 * width * height), trial),
    takes: `${input.name} [1, 3, ${height}, ${width}]`,
    gives: [1, 3, height * upscale, width * upscale],
  });
  return upscaler;
}

/** A picture that becomes larger. */
export interface Enlarging {
  readonly picture: RgbPicture;
  /** RGB of the larger one. */
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
   * Enlarges one piece.
   *
   * @param at its number, across and then down; as many as `upscaleSteps` says.
   * @throws DarkroomError if the graph fails.
   */
  async enlarge({ picture, target }: Enlarging, at: number): Promise<void> {
    const columns = upscalePiecesOf(picture.width);
    const across = columns[at % columns.length]!;
    const down = upscalePiecesOf(picture.height)[Math.floor(at / columns.length)]!;
    const size = { width: across.to - across.from, height: down.to - down.from };
    const { data } = await this.run(cut(picture, across, down), size);
    this.#paste(data, { target, targetWidth: picture.width * this.upscale, across, down });
  }

  /** @param sample 3 × height × width. */
  run(sample: Float32Array, { width, height }: { width: number; height: number }) {
    const { inputs, outputs } = this.#session;
    return this.#session.run({ [inputs[0]!.name]: { data: sample, dims: [1, 3, height, width] } }, outputs[0]!.name);
  }

  /** What a piece is asked for, in 8 bits. */
  #paste(
    sample: Float32Array,
    options: { target: Uint8Array; targetWidth: number; across: UpscalePiece; down: UpscalePiece },
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
          const value = Math.min(Math.max(sample[color * plane + from]!, 0), 1);
          target[to + color] = roundHalfEven(Math.fround(value * 255));
        }
      }
    }
  }
}

/** As the graph takes it: 3 × height × width, 0 … 1. */
function cut({ data, width }: RgbPicture, across: UpscalePiece, down: UpscalePiece): Float32Array {
  const pixels = (across.to - across.from) * (down.to - down.from);
  const sample = new Float32Array(3 * pixels);
  let at = 0;
  for (let y = down.from; y < down.to; y++) {
    for (let x = across.from; x < across.to; x++, at++) {
      for (let color = 0; color < 3; color++) sample[color * pixels + at] = data[(y * width + x) * 3 + color]! / 255;
    }
  }
  return sample;
}
