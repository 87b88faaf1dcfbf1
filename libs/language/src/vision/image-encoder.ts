/** Encodes images as embeddings that replace the image tokens of a prompt. */
import { join } from 'node:path';
import type { Device, PipelineComponent } from '@darkroom/core';
import type { RawImage } from '@darkroom/imaging';
import { countTiles } from '@darkroom/kinds';
import { loadSplitSession, type SplitSession, type TensorValue } from '@darkroom/runtime';
import { modelFileError, withFileName } from '@darkroom/runtime/model-file';
import { lastOf } from '../decoder/decoder.ts';
import type { ImageConfig } from '../model/image-config.ts';
import { type TilePixels, tilesOf } from './pixel-values.ts';

export interface LoadImageEncoderOptions {
  /** The model's directory. */
  readonly directory: string;
  /** Path of the graph, relative to the directory. */
  readonly graph: string;
  readonly images: ImageConfig;
  /** Numbers per embedding. */
  readonly width: number;
  readonly devices?: readonly Device[] | undefined;
  readonly threads?: number | undefined;
}

/** Min weight bytes per part of the graph, about one layer. Other rows step between parts. */
const partBytes = 500_000;

/** A loaded `vision_encoder.onnx`. Encodes one tile per call: an image's embeddings depend on that image alone. */
export class ImageEncoder {
  readonly component: PipelineComponent;
  readonly #session: SplitSession;
  readonly #images: ImageConfig;
  readonly #width: number;

  private constructor(session: SplitSession, { images, width }: LoadImageEncoderOptions) {
    this.#session = session;
    this.#images = images;
    this.#width = width;
    this.component = { part: 'vision_encoder', device: session.device, refusals: session.refusals };
  }

  /**
   * Loads the graph and encodes a blank tile.
   *
   * @throws DarkroomError naming the file: `model_unsupported` if the graph does not match the configuration, else
   * `engine_failed` or `out_of_memory`.
   */
  static async load(options: LoadImageEncoderOptions): Promise<ImageEncoder> {
    const { directory, graph, images, devices, threads } = options;
    const blank = new Float32Array(3 * images.side ** 2);
    const sample = feedsOf(blank, images);
    const session = await withFileName(
      graph,
      loadSplitSession({
        file: join(directory, graph),
        ...(devices && { devices }),
        ...(threads !== undefined && { threads }),
        cutAfter: 'Softmax',
        minPartBytes: partBytes,
        sizedBy: 'pixel_values',
        // A tile always has the same size.
        samples: [sample, sample],
      }),
    );
    try {
      checkTensors(session, options);
      const encoder = new ImageEncoder(session, options);
      await withFileName(graph, lastOf(encoder.#encodeTile(blank, new Float32Array(encoder.#tileLength))));
      return encoder;
    } catch (error) {
      await session.dispose();
      throw error;
    }
  }

  /**
   * Encodes an image in parts, between which other calls may run.
   *
   * @returns the embeddings of its tiles: `[tiles * perTile, width]`.
   */
  async *encode(image: RawImage): AsyncGenerator<void, Float32Array> {
    const embeddings = new Float32Array(countTiles(this.#images, image) * this.#tileLength);
    let first = 0;
    for (const tile of tilesOf(image, this.#images)) {
      if (tile !== undefined) {
        yield* this.#encodeTile(tile, embeddings.subarray(first, first + this.#tileLength));
        first += this.#tileLength;
      }
      yield;
    }
    return embeddings;
  }

  async dispose(): Promise<void> {
    await this.#session.dispose();
  }

  get #tileLength(): number {
    return this.#images.perTile * this.#width;
  }

  async *#encodeTile(tile: TilePixels, data: Float32Array): AsyncGenerator<void, void> {
    const feeds = feedsOf(tile, this.#images);
    const into = new Map([['image_features', { data, dims: [1, this.#images.perTile, this.#width] }]]);
    yield* this.#session.run(
      () => feeds,
      () => into,
    );
  }
}

function feedsOf(tile: TilePixels, { side, layout }: ImageConfig): Record<string, TensorValue> {
  if (layout === 'llava') return { pixel_values: { data: tile, dims: [1, 3, side, side] } };
  const mask = { data: new Uint8Array(side ** 2).fill(1), dims: [1, 1, side, side] };
  return { pixel_values: { data: tile, dims: [1, 1, 3, side, side] }, pixel_attention_mask: mask };
}

function checkTensors(session: SplitSession, { graph, images, width }: LoadImageEncoderOptions): void {
  const expected = Object.keys(feedsOf(new Float32Array(0), images));
  const unknown = session.inputs.find(({ name }) => !expected.includes(name));
  if (unknown !== undefined)
    throw modelFileError(graph, `has an input ${unknown.name}, expected ${expected.join(', ')}`);
  const features = session.outputs.find(({ name }) => name === 'image_features');
  if (features === undefined) throw modelFileError(graph, 'has no output image_features');
  if (features.type !== 'float32') throw modelFileError(graph, `image_features is ${features.type}, expected float32`);
  const wanted = ['…', images.perTile, width];
  const differs = features.shape.some((side, at) => typeof side === 'number' && at > 0 && side !== wanted[at]);
  if (features.shape.length !== wanted.length || differs) {
    const shapes = `[${features.shape.join(', ')}], expected by the configuration [${wanted.join(', ')}]`;
    throw modelFileError(graph, `image_features is ${shapes}`);
  }
}
