/**
 * Checks finished images like diffusers' pipelines, one per call, so that a verdict does not depend on other
 * images.
 * Source: diffusers `StableDiffusionSafetyChecker` and `OnnxStableDiffusionPipeline`, with the graph of diffusers'
 * exporter: inputs `clip_input` and `images`, outputs `out_images` and `has_nsfw_concepts`.
 */
import { DarkroomError, type RowOutput, valueOfKey } from '@darkroom/core';
import type { LoadedSession } from '@darkroom/runtime';
import type { LoadedGraph } from '../onnx/load-graph.ts';
import { modelFileError } from '@darkroom/runtime/model-file';
import { clipImageOf, type ClipImageSettings } from './clip-image.ts';
import type { RgbImage } from './resample.ts';

export interface SafetyCheckerOptions {
  settings: ClipImageSettings;
  /** True: a flagged image fails. False: it is blacked out. */
  refuses: boolean;
}

const verdict = 'has_nsfw_concepts';
/** Side of the trial image in pixels. */
const trialSide = 64;

/**
 * Creates a checker from a graph, and calls it once.
 *
 * @throws DarkroomError `model_unsupported` naming the file if it is not a safety checker, or `out_of_memory`.
 */
export async function loadSafetyChecker(
  { file, session }: LoadedGraph<LoadedSession>,
  options: SafetyCheckerOptions,
): Promise<SafetyChecker> {
  const inputs = session.inputs.map(({ name }) => name);
  const outputs = session.outputs.map(({ name }) => name);
  const isSafetyChecker = ['clip_input', 'images'].every((name) => inputs.includes(name)) && outputs.includes(verdict);
  if (!isSafetyChecker) {
    const expected = `clip_input and images, and ${verdict}, the inputs and outputs of exported StableDiffusionSafetyCheckers`;
    throw modelFileError(
      file,
      `has inputs ${inputs.join(', ')} and outputs ${outputs.join(', ')}; expected ${expected}`,
    );
  }
  const checker = new SafetyChecker(session, options);
  const trial = { data: new Uint8Array(trialSide ** 2 * 3), width: trialSide, height: trialSide };
  await checker.isFlagged(trial).catch((error: Error & { code?: string }) => {
    if (error.code === 'out_of_memory') throw error;
    throw modelFileError(file, `cannot check an image: ${error.message}`, error.cause);
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
   * Returns the image with the verdict in the field `nsfw`; a flagged image is blacked out.
   *
   * @param output RGB, with the fields `width` and `height`.
   * @throws DarkroomError `content_policy_violation` if flagged images are refused.
   */
  async check({ data, facts }: RowOutput, index: number): Promise<RowOutput> {
    const nsfw = await this.isFlagged({ data, width: Number(facts['width']), height: Number(facts['height']) });
    if (nsfw && this.#options.refuses) {
      const message = `NSFW content was found in image ${index}, and such images are refused by this server. Try another seed or prompt.`;
      throw new DarkroomError('content_policy_violation', 'diffusion.check', message);
    }
    return { data: nsfw ? new Uint8Array(data.length) : data, facts: { ...facts, nsfw } };
  }

  /** Returns true if the graph flags the image. @throws DarkroomError if the graph fails, or returns no verdict. */
  async isFlagged(image: RgbImage): Promise<boolean> {
    const { settings } = this.#options;
    const { data, width, height } = image;
    const feeds = {
      clip_input: {
        data: clipImageOf(image, settings),
        dims: [1, 3, settings.crop.height, settings.crop.width],
      },
      images: { data: Float32Array.from(data, (value) => value / 255), dims: [1, height, width, 3] },
    };
    const found = valueOfKey(await this.#session.runUntyped(feeds, [verdict]), verdict);
    if (found.data.length !== 1) {
      const message = `the safety checker returned ${found.data.length} verdicts for one image`;
      throw new DarkroomError('engine_failed', 'diffusion.check', message);
    }
    return Boolean(found.data[0]);
  }
}
