import { valueOfKey } from '@darkroom/core';
import type { RowOutput } from '@darkroom/core';
import { outputSize, type Upscale, upscaleSteps } from '@darkroom/kinds';
import type { Upscaler } from '../upscale/upscaler.ts';
import type { ImageRowInput } from './image-request.ts';

/** The upscaling of an image, which begins after its last denoising step. Each tile is one step. */
export class Upscaling {
  readonly upscale: Upscale;
  /** Number of tiles. */
  readonly tiles: number;
  done = 0;
  readonly #request: ImageRowInput;
  /** The decoded image, checked if there is a safety checker, and the RGB of the upscaled image. */
  #images: { readonly image: RowOutput; readonly target: Uint8Array } | undefined;

  constructor(request: ImageRowInput, upscale: Upscale) {
    this.#request = request;
    this.upscale = upscale;
    this.tiles = upscaleSteps({ ...request, upscale });
  }

  /** Returns undefined if the request does not upscale. */
  static begin(request: ImageRowInput): Upscaling | undefined {
    return request.upscale && new Upscaling(request, request.upscale);
  }

  /**
   * Upscales the next tile.
   *
   * @param decode decodes the image; called once, with the first tile.
   * @throws DarkroomError if a graph fails.
   */
  async upscaleTile(upscalers: ReadonlyMap<Upscale, Upscaler>, decode: () => Promise<RowOutput>): Promise<void> {
    const { width, height } = this.#request;
    const larger = outputSize(this.#request);
    this.#images ??= { image: await decode(), target: new Uint8Array(larger.width * larger.height * 3) };
    const { image, target } = this.#images;
    // An image that the safety checker blackened stays black: skip the upscaler.
    if (image.facts['nsfw'] !== true)
      await valueOfKey(upscalers, this.upscale).upscaleTile(
        { image: { data: image.data, width, height }, target },
        this.done,
      );
    this.done += 1;
  }

  /** The upscaled image, once all tiles are done. */
  get output(): RowOutput | undefined {
    if (this.#images === undefined) return undefined;
    const { image, target } = this.#images;
    return { data: target, facts: { ...image.facts, ...outputSize(this.#request) } };
  }
}
