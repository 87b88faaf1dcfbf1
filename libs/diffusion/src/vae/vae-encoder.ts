import { itemAt } from '@darkroom/core';
import { lengthOf, type OnnxSession } from '@darkroom/runtime';
import { tryGraph } from '../onnx/load-graph.ts';
import type { LatentConfig } from '../model/config/latent-config.ts';
import { modelFileError } from '@darkroom/runtime/model-file';

/** Range that log variances are clamped to (diffusers `DiagonalGaussianDistribution`). */
const logVariances = { min: -30, max: 20 };

/** The encoder's output: a normal distribution for each latent. Not scaled yet. */
export interface LatentDistribution {
  readonly mean: Float32Array;
  /** Standard deviations; absent if the encoder returns latents. */
  readonly deviation?: Float32Array;
}

export interface VaeEncoderOptions {
  /** Relative to the model's directory. */
  file: string;
  session: OnnxSession;
  latents: LatentConfig;
}

/**
 * Encodes images to latents.
 *
 * Known limit: an image is encoded in one call, whatever its size.
 */
export class VaeEncoder {
  readonly #options: VaeEncoderOptions;

  /** Creates an encoder. @throws DarkroomError `model_unsupported` if the graph has more inputs than the image. */
  constructor(options: VaeEncoderOptions) {
    const { file, session } = options;
    this.#options = options;
    const names = session.inputs.map(({ name }) => name);
    if (names.length !== 1) throw modelFileError(file, `has the inputs ${names.join(', ')}; supported is one, sample`);
  }

  /**
   * Encodes one image, always in a call of its own, so that its numbers do not depend on other images.
   *
   * @param image 3 × height × width, −1 … 1.
   * @throws DarkroomError if the graph fails.
   */
  async encode(image: Float32Array, { width, height }: { width: number; height: number }): Promise<LatentDistribution> {
    const { latents } = this.#options;
    const { data } = await this.#run(image, [1, 3, height, width]);
    const length = lengthOf([latents.channels, height / latents.factor, width / latents.factor]);
    if (data.length === length) return { mean: data };
    const deviation = data.slice(length).map((logVariance) => {
      const { min, max } = logVariances;
      return Math.exp(Math.fround(0.5 * Math.min(Math.max(logVariance, min), max)));
    });
    return { mean: data.slice(0, length), deviation };
  }

  /**
   * Calls the graph once, with a grey square.
   *
   * @param side pixels.
   * @throws DarkroomError naming the file, if it returns neither moments nor latents.
   */
  async try(side: number): Promise<void> {
    const { file, session, latents } = this.#options;
    const takes = `${itemAt(session.inputs, 0).name} [1, 3, ${side}, ${side}]`;
    const run = () => this.#run(new Float32Array(3 * side * side), [1, 3, side, side]);
    const result = run();
    const small = side / latents.factor;
    const { dims } = await result.catch(() => ({ dims: [] }));
    // Twice the channels if the output includes log variances.
    const channels = dims[1] === latents.channels ? latents.channels : latents.channels * 2;
    await tryGraph({ file, run: () => result, inputs: takes, outputDims: [1, channels, small, small] });
  }

  #run(image: Float32Array, dims: readonly number[]) {
    const { session } = this.#options;
    return session.run({ [itemAt(session.inputs, 0).name]: { data: image, dims } });
  }
}
