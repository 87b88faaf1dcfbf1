/**
 * Graphs with GroupQueryAttention: past and present are one buffer, which each call writes the new tokens into, in place.
 * The buffer has a slot for each row, `[slots, heads, columns, width]`; how long a row is, the sum of its mask says. Rows
 * that take a token each share a call, on neighboring slots. The operator takes more new tokens of one row only, so each
 * piece of a prompt is a call of its own.
 */
import { floatsOfHalves, GrowingArray, type SplitSession, type TensorValue } from '@darkroom/runtime';
import { type Decoder, type DecoderRead, lastOf } from './decoder.ts';
import { keptLogits } from './kept-logits.ts';
import { cacheNames } from './plain-decoder.ts';
import type { CacheShape } from './row-cache.ts';
import { SlotCache } from './slot-buffers.ts';
import { SlotMemory } from './slot-memory.ts';
import { WholeNumbers } from './whole-numbers.ts';

type Read = DecoderRead<SlotCache>;

/** What one call does: rows of neighboring slots. */
interface Call {
  /** Logits are given of the new tokens from this one on; none if it is their number. */
  readonly from: number;
  /** The first slot; between parts of the call rows may move. */
  readonly slotOf: () => number;
  /** Of each slot the tokens that it has, and those it gets. */
  readonly rows: readonly { readonly length: number; readonly ids: readonly number[] }[];
}

export interface SharedDecoderOptions {
  session: SplitSession;
  vocabularySize: number;
  shape: CacheShape;
}

export class SharedDecoder implements Decoder<SlotCache> {
  readonly vocabularySize: number;
  readonly #session: SplitSession;
  readonly #pastNames: readonly string[];
  readonly #presentNames: readonly string[];
  readonly #hasPositions: boolean;
  readonly #hasHalfLogits: boolean;
  readonly #logits = new GrowingArray((size) => new Float32Array(size));
  readonly #memory: SlotMemory;

