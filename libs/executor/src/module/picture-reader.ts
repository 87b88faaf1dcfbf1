import type { RowEvent, RowOutput } from '@darkroom/core';
import { type PictureInput, seedOfPicture } from '@darkroom/kinds';
import { pictureTypeOf } from '../picture-type.ts';
import type { MostBytes } from './module-message.ts';
import type { OutputReader } from './output-reader.ts';
import { isObject, isWhole, unknownField, WrongSaid } from './wrong-said.ts';

/** What a file of a picture has at most, and its head: a PNG of noise has 3.04 bytes for each pixel. */
const bytesPerPixel = 3.1;
const headBytes = 2048;
/** As the store counts it when it says how much a request may keep there. */
const previewBytesPerPixel = 0.25;

const fileExpected = 'data that is a file, and its contentType, one of image/png, image/jpeg, image/webp';

/** Of a picture: steps, with previews or without, and the picture. */
export class PictureReader implements OutputReader {
  readonly most: MostBytes;
  readonly #input: PictureInput;
  readonly #index: number;
  #done = 0;

  constructor(input: PictureInput, index: number) {
    this.#input = input;
    this.#index = index;
    const of = (share: number): number => Math.ceil(this.#pixels * share) + 2 * headBytes;
    this.most = { said: of(previewBytesPerPixel), returned: of(bytesPerPixel) };
  }

  *read(said: unknown): Generator<RowEvent> {
    const { numInferenceSteps: total, previewEvery } = this.#input;
    const isStep = isObject(said) && unknownField(said, ['step', 'preview']) === undefined;
    if (!isStep || !isWhole(said['step'], this.#done + 1, total))
      throw new WrongSaid(
        'run gave out',
        said,
        `{ step, preview } with step a whole number from ${this.#done + 1} to ${total}`,
      );
    const { step: done, preview } = said as { step: number; preview?: unknown };
    this.#done = done;
    const isAsked = previewEvery > 0 && done % previewEvery === 0 && done < total;
    if (preview === undefined || !isAsked) return yield { type: 'progress', done, total };
    const file = this.#file(preview, 'run gave out a preview', previewBytesPerPixel);
    yield { type: 'progress', done, total, preview: { ...file, facts: {} } };
  }

  end(said: unknown): RowOutput {
    const { width, height, seed } = this.#input;
    const facts = { width, height, seed: seedOfPicture(seed, this.#index) };
    if (isObject(said) && said['contentType'] !== undefined)
      return { ...this.#file(said, 'run returned', bytesPerPixel), facts };
    const data = isObject(said) ? said['data'] : undefined;
    const bytes = this.#pixels * 3;
    if (!(data instanceof Uint8Array) || data.length !== bytes || unknownField(said as object, ['data']) !== undefined)
      throw new WrongSaid(
        'run returned',
        said,
        `{ data } of ${bytes} bytes, RGB of ${width}x${height}, or with a contentType`,
      );
    return { data, facts };
  }

  get #pixels(): number {
    return this.#input.width * this.#input.height;
  }

  #file(said: unknown, what: string, share: number): { data: Uint8Array; contentType: string } {
    const most = Math.ceil(this.#pixels * share) + headBytes;
    const { data, contentType } = isObject(said) ? said : {};
    const type = data instanceof Uint8Array ? pictureTypeOf(data) : undefined;
    if (
      !(data instanceof Uint8Array) ||
      type === undefined ||
      type !== contentType ||
      unknownField(said as object, ['data', 'contentType']) !== undefined
    )
      throw new WrongSaid(what, said, fileExpected);
    if (data.length > most) throw new WrongSaid(`${what} with`, data, `at most ${most}`);
    return { data, contentType: type };
  }
}
