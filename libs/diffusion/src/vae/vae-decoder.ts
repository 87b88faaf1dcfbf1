import type { OnnxSession } from '@darkroom/runtime';
import { ProtobufError } from '../onnx/protobuf-file.ts';
import { type DecoderPart, splitDecoder, UncuttableError } from '../onnx/split-decoder.ts';
import { TorchGenerator } from '../random/torch-generator.ts';
import { decodeInPieces } from './decode-in-pieces.ts';

/** How far a picture that was decoded in pieces may be from the whole, in values of −1 … 1: two of 255 levels. */
const largestDifference = 2 / 127.5;

/** Pixels. Of 256 channels, as such decoders have at most, ONNX Runtime needs half a gigabyte for it. */
const largestPiece = 256 ** 2;

export interface VaeDecoderOptions {
  /** Relative to the model's directory. */
  file: string;
  /** The graph's, absolute. */
  path: string;
  session: OnnxSession;
  loadPart: (file: Uint8Array) => Promise<OnnxSession>;
  /** Pixels of the picture for one of the latents, each way. */
  factor: number;
  /** Pictures of more pixels are decoded in pieces. */
  wholePixels: number;
}

/** Turns latents into pictures: in one go, or large ones in pieces. */
export class VaeDecoder {
  readonly options: VaeDecoderOptions;
  /** Why large pictures are decoded in one go, if they are. */
  remark: string | undefined;
  #parts: readonly DecoderPart[] | undefined;

  constructor(options: VaeDecoderOptions) {
    this.options = options;
  }

  /**
   * Finds out whether the decoder can be cut: whether small latents become the same in pieces as in one go. If not, that
   * is a remark and no error.
   *
   * @param dims of the latents: channels, height and width. What one piece holds whole tells nothing.
   */
  async tryPieces(dims: readonly [number, number, number]): Promise<void> {
    const { path, factor, loadPart: load } = this.options;
    const latents = new Float32Array(dims[0] * dims[1] * dims[2]);
    new TorchGenerator({ seed: 0 }).fillNormal(latents);
    try {
      const parts = splitDecoder(path);
      const whole = await this.#decodeWhole(latents, dims);
      // As small as pieces can be.
      const pieces = await decodeInPieces({ parts, load, latents, latentDims: dims, piecePixels: factor, factor });
      const difference = worstDifference(whole, pieces);
      if (!(difference <= largestDifference)) throw new UncuttableError(`it differs by ${difference} then`);
      this.#parts = parts;
    } catch (error) {
      const isExpected = error instanceof UncuttableError || error instanceof ProtobufError;
      const reason = isExpected ? error.message : `in parts it fails: ${messageOf(error)}`;
      this.remark = `large pictures are decoded in one go, because the decoder cannot be cut: ${reason}`;
    }
  }

  /**
   * Decodes one picture.
   *
   * @param dims channels, height and width of the latents.
   * @returns 3 × height × width, −1 … 1.
   * @throws DarkroomError if the graph fails.
   */
  async decode(latents: Float32Array, dims: readonly [number, number, number]): Promise<Float32Array> {
    const { factor, wholePixels, loadPart: load } = this.options;
    const parts = this.#parts;
    const isLarge = dims[1] * dims[2] * factor * factor > wholePixels;
    if (!isLarge || parts === undefined) return this.#decodeWhole(latents, dims);
    const piecePixels = Math.min(wholePixels / 4, largestPiece);
    return decodeInPieces({ parts, load, latents, latentDims: dims, piecePixels, factor });
  }

  async #decodeWhole(latents: Float32Array, dims: readonly [number, number, number]): Promise<Float32Array> {
    const { session } = this.options;
    return (await session.run({ latent_sample: { data: latents, dims: [1, ...dims] } }, session.outputs[0]!.name)).data;
  }
}

/** NaN if one of them is not a number, and Infinity if they are of different lengths. */
function worstDifference(left: Float32Array, right: Float32Array): number {
  if (left.length !== right.length) return Infinity;
  let worst = 0;
  for (const [at, value] of left.entries()) worst = Math.max(worst, Math.abs(clamp(value) - clamp(right[at]!)));
  return worst;
}

function clamp(value: number): number {
  return Math.min(Math.max(value, -1), 1);
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}
