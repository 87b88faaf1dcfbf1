import { numberAt } from '@darkroom/core';
import { lengthOf, type OnnxSession } from '@darkroom/runtime';
import { ProtobufError } from '../onnx/protobuf-file.ts';
import { type DecoderPart, splitDecoder, UnsplittableError } from '../onnx/split-decoder.ts';
import { TorchGenerator } from '../random/torch-generator.ts';
import { decodeInTiles } from './decode-in-tiles.ts';
import type { LatentDims } from './plane.ts';

/** Maximum difference of a tiled image from one decoded in one call, in values of −1 … 1: two of 255 levels. */
const maxDifference = 2 / 127.5;

/**
 * Maximum pixels per tile. With 256 channels, the maximum of such decoders, ONNX Runtime needs half a gigabyte for it.
 */
const maxTilePixels = 256 ** 2;

export interface VaeDecoderOptions {
  /** Relative to the model's directory. */
  file: string;
  /** Absolute path of the graph. */
  path: string;
  session: OnnxSession;
  loadPart: (file: Uint8Array) => Promise<OnnxSession>;
  /** Pixels per latent, in each direction. */
  factor: number;
  /** Images with more pixels are decoded in tiles. */
  maxUntiledPixels: number;
}

/** Decodes latents to images: in one call, or large ones in tiles. */
export class VaeDecoder {
  readonly options: VaeDecoderOptions;
  /** The reason why large images are decoded in one call; undefined if they are tiled. */
  remark: string | undefined;
  #parts: readonly DecoderPart[] | undefined;

  constructor(options: VaeDecoderOptions) {
    this.options = options;
  }

  /**
   * Tries tiled decoding: compares small latents decoded in tiles with the same in one call. If they differ or
   * splitting fails, sets `remark` instead of throwing.
   *
   * @param dims of the latents: channels, height and width. They must span several tiles.
   */
  async tryTiles(dims: LatentDims): Promise<void> {
    const { path, factor, loadPart: load } = this.options;
    const latents = new Float32Array(lengthOf(dims));
    new TorchGenerator({ seed: 0 }).fillNormal(latents);
    try {
      const parts = splitDecoder(path);
      const untiled = await this.#decodeUntiled(latents, dims);
      // The smallest possible tiles.
      const tiled = await decodeInTiles({ parts, load, latents, latentDims: dims, tilePixels: factor, factor });
      const difference = maxDifferenceOf(untiled, tiled);
      if (!(difference <= maxDifference)) throw new UnsplittableError(`tiles differ by ${difference}`);
      this.#parts = parts;
    } catch (error) {
      const isExpected = error instanceof UnsplittableError || error instanceof ProtobufError;
      const reason = isExpected ? error.message : `tiled decoding failed: ${messageOf(error)}`;
      this.remark = `large images are decoded in one call, because the decoder cannot be tiled: ${reason}`;
    }
  }

  /**
   * Decodes one image.
   *
   * @param dims channels, height and width of the latents.
   * @returns 3 × height × width, −1 … 1.
   * @throws DarkroomError if the graph fails.
   */
  async decode(latents: Float32Array, dims: LatentDims): Promise<Float32Array> {
    const { factor, maxUntiledPixels: wholePixels, loadPart: load } = this.options;
    const parts = this.#parts;
    const isLarge = dims[1] * dims[2] * factor * factor > wholePixels;
    if (!isLarge || parts === undefined) return this.#decodeUntiled(latents, dims);
    const tilePixels = Math.min(wholePixels / 4, maxTilePixels);
    return decodeInTiles({ parts, load, latents, latentDims: dims, tilePixels, factor });
  }

  async #decodeUntiled(latents: Float32Array, dims: LatentDims): Promise<Float32Array> {
    const { session } = this.options;
    return (await session.run({ latent_sample: { data: latents, dims: [1, ...dims] } })).data;
  }
}

/** Returns the maximum difference; NaN if a value is NaN, Infinity if the lengths differ. */
function maxDifferenceOf(left: Float32Array, right: Float32Array): number {
  if (left.length !== right.length) return Infinity;
  let worst = 0;
  for (const [at, value] of left.entries()) {
    worst = Math.max(worst, Math.abs(clamp(value) - clamp(numberAt(right, at))));
  }
  return worst;
}

function clamp(value: number): number {
  return Math.min(Math.max(value, -1), 1);
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message} (${error.cause.message})` : error.message;
}
