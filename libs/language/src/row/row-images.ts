/** The images of a row: their positions in the prompt, and their embeddings. */
import { createHash } from 'node:crypto';
import { DarkroomError, type RowRequest } from '@darkroom/core';
import { decodeRgb } from '@darkroom/imaging';
import { countTiles, type ImageTokens } from '@darkroom/kinds';
import { firstImageId } from '../decoder/decoder-tokens.ts';
import type { ImageEncoder } from '../vision/image-encoder.ts';

/** An image of a request. */
interface PromptImage {
  /** Id of its positions in the prompt; equal images have the same. */
  readonly id: number;
  /** Number of its positions. */
  readonly tokens: number;
  /** PNG. Decoded pixels take several times its memory. */
  readonly file: Uint8Array;
}

/**
 * Reads the images of a request.
 *
 * @param prompt with the image token at each position of an image.
 * @returns the prompt with the images' own ids in place of the image tokens.
 * @throws DarkroomError `invalid_request` if an image is missing or cannot be read, or if the number of image tokens in
 * the prompt does not match the images.
 */
export async function readPromptImages(
  prompt: readonly number[],
  attachments: RowRequest['attachments'] = new Map(),
  tokens: Omit<ImageTokens, 'token'>,
): Promise<{ prompt: readonly number[]; images: readonly PromptImage[] }> {
  const images: PromptImage[] = [];
  // By name: a map has the order of the store.
  for (let index = 0; index < attachments.size; index++)
    images.push(await readImage(`image-${index}`, attachments, tokens));
  const ids = images.flatMap(({ id, tokens: count }) => Array.from({ length: count }, () => id));
  const found = prompt.filter((id) => id === tokens.tokenId).length;
  if (found !== ids.length)
    throw invalid(`prompt: has ${found} image tokens, expected ${ids.length} for ${images.length} images`);
  let at = 0;
  return { prompt: prompt.map((id) => (id === tokens.tokenId ? ids[at++]! : id)), images };
}

async function readImage(
  name: string,
  attachments: ReadonlyMap<string, Uint8Array>,
  tokens: Omit<ImageTokens, 'token'>,
): Promise<PromptImage> {
  const file = attachments.get(name);
  if (file === undefined) throw invalid(`${name}: is missing from the request's attachments`);
  const image = await decodeRgb(file).catch((error: unknown) => {
    throw invalid(`${name}: is not a readable image`, error);
  });
  const hash = createHash('sha256').update(file).digest().readUIntBE(0, 6);
  return { id: firstImageId + hash, tokens: tokens.perTile * countTiles(tokens, image), file };
}

function invalid(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'language.create-rows', message, cause);
}

/** The images of a row. Each is encoded before the first chunk of the prompt is read. */
export class RowImages {
  readonly #images: readonly PromptImage[];
  /** Positions of images in the prompt, ascending. */
  readonly #positions: readonly number[];
  /** Embeddings of the images that are encoded. */
  readonly #encoded = new Map<PromptImage, Float32Array>();
  readonly #width: number;

  /** @param width numbers per embedding. */
  constructor(prompt: readonly number[], images: readonly PromptImage[], width: number) {
    this.#images = images;
    this.#width = width;
    this.#positions = prompt.flatMap((id, at) => (id >= firstImageId ? [at] : []));
  }

  /** Returns true if an image at or behind this position is not encoded yet. */
  isMissingFrom(position: number): boolean {
    return this.#missingFrom(position) !== undefined;
  }

  /** Encodes the first missing image in parts. Has no effect unless iterated to its end. */
  async *encodeNext(position: number, encoder: ImageEncoder): AsyncGenerator<void, []> {
    const image = this.#missingFrom(position);
    if (image !== undefined) this.#encoded.set(image, yield* encoder.encode(await decodeRgb(image.file)));
    return [];
  }

  /** Returns the embeddings of the images' positions from `first` to before `end`; those images must be encoded. */
  embeddingsOf(first: number, end: number): Float32Array {
    const from = this.#countBefore(first);
    const count = this.#countBefore(end) - from;
    const embeddings = new Float32Array(count * this.#width);
    let start = 0;
    for (const image of this.#images) {
      const [begin, stop] = [Math.max(from, start), Math.min(from + count, start + image.tokens)];
      const encoded = begin < stop ? this.#encoded.get(image) : undefined;
      if (encoded !== undefined)
        embeddings.set(
          encoded.subarray((begin - start) * this.#width, (stop - start) * this.#width),
          (begin - from) * this.#width,
        );
      start += image.tokens;
    }
    return embeddings;
  }

  #missingFrom(position: number): PromptImage | undefined {
    let end = 0;
    return this.#images.find((image) => {
      end += image.tokens;
      return this.#positions[end - 1]! >= position && !this.#encoded.has(image);
    });
  }

  #countBefore(position: number): number {
    const found = this.#positions.findIndex((at) => at >= position);
    return found === -1 ? this.#positions.length : found;
  }
}