  constructor({ session, vocabularySize, shape }: SharedDecoderOptions) {
    this.#session = session;
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
    const room = this.#memory.roomFor(1, 0);
    while (!this.#memory.make(room, Infinity));
    this.#memory.claim(copy);
    const { buffers } = this.#memory;
    // It may have been released to make that room.
    const end = Math.min(length, cache.length);
    if (end > 0) buffers.copyTokens(buffers, cache.slot, copy.slot, { first: 0, end });
    copy.length = end;
    return copy;
  }

  /** All slots are as long as the longest. */
  roomOf(): number {
    return this.#memory.columns;
  }

  onGrowth(listener: (room: number) => void): void {
    this.#memory.beforeGrowth = listener;
  }

  releaseCache(cache: SlotCache): void {
    this.#memory.release(cache);
  }

  async run(reads: readonly Read[]): Promise<readonly Float32Array[]> {
    return lastOf(this.runByParts(reads));
  }

  async *runByParts(reads: readonly Read[]): AsyncGenerator<void, readonly Float32Array[]> {
    yield* this.#makeRoom(reads);
    for (const { cache, ids } of reads) if (ids.length > 1) cache.pending = ids.length;
    try {
      const results = yield* this.#runAll(reads);
      for (const { cache, ids, keeps } of reads) if (keeps) cache.length += ids.length;
      return reads.map((read) => results.get(read)!);
    } finally {
      for (const { cache } of reads) cache.pending = 0;
    }
  }

  async dispose(): Promise<void> {
    await this.#session.dispose();
  }

  async *#runAll(reads: readonly Read[]): AsyncGenerator<void, ReadonlyMap<Read, Float32Array>> {
    const results = new Map<Read, Float32Array>();
    for (const read of reads) {
      if (read.ids.length === 1) continue;
      results.set(read, yield* this.#readPiece(read));
      if (reads.length > 1) yield;
    }
    // Last, because their logits stay where each call has its own.
    const single = reads.filter(({ ids }) => ids.length === 1);
    if (single.length > 0) await this.#runTogether(single, results);
    return results;
  }

  async #runTogether(reads: readonly Read[], results: Map<Read, Float32Array>): Promise<void> {
    this.#memory.buffers.gather(reads.map(({ cache }) => cache));
    const idsOf = new Map(reads.map(({ cache, ids }) => [cache, ids]));
    // Products of one row of numbers are computed by other code, with other roundings, than those of more.
    const owners = Array.from({ length: Math.max(2, reads.length) }, (_, slot) => this.#memory.buffers.owners[slot]);
    const rows = owners.map((owner) => ({ length: owner?.held ?? 0, ids: (owner && idsOf.get(owner)) ?? [0] }));
    // In one go: others would take the slots.
    const logits = await lastOf(this.#call({ rows, from: 0, slotOf: () => 0 }));
    for (const read of reads) {
      const from = read.cache.slot * this.vocabularySize;
      results.set(read, logits.subarray(from + read.logitsFrom * this.vocabularySize, from + this.vocabularySize));
    }
  }

  /**
   * The operator takes queries in blocks of an even number, and computes one that is left over alone by other code, with
   * other roundings. So an odd piece gets a token at its end that no other sees, and that the next one is written over. For the
   * same reason there are always logits of two.
   */
  async *#readPiece({ cache, ids, logitsFrom }: Read): AsyncGenerator<void, Float32Array> {
    const even = ids.length % 2 === 0 ? ids : [...ids, 0];
    const from = Math.min(logitsFrom, even.length - 2);
    const rows = [{ length: cache.length, ids: even }];
    const areWanted = logitsFrom < ids.length;
    const logits = yield* this.#call({ rows, from: areWanted ? from : even.length, slotOf: () => cache.slot });
    if (!areWanted) return new Float32Array(0);
    return logits.slice((logitsFrom - from) * this.vocabularySize, (ids.length - from) * this.vocabularySize);
  }

  async *#call({ slotOf, rows, from }: Call): AsyncGenerator<void, Float32Array> {
    const width = rows[0]!.ids.length;
    const kept = keptLogits(this.#session, { width, from });
    const fed = { ...kept.feeds, ...this.#tokensOf(rows) };
    const views = () => this.#memory.buffers.viewsOf(slotOf(), rows.length);
    const dims = [rows.length, kept.count, this.vocabularySize];
    let logits: Float32Array | Uint16Array | undefined;
    yield* this.#session.run(
      () => ({ ...fed, ...Object.fromEntries(views().map((view, at) => [this.#pastNames[at]!, view])) }),
      () => {
        const into = new Map(views().map((view, at) => [this.#presentNames[at]!, view]));
        // Not before its last part: others use the same memory.
        logits = this.#placeOfLogits(rows.length * kept.count * this.vocabularySize);
        return from < width ? into.set('logits', { data: logits, dims }) : into;
      },
    );
    // Of one row all, or of several rows the only one each.
    const first = rows.length > 1 ? 0 : from - (width - kept.count);
    const given = logits!.subarray(Math.min(first, kept.count) * this.vocabularySize);
    return given instanceof Uint16Array ? floatsOfHalves(given) : given;
  }

  #placeOfLogits(size: number): Float32Array | Uint16Array {
    return this.#hasHalfLogits ? new Uint16Array(size) : this.#logits.of(size);
  }

  #tokensOf(rows: Call['rows']): Record<string, TensorValue> {
    const width = rows[0]!.ids.length;
    const total = rows.reduce((most, { length }) => Math.max(most, length + width), 0);
    const ids = new WholeNumbers(rows.length, width);
    const positions = new WholeNumbers(rows.length, width);
    const mask = new WholeNumbers(rows.length, total);
    for (const [row, { length, ids: given }] of rows.entries()) {
      mask.fill(row, 0, length + width);
      for (const [at, id] of given.entries()) {
        ids.set(row, at, id);
        positions.set(row, at, length + at);
      }
    }
    const tensors = { input_ids: ids.tensor, attention_mask: mask.tensor };
    return this.#hasPositions ? { ...tensors, position_ids: positions.tensor } : tensors;
  }

  *#makeRoom(reads: readonly Read[]): Generator<void, void> {
    this.#memory.noteCall();
    const newcomers = reads.filter(({ cache }) => cache.slot === -1);
    const columns = reads.reduce(
      (most, { cache, ids }) => Math.max(most, cache.length + ids.length, cache.expected),
      0,
    );
    while (!this.#memory.has(this.#memory.roomFor(newcomers.length, columns))) {
      yield;
      this.#memory.make(this.#memory.roomFor(newcomers.length, columns));
    }
    for (const { cache } of newcomers) this.#memory.claim(cache);
  }
}
