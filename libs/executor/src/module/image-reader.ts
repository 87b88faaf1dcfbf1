import type { RowEvent, RowOutput } from '@darkroom/core';
import { type ImageInput, imageTypeOf, seedOfImage } from '@darkroom/kinds';
import type { MaxBytes } from './module-message.ts';
import type { OutputReader } from './output-reader.ts';
import { isObject, isInteger, unknownField, ContractViolation } from './contract-violation.ts';

/** Max size of an image file: bytes per pixel plus a header. A PNG of noise has 3.04 bytes per pixel. */
const bytesPerPixel = 3.1;
const headBytes = 2048;
/** The figure by which the store bounds a request's previews. */
const previewBytesPerPixel = 0.25;

const fileExpected = 'data that is a file, and its contentType, one of image/png, image/jpeg, image/webp';

/** Validates a module's steps (with or without previews) and its image. */
export class ModuleImageReader implements OutputReader {
  readonly maxBytes: MaxBytes;
  readonly #input: ImageInput;
  readonly #index: number;
  #done = 0;

  constructor(input: ImageInput, index: number) {
    this.#input = input;
    this.#index = index;
    const bytesFor = (share: number): number => Math.ceil(this.#pixels * share) + 2 * headBytes;
    this.maxBytes = { yielded: bytesFor(previewBytesPerPixel), returned: bytesFor(bytesPerPixel) };
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
    const file = this.#file(preview, 'run yielded a preview', previewBytesPerPixel);
    yield { type: 'progress', done, total, preview: { ...file, facts: {} } };
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
