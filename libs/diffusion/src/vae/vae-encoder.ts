import type { OnnxSession } from '@darkroom/runtime';
import { tryGraph } from '../graphs/load-graph.ts';
import type { LatentFacts } from '../model/facts/latent-facts.ts';
import { modelFileError } from '../model/model-file.ts';
import { lengthOf } from './plane.ts';

/** What logarithms of variances are kept within (diffusers `DiagonalGaussianDistribution`). */
const logVariances = { min: -30, max: 20 };

/** What a picture may be as latents: for each of them a normal distribution. Not scaled yet. */
export interface LatentDistribution {
  readonly mean: Float32Array;
  /** Standard deviations; absent where the encoder gives latents themselves. */
  readonly deviation?: Float32Array;
}

export interface VaeEncoderOptions {
  /** Relative to the model's directory. */
  file: string;
  session: OnnxSession;
  latents: LatentFacts;
}

/**
 * Turns pictures into latents.
 *
 * Known limit: a picture is encoded in one go, however large it is.
 */
export class VaeEncoder {
  readonly #options: VaeEncoderOptions;

  /** @throws DarkroomError `model_unsupported` if the graph has more inputs than the picture. */
  constructor(options: VaeEncoderOptions) {
    const { file, session } = options;
    this.#options = options;
    const names = session.inputs.map(({ name }) => name);
    if (names.length !== 1) throw modelFileError(file, `has the inputs ${names.join(', ')}; supported is one, sample`);
  }

  /**
   * Encodes one picture, always alone, so that its numbers do not depend on which others came with it.
   *
   * @param picture 3 × height × width, −1 … 1.
   * @throws DarkroomError if the graph fails.
   */
  async encode(
    picture: Float32Array,
    { width, height }: { width: number; height: number },
  ): Promise<LatentDistribution> {
    const { latents } = this.#options;
    const { data } = await this.#run(picture, [1, 3, height, width]);
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
   * @throws DarkroomError naming the file, if it gives neither moments nor latents.
   */
  async try(side: number): Promise<void> {
    const { file, session, latents } = this.#options;
    const takes = `${session.inputs[0]!.name} [1, 3, ${side}, ${side}]`;
    const run = () => this.#run(new Float32Array(3 * side * side), [1, 3, side, side]);
    const result = run();
    const small = side / latents.factor;
    const { dims } = await result.catch(() => ({ dims: [] }));
    // As many channels again are the logarithms of variances.
    const channels = dims[1] === latents.channels ? latents.channels : latents.channels * 2;
    await tryGraph({ file, run: () => result, takes, gives: [1, channels, small, small] });
  }

  #run(picture: Float32Array, dims: readonly number[]) {
    const { session } = this.#options;
    return session.run({ [session.inputs[0]!.name]: { data: picture, dims } }, session.outputs[0]!.name);
  }
}
