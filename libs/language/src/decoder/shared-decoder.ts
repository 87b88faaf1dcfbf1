/**
 * Decoder for graphs with GroupQueryAttention. Calls write new tokens in place, into buffers `[slots, heads, columns,
 * width]`; a row's length is the sum of its mask. Rows with one new token share a call, on adjacent slots. Each prompt
 * chunk is its own call: the operator takes several new tokens of one row only.
 */
import { type NonEmpty, pairUp, valueOfKey } from '@darkroom/core';
import { floatsOfHalves, GrowingArray, type SplitSession, type TensorValue } from '@darkroom/runtime';
import { type Decoder, type DecoderRead, lastOf } from './decoder.ts';
import type { DecoderRow, DecoderTokens } from './decoder-tokens.ts';
import { keptLogits } from './kept-logits.ts';
import { cacheNames } from './plain-decoder.ts';
import type { CacheShape } from './row-cache.ts';
import { SlotCache } from './slot-buffers.ts';
import { SlotMemory } from './slot-memory.ts';
import { Int64Matrix } from './int64-matrix.ts';

type Read = DecoderRead<SlotCache>;

/** One row of a call: its current length, and its new tokens. */
interface CallRow extends DecoderRow {
  readonly length: number;
}

/** One call: rows in adjacent slots. */
interface Call {
  /** Index of the first new token with logits; the number of tokens for none. */
  readonly from: number;
  /** Returns the first slot; rows may move between parts of the call. */
  readonly slotOf: () => number;
  readonly rows: NonEmpty<CallRow>;
}

export interface SharedDecoderOptions {
  session: SplitSession;
  tokens: DecoderTokens;
  vocabularySize: number;
  shape: CacheShape;
}

export class SharedDecoder implements Decoder<SlotCache> {
  readonly vocabularySize: number;
  readonly #session: SplitSession;
  readonly #tokens: DecoderTokens;
  readonly #pastNames: readonly string[];
  readonly #presentNames: readonly string[];
  readonly #hasPositions: boolean;
  readonly #hasHalfLogits: boolean;
  readonly #logits = new GrowingArray((size) => new Float32Array(size));
  readonly #memory: SlotMemory;

