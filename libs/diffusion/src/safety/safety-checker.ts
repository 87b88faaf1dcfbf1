/**
 * Looks at finished pictures as diffusers' pipelines do, one at a time, so that nobody's verdict depends on others.
 * Source: diffusers `StableDiffusionSafetyChecker` and `OnnxStableDiffusionPipeline`, with the graph as diffusers' exporter writes it:
 * `clip_input` and `images` in, `out_images` and `has_nsfw_concepts` out.
 */
import { DarkroomError, type RowOutput } from '@darkroom/core';
import type { LoadedSession } from '@darkroom/runtime';
import type { LoadedGraph } from '../graphs/load-graph.ts';
import { modelFileError } from '../model/model-file.ts';
import { clipImageOf, type ClipImageSettings } from './clip-image.ts';
import type { RgbPicture } from './resample.ts';

export interface SafetyCheckerOptions {
  settings: ClipImageSettings;
  /** A picture that it finds fault with cannot be had; otherwise it is made black. */
  refuses: boolean;
}

const verdict = 'has_nsfw_concepts';
/** Pixels each way of the picture that a graph is tried with. */
const trialSide = 64;

/**
 * Takes a graph for a checker, and calls it once.
 *
 * @throws DarkroomError `model_unsupported` naming the file if it is none, or `out_of_memory`.
 */
export async function loadSafetyChecker(
  { file, session }: LoadedGraph<LoadedSession>,
  options: SafetyCheckerOptions,
): Promise<SafetyChecker> {
  const inputs = session.inputs.map(({ name }) => name);
  const outputs = session.outputs.map(({ name }) => name);
  const isOne = ['clip_input', 'images'].every((name) => inputs.includes(name)) && outputs.includes(verdict);
  if (!isOne) {
    const expected = `clip_input and images, and ${verdict}, as exports of StableDiffusionSafetyChecker have`;
    throw modelFileError(file, `takes ${inputs.join(', ')} and gives ${outputs.join(', ')}; expected ${expected}`);
  }
  const checker = new SafetyChecker(session, options);
  const trial = { data: new Uint8Array(trialSide ** 2 * 3), width: trialSide, height: trialSide };
  await checker.findsFaultWith(trial).catch((error: Error & { code?: string }) => {
    if (error.code === 'out_of_memory') throw error;
    throw modelFileError(file, `cannot look at a picture: ${error.message}`, error.cause);
  });
  return checker;
}

export class SafetyChecker {
  readonly #session: LoadedSession;
  readonly #options: SafetyCheckerOptions;

  constructor(session: LoadedSession, options: SafetyCheckerOptions) {
    this.#session = session;
    this.#options = options;
  }

  /**
   * The picture with what is found of it, as the fact `nsfw`; black where fault is found.
   *
   * @param output RGB, with the facts `width` and `height`.
   * @throws DarkroomError `content_policy_violation` where such pictures are refused.
   */
  async check({ data, facts }: RowOutput, index: number): Promise<RowOutput> {
    const nsfw = await this.findsFaultWith({ data, width: Number(facts['width']), height: Number(facts['height']) });
    if (nsfw && this.#options.refuses) {
      const message = `NSFW content was found in picture ${index}, which is refused here. Try another seed or prompt.`;
      throw new DarkroomError('content_policy_violation', 'diffusion.check', message);
    }
    return { data: nsfw ? new Uint8Array(data.length) : data, facts: { ...facts, nsfw } };
  }

  /** @throws DarkroomError if the graph fails, or says nothing. */
  async findsFaultWith(picture: RgbPicture): Promise<boolean> {
    const { settings } = this.#options;
    const { data, width, height } = picture;
    const feeds = {
      clip_input: {
        data: clipImageOf(picture, settings),
        dims: [1, 3, settings.crop.height, settings.crop.width],
      },
      images: { data: Float32Array.from(data, (value) => value / 255), dims: [1, height, width, 3] },
    };
    const found = (await this.#session.runAsItIs(feeds, [verdict])).get(verdict)!;
    if (found.data.length !== 1) {
      const message = `the safety checker gave ${found.data.length} verdicts on one picture`;
      throw new DarkroomError('engine_failed', 'diffusion.check', message);
    }
    return Boolean(found.data[0]);
  }
}
