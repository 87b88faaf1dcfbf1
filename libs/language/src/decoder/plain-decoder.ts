/**
 * Decoder for the plain layout: a call takes the keys and values of all earlier tokens (`past_key_values`) and returns
 * them with the new ones appended (`present`). Pasts start at column 0 and padding is masked; with that, and at least
 * two queries per call, batching does not change a row's bits.
 */
import { GrowingArray, lengthOf, type OnnxSession, type TensorValue } from '@darkroom/runtime';
import type { Decoder, DecoderRead } from './decoder.ts';
import type { DecoderTokens } from './decoder-tokens.ts';
import { keptLogits } from './kept-logits.ts';
import { type CacheShape, RowCache } from './row-cache.ts';
import { Int64Matrix } from './int64-matrix.ts';

export interface PlainDecoderOptions {
  session: OnnxSession;
  tokens: DecoderTokens;
  vocabularySize: number;
  shape: CacheShape;
}

/** Returns the names of a cache's tensors, in the order of a row's cache. */
export function cacheNames(prefix: string, { tensors }: Pick<CacheShape, 'tensors'>): string[] {
  return Array.from({ length: tensors }, (_, at) => `${prefix}.${at >> 1}.${at % 2 === 0 ? 'key' : 'value'}`);
}

/** Layout of a call. */
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
  /** Reused memory of the inputs and outputs, by name. */
  readonly #past: ReadonlyMap<string, GrowingArray<Float32Array>>;
  readonly #present: ReadonlyMap<string, GrowingArray<Float32Array>>;
  readonly #logits = new GrowingArray<Float32Array>((size) => new Float32Array(size));
  readonly #inputs: ReadonlySet<string>;
  readonly #tokens: DecoderTokens;

  constructor({ session, tokens, vocabularySize, shape }: PlainDecoderOptions) {
    this.#session = session;
    this.#tokens = tokens;
    this.#shape = shape;
    this.vocabularySize = vocabularySize;
    const memoryOf = (prefix: string) =>
      new Map(cacheNames(prefix, shape).map((name) => [name, new GrowingArray((size) => new Float32Array(size))]));
    this.#past = memoryOf('past_key_values');
    this.#present = memoryOf('present');
    this.#inputs = new Set(session.inputs.map(({ name }) => name));
  }

  createCache(): RowCache {
    return new RowCache(this.#shape);
  }

  copyCache(cache: RowCache, length: number): RowCache {
    return cache.copy(length);
  }

  memoryOf(cache: RowCache): number {
    return cache.capacity;
  }

  /** Does nothing: garbage collection frees the memory. */
  releaseCache(): void {}

  /** Runs as a single part. */
  // oxlint-disable-next-line require-yield
  async *runByParts(reads: readonly DecoderRead<RowCache>[]): AsyncGenerator<void, readonly Float32Array[]> {
    return this.run(reads);
  }

  async run(reads: readonly DecoderRead<RowCache>[]): Promise<readonly Float32Array[]> {
    const width = reads.reduce((max, { ids }) => Math.max(max, ids.length), 0);
    // Matrix products with a single row use other code, with other rounding, so pad to two.
    const rows = reads.length * width === 1 ? 2 : reads.length;
    const past = reads.reduce((max, { cache }) => Math.max(max, cache.length), 0);
    const from = reads.reduce((first, { logitsFrom }) => Math.min(first, logitsFrom), width);
    const { count, feeds } = keptLogits(this.#session, { width, from });
    const { heads, width: keyWidth } = this.#shape;
    const logitsDims = [rows, count, this.vocabularySize];
    const into = new Map([['logits', { data: this.#logits.of(lengthOf(logitsDims)), dims: logitsDims }]]);
    const presentDims = [rows, heads, past + width, keyWidth];
    for (const [name, memory] of this.#present)
      into.set(name, { data: memory.of(lengthOf(presentDims)), dims: presentDims });
    const outputs = ['logits', ...this.#present.keys()] as const;
    const [logits, ...present] = await this.#session.runForAll(
      { ...(await this.#feedsOf(reads, { rows, past, width })), ...feeds },
      outputs,
      into,
    );
    return reads.map(({ cache, ids, keeps, logitsFrom }, row) => {
      if (keeps) {
        const sources = present.map(({ data }) => data);
        cache.append(sources, { row, columns: past + width }, past, ids.length);
      }
      // Only the last `count` positions have logits.
      const before = row * count - (width - count);
      return logits.data.subarray(
        (before + logitsFrom) * this.vocabularySize,
        (before + ids.length) * this.vocabularySize,
      );
    });
  }

  async dispose(): Promise<void> {
    await Promise.all([this.#session.dispose(), this.#tokens.dispose()]);
  }

  async #feedsOf(reads: readonly DecoderRead<RowCache>[], size: CallSize): Promise<Record<string, TensorValue>> {
    const { rows, past, width } = size;
    const { heads, width: keyWidth } = this.#shape;
    const positions = new Int64Matrix(rows, width);
    const mask = new Int64Matrix(rows, past + width);
    for (const [row, read] of reads.entries()) {
      mask.fill(row, 0, read.cache.length);
      mask.fill(row, past, read.ids.length);
      for (const at of read.ids.keys()) positions.set(row, at, read.cache.length + at);
    }
    // Unmask one token of the padding row, so that its softmax is defined.
    if (rows > reads.length) mask.fill(reads.length, past, 1);
    const padded = Array.from({ length: rows }, (_, row) => reads[row] ?? { ids: [] });
    const feeds: Record<string, TensorValue> = {
      [this.#tokens.inputName]: await this.#tokens.tensorOf(padded, width),
      attention_mask: mask.tensor,
    };
    if (this.#inputs.has('position_ids')) feeds['position_ids'] = positions.tensor;
    const dims = [rows, heads, past, keyWidth];
    for (const [at, [name, memory]] of [...this.#past].entries()) {
      const data = memory.of(lengthOf(dims));
      for (const [row, { cache }] of reads.entries()) cache.writeTo(data, at, { row, columns: past });
      feeds[name] = { data, dims };
    }
    return feeds;
  }
}
