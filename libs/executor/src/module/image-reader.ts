import type { RowEvent, RowOutput } from '@darkroom/core';
import { type ImageInput, imageTypeOf, seedOfImage } from '@darkroom/kinds';
import type { MaxBytes } from './module-message.ts';
import type { OutputReader, ReaderState } from './output-reader.ts';
import { isObject, isInteger, unknownField, ContractViolation } from './contract-violation.ts';

/** Max size of an image file: bytes per pixel plus a header. A PNG of noise has 3.04 bytes per pixel. */
const bytesPerPixel = 3.1;
const headBytes = 2048;
/** The figure by which the store bounds a request's previews. */
const previewBytesPerPixel = 0.25;

/** Min factor between an image and its raw preview: latents are smaller by 8 in most models. */
const previewShrink = 4;

const fileExpected = 'data that is a file, and its contentType, one of image/png, image/jpeg, image/webp';

/** Validates a module's steps (with or without previews) and its image. */
export class ModuleImageReader implements OutputReader {
  readonly maxBytes: MaxBytes;
  readonly #input: ImageInput;
  readonly #index: number;
  #done: number;

  constructor(input: ImageInput, index: number, { done }: Pick<ReaderState, 'done'> = { done: 0 }) {
    this.#done = done;
    this.#input = input;
    this.#index = index;
    const bytesFor = (share: number): number => Math.ceil(this.#pixels * share) + 2 * headBytes;
    this.maxBytes = { yielded: bytesFor(previewBytesPerPixel), returned: bytesFor(bytesPerPixel) };
  }

  get state(): ReaderState {
    return { done: this.#done, text: '' };
  }

  *read(value: unknown): Generator<RowEvent> {
    const { numInferenceSteps: total, previewEvery } = this.#input;
    const isStep = isObject(value) && unknownField(value, ['step', 'preview']) === undefined;
    if (!isStep || !isInteger(value['step'], this.#done + 1, total))
      throw new ContractViolation(
        'run yielded',
        value,
        `{ step, preview } with step a whole number from ${this.#done + 1} to ${total}`,
      );
    const { step: done, preview } = value as { step: number; preview?: unknown };
    this.#done = done;
    const isDue = previewEvery > 0 && done % previewEvery === 0 && done < total;
    if (preview === undefined || !isDue) return yield { type: 'progress', done, total };
    yield { type: 'progress', done, total, preview: this.#preview(preview) };
  }

  end(value: unknown): RowOutput {
    const { width, height, seed } = this.#input;
    const facts = { width, height, seed: seedOfImage(seed, this.#index) };
    if (isObject(value) && value['contentType'] !== undefined)
      return { ...this.#file(value, 'run returned', bytesPerPixel), facts };
    const data = isObject(value) ? value['data'] : undefined;
    const bytes = this.#pixels * 3;
    if (!(data instanceof Uint8Array) || data.length !== bytes || unknownField(value as object, ['data']) !== undefined)
      throw new ContractViolation(
        'run returned',
        value,
        `{ data } of ${bytes} bytes, RGB of ${width}x${height}, or with a contentType`,
      );
    return { data, facts };
  }

  get #pixels(): number {
    return this.#input.width * this.#input.height;
  }

  #preview(value: unknown): RowOutput {
    if (!isObject(value) || value['contentType'] !== undefined)
      return { ...this.#file(value, 'run yielded a preview', previewBytesPerPixel), facts: {} };
    const { data, width, height } = value;
    const [maxWidth, maxHeight] = [this.#input.width / previewShrink, this.#input.height / previewShrink];
    const isSize = isInteger(width, 1, maxWidth) && isInteger(height, 1, maxHeight);
    const hasPixels = isSize && data instanceof Uint8Array && data.length === width * height * 3;
    if (!hasPixels || unknownField(value, ['data', 'width', 'height']) !== undefined)
      throw new ContractViolation(
        'run yielded a preview',
        value,
        `a file, or { data, width, height } with RGB of at most ${Math.floor(maxWidth)}x${Math.floor(maxHeight)}`,
      );
    return { data, facts: { width, height } };
  }

  #file(value: unknown, what: string, share: number): { data: Uint8Array; contentType: string } {
    const maxBytes = Math.ceil(this.#pixels * share) + headBytes;
    const { data, contentType } = isObject(value) ? value : {};
    const type = data instanceof Uint8Array ? imageTypeOf(data) : undefined;
    if (
      !(data instanceof Uint8Array) ||
      type === undefined ||
      type !== contentType ||
      unknownField(value as object, ['data', 'contentType']) !== undefined
    )
      throw new ContractViolation(what, value, fileExpected);
    if (data.length > maxBytes) throw new ContractViolation(`${what} with`, data, `at most ${maxBytes}`);
    return { data, contentType: type };
  }
}
