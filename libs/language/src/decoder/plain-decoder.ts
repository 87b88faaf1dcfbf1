/**
 * The plain decoder layout: each call takes the keys and values of all tokens before (`past_key_values`), and gives them
 * back with those of the new tokens behind (`present`).
 *
 * Rows of different lengths share a call: a row's past stands at the beginning of its columns, what is missing to the
 * longest is masked. With that, and never a single query in a call, the bits of a row are the same in any company.
 */
import { GrowingArray, type OnnxSession, type TensorValue } from '@darkroom/runtime';
import type { Decoder, DecoderRead } from './decoder.ts';
import { keptLogits } from './kept-logits.ts';
import { type CacheShape, RowCache } from './row-cache.ts';
import { WholeNumbers } from './whole-numbers.ts';

export interface PlainDecoderOptions {
  session: OnnxSession;
  vocabularySize: number;
  shape: CacheShape;
}

/** Names of a cache's tensors, in the order in which a row's cache has them. */
export function cacheNames(prefix: string, { tensors }: Pick<CacheShape, 'tensors'>): string[] {
  return Array.from({ length: tensors }, (_, at) => `${prefix}.${at >> 1}.${at % 2 === 0 ? 'key' : 'value'}`);
}

/** How a call is laid out. */
interface CallSize {
  readonly rows: number;
  /** Columns of the past. */
  readonly past: number;
  /** Columns of new tokens. */
  readonly width: number;
}

export class PlainDecoder implements Decoder<RowCache> {
  readonly vocabularySize: number;
  readonly #session: OnnxSession;
  readonly #shape: CacheShape;
  readonly #pastNames: readonly string[];
  readonly #presentNames: readonly string[];
  readonly #past: GrowingArray<Float32Array>[];
  readonly #present: GrowingArray<Float32Array>[];
  readonly #logits = new GrowingArray<Float32Array>((size) => new Float32Array(size));
  readonly #inputs: ReadonlySet<string>;

  constructor({ session, vocabularySize, shape }: PlainDecoderOptions) {
    this.#session = session;
    this.#shape = shape;
    this.vocabularySize = vocabularySize;
    this.#pastNames = cacheNames('past_key_values', shape);
    this.#presentNames = cacheNames('present', shape);
    this.#past = this.#pastNames.map(() => new GrowingArray<Float32Array>((size) => new Float32Array(size)));
    this.#present = this.#presentNames.map(() => new GrowingArray<Float32Array>((size) => new Float32Array(size)));
    this.#inputs = new Set(session.inputs.map(({ name }) => name));
  }

  createCache(): RowCache {
    return new RowCache(this.#shape);
  }

  copyCache(cache: RowCache, length: number): RowCache {
    return cache.copy(length);
  }

  roomOf(cache: RowCache): number {
    return cache.capacity;
  }

  /** It is memory of JavaScript's. */
  releaseCache(): void {}

  /** In one part. */
  // oxlint-disable-next-line require-yield
  async *runByParts(reads: readonly DecoderRead<RowCache>[]): AsyncGenerator<void, readonly Float32Array[]> {
    return this.run(reads);
  }

  async run(reads: readonly DecoderRead<RowCache>[]): Promise<readonly Float32Array[]> {
    const width = reads.reduce((most, { ids }) => Math.max(most, ids.length), 0);
    // Products of one row of numbers are computed by other code, with other roundings, than those of more.
    const rows = reads.length * width === 1 ? 2 : reads.length;
    const past = reads.reduce((most, { cache }) => Math.max(most, cache.length), 0);
    const from = reads.reduce((first, { logitsFrom }) => Math.min(first, logitsFrom), width);
    const { count, feeds } = keptLogits(this.#session, { width, from });
    const { heads, width: keyWidth } = this.#shape;
    const logitsDims = [rows, count, this.vocabularySize];
    const into = new Map([['logits', { data: this.#logits.of(product(logitsDims)), dims: logitsDims }]]);
    const presentDims = [rows, heads, past + width, keyWidth];
    for (const [at, name] of this.#presentNames.entries())
      into.set(name, { data: this.#present[at]!.of(product(presentDims)), dims: presentDims });
    const outputs = ['logits', ...this.#presentNames];
    const [logits, ...present] = await this.#session.runForAll(
      { ...this.#feedsOf(reads, { rows, past, width }), ...feeds },
      outputs,
      into,
    );
    return reads.map(({ cache, ids, keeps, logitsFrom }, row) => {
      if (keeps) {
        const sources = present.map(({ data }) => data);
        cache.append(sources, { row, columns: past + width }, past, ids.length);
      }
      // There are no logits of the positions before the last `count`.
      const before = row * count - (width - count);
      return logits!.data.subarray(
        (before + logitsFrom) * this.vocabularySize,
        (before + ids.length) * this.vocabularySize,
      );
    });
  }

  async dispose(): Promise<void> {
    await this.#session.dispose();
  }

  #feedsOf(reads: readonly DecoderRead<RowCache>[], size: CallSize): Record<string, TensorValue> {
    const { rows, past, width } = size;
    const { heads, width: keyWidth } = this.#shape;
    const ids = new WholeNumbers(rows, width);
    const positions = new WholeNumbers(rows, width);
    const mask = new WholeNumbers(rows, past + width);
    for (const [row, read] of reads.entries()) {
      mask.fill(row, 0, read.cache.length);
      mask.fill(row, past, read.ids.length);
      for (const [at, id] of read.ids.entries()) {
        ids.set(row, at, id);
        positions.set(row, at, read.cache.length + at);
      }
    }
    // The row that nobody asked for reads one token, so that there is something for it to look at.
    if (rows > reads.length) mask.fill(reads.length, past, 1);
    const feeds: Record<string, TensorValue> = {
      input_ids: ids.tensor,
      attention_mask: mask.tensor,
    };
    if (this.#inputs.has('position_ids')) feeds['position_ids'] = positions.tensor;
    const dims = [rows, heads, past, keyWidth];
    for (const [at, name] of this.#pastNames.entries()) {
      const data = this.#past[at]!.of(product(dims));
      for (const [row, { cache }] of reads.entries()) cache.writeTo(data, at, { row, columns: past });
      feeds[name] = { data, dims };
    }
    return feeds;
  }
}

function product(dims: readonly number[]): number {
  return dims.reduce((total, side) => total * side, 1);
}