  constructor({ session, tokens, vocabularySize, shape }: SharedDecoderOptions) {
    this.#session = session;
    this.#tokens = tokens;
    this.vocabularySize = vocabularySize;
    this.#pastNames = cacheNames('past_key_values', shape);
    this.#presentNames = cacheNames('present', shape);
    this.#hasPositions = session.inputs.some(({ name }) => name === 'position_ids');
    this.#hasHalfLogits = session.outputs.some(({ name, type }) => name === 'logits' && type === 'float16');
    const isHalf = session.inputs.some(({ name, type }) => name === this.#pastNames[0] && type === 'float16');
    this.#memory = new SlotMemory({ shape, Numbers: isHalf ? Uint16Array : Float32Array });
  }

  createCache(expected = 0): SlotCache {
    return new SlotCache(expected);
  }

  copyCache(cache: SlotCache, length: number, expected = 0): SlotCache {
    const copy = new SlotCache(expected);
    const capacity = this.#memory.capacityFor(1, 0);
    while (!this.#memory.grow(capacity, Infinity));
    this.#memory.claim(copy);
    const { buffers } = this.#memory;
    // The source may have been released to make room.
    const end = Math.min(length, cache.length);
    if (end > 0) buffers.copyTokens(buffers, cache.slot, copy.slot, { first: 0, end });
    copy.length = end;
    return copy;
  }

  /** All slots are as long as the longest. */
  memoryOf(): number {
    return this.#memory.columns;
  }

  onGrowth(listener: (columns: number) => void): void {
    this.#memory.beforeGrowth = listener;
  }

  releaseCache(cache: SlotCache): void {
    this.#memory.release(cache);
  }

  async run(reads: readonly Read[]): Promise<readonly Float32Array[]> {
    return lastOf(this.runByParts(reads));
  }

  async *runByParts(reads: readonly Read[]): AsyncGenerator<void, readonly Float32Array[]> {
    yield* this.#reserve(reads);
    for (const { cache, ids } of reads) if (ids.length > 1) cache.pending = ids.length;
    try {
      const results = yield* this.#runAll(reads);
      for (const { cache, ids, keeps } of reads) if (keeps) cache.length += ids.length;
      return reads.map((read) => valueOfKey(results, read));
    } finally {
      for (const { cache } of reads) cache.pending = 0;
    }
  }

  async dispose(): Promise<void> {
    await Promise.all([this.#session.dispose(), this.#tokens.dispose()]);
  }

  async *#runAll(reads: readonly Read[]): AsyncGenerator<void, ReadonlyMap<Read, Float32Array>> {
    const results = new Map<Read, Float32Array>();
    for (const read of reads) {
      if (read.ids.length === 1) continue;
      results.set(read, yield* this.#readChunk(read));
      if (reads.length > 1) yield;
    }
    // Run last: the shared logits buffer must stay valid until the caller reads it.
    const single = reads.filter(({ ids }) => ids.length === 1);
    if (single.length > 0) await this.#runTogether(single, results);
    return results;
  }

  async #runTogether(reads: readonly Read[], results: Map<Read, Float32Array>): Promise<void> {
    this.#memory.buffers.gather(reads.map(({ cache }) => cache));
    const readOf = new Map(reads.map((read) => [read.cache, read]));
    // Matrix products with a single row use other code, with other rounding, so use at least two rows.
    const rowAt = (slot: number): CallRow => {
      const owner = this.#memory.buffers.owners[slot];
      const { ids = [0], embeddings } = (owner && readOf.get(owner)) ?? {};
      return { length: owner?.usedLength ?? 0, ids, embeddings };
    };
    const others = reads.slice(2).map((_, at) => rowAt(at + 2));
    const rows = [rowAt(0), rowAt(1), ...others] as const;
    // Run without a pause: other calls would move the slots.
    const logits = await lastOf(this.#call({ rows, from: 0, slotOf: () => 0 }));
    for (const read of reads) {
      const from = read.cache.slot * this.vocabularySize;
      results.set(read, logits.subarray(from + read.logitsFrom * this.vocabularySize, from + this.vocabularySize));
    }
  }

  /**
   * Pads odd chunks with a token that no other sees and that the next one overwrites: the operator takes queries in
   * blocks of an even number, and rounds a single leftover differently. For the same reason, always computes at least
   * two logits.
   */
  async *#readChunk({ cache, ids, embeddings, logitsFrom }: Read): AsyncGenerator<void, Float32Array> {
    const even = ids.length % 2 === 0 ? ids : [...ids, 0];
    const from = Math.min(logitsFrom, even.length - 2);
    const rows = [{ length: cache.length, ids: even, embeddings }] as const;
    const areWanted = logitsFrom < ids.length;
    const logits = yield* this.#call({ rows, from: areWanted ? from : even.length, slotOf: () => cache.slot });
    if (!areWanted) return new Float32Array(0);
    return logits.slice((logitsFrom - from) * this.vocabularySize, (ids.length - from) * this.vocabularySize);
  }

  async *#call({ slotOf, rows, from }: Call): AsyncGenerator<void, Float32Array> {
    const width = rows[0].ids.length;
    const kept = keptLogits(this.#session, { width, from });
    const fed = { ...kept.feeds, ...(await this.#feedsOf(rows)) };
    const views = () => this.#memory.buffers.viewsOf(slotOf(), rows.length);
    const dims = [rows.length, kept.count, this.vocabularySize];
    // Calls between the parts write to the same memory, and only the last part of this one does.
    const logits = this.#logitsBuffer(rows.length * kept.count * this.vocabularySize);
    yield* this.#session.run(
      () => ({ ...fed, ...Object.fromEntries(pairUp(this.#pastNames, views())) }),
      () => {
        const into = new Map(pairUp(this.#presentNames, views()));
        return from < width ? into.set('logits', { data: logits, dims }) : into;
      },
    );
    // All logits of one row, or one of each row.
    const first = rows.length > 1 ? 0 : from - (width - kept.count);
    const given = logits.subarray(Math.min(first, kept.count) * this.vocabularySize);
    return given instanceof Uint16Array ? floatsOfHalves(given) : given;
  }

  #logitsBuffer(size: number): Float32Array | Uint16Array {
    return this.#hasHalfLogits ? new Uint16Array(size) : this.#logits.of(size);
  }

  async #feedsOf(rows: Call['rows']): Promise<Record<string, TensorValue>> {
    const width = rows[0].ids.length;
    const total = rows.reduce((max, { length }) => Math.max(max, length + width), 0);
    const positions = new Int64Matrix(rows.length, width);
    const mask = new Int64Matrix(rows.length, total);
    for (const [row, { length, ids: given }] of rows.entries()) {
      mask.fill(row, 0, length + width);
      for (const at of given.keys()) positions.set(row, at, length + at);
    }
    const tokens = await this.#tokens.tensorOf(rows, width);
    const tensors = { [this.#tokens.inputName]: tokens, attention_mask: mask.tensor };
    return this.#hasPositions ? { ...tensors, position_ids: positions.tensor } : tensors;
  }

  *#reserve(reads: readonly Read[]): Generator<void, void> {
    this.#memory.noteCall();
    const newcomers = reads.filter(({ cache }) => cache.slot === -1);
    const columns = reads.reduce((max, { cache, ids }) => Math.max(max, cache.length + ids.length, cache.expected), 0);
    while (!this.#memory.fits(this.#memory.capacityFor(newcomers.length, columns))) {
      yield;
      this.#memory.grow(this.#memory.capacityFor(newcomers.length, columns));
    }
    for (const { cache } of newcomers) this.#memory.claim(cache);
  }
}
