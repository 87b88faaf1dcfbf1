/**
 * Graphs with GroupQueryAttention: past and present are one buffer, which each call writes the new tokens into, in place.
 * The buffer has a slot for each row, `[slots, heads, columns, width]`; how long a row is, the sum of its mask says. Rows
 * that take a token each share a call, on neighboring slots. The operator takes more new tokens of one row only, so each
 * piece of a prompt is a call of its own.
 */
import type { OnnxSession, TensorValue } from '@darkroom/runtime';
import type { Decoder, DecoderRead, TokenCache } from './decoder.ts';
import { GrowingArray } from './growing-array.ts';
import { keptLogits } from './kept-logits.ts';
import { cacheNames, type PlainDecoderOptions } from './plain-decoder.ts';
import type { CacheShape } from './row-cache.ts';
import { WholeNumbers } from './whole-numbers.ts';

/** A row's slot; it has none before something is in it. */
export class SlotCache implements TokenCache {
  slot = -1;
  length = 0;
}

type Read = DecoderRead<SlotCache>;

/** What one call does: rows of neighboring slots. */
interface Call {
  /** Logits are given of the new tokens from this one on. */
  readonly from: number;
  readonly firstSlot: number;
  /** Of each slot the tokens that it has, and those it gets. */
  readonly rows: readonly { readonly length: number; readonly ids: readonly number[] }[];
}

const columnsOfBlock = 64;
/** Calls after which memory that none of them needed is given back. */
const runsOfWindow = 256;

export class SharedDecoder implements Decoder<SlotCache> {
  readonly vocabularySize: number;
  readonly #session: OnnxSession;
  readonly #shape: CacheShape;
  readonly #pastNames: readonly string[];
  readonly #presentNames: readonly string[];
  readonly #hasPositions: boolean;
  readonly #logits = new GrowingArray();
  /** Keys and values as the graph has them, in float32 or float16. */
  readonly #Numbers: typeof Float32Array | typeof Uint16Array;
  #tensors: (Float32Array | Uint16Array)[];
  /** By slots, until the tensors are replaced: making them anew takes longer than some graphs. */
  readonly #views = new Map<string, readonly TensorValue[]>();
  #owners: (SlotCache | undefined)[] = [];
  #columns = 0;
  #runs = 0;
  /** Slots times the longest row, of the calls of this window. */
  #most = 0;

  constructor({ session, vocabularySize, shape }: PlainDecoderOptions) {
    this.#session = session;
    this.#shape = shape;
    this.vocabularySize = vocabularySize;
    this.#pastNames = cacheNames('past_key_values', shape);
    this.#presentNames = cacheNames('present', shape);
    this.#hasPositions = session.inputs.some(({ name }) => name === 'position_ids');
    const isHalf = session.inputs.some(({ name, type }) => name === this.#pastNames[0] && type === 'float16');
    this.#Numbers = isHalf ? Uint16Array : Float32Array;
    this.#tensors = this.#pastNames.map(() => new this.#Numbers(0));
  }

  createCache(): SlotCache {
    return new SlotCache();
  }

  copyCache(cache: SlotCache, length: number): SlotCache {
    const copy = new SlotCache();
    this.#giveSlot(copy);
    this.#copyTokens(cache.slot, copy.slot, length);
    copy.length = length;
    return copy;
  }

  /** All slots are as long as the longest. */
  roomOf(): number {
    return this.#columns;
  }

  releaseCache(cache: SlotCache): void {
    if (cache.slot >= 0) this.#owners[cache.slot] = undefined;
    cache.slot = -1;
    cache.length = 0;
  }

  async run(reads: readonly Read[]): Promise<readonly Float32Array[]> {
    // A slot that only fills a call up gets a token behind its last, and so does one whose piece is odd.
    const longest = this.#owners.reduce((most, owner) => Math.max(most, owner?.length ?? 0), 0);
    const columns = reads.reduce((most, { cache, ids }) => Math.max(most, cache.length + ids.length + 1), longest + 1);
    this.#shrink(columns);
    this.#reserve(2, columns);
    for (const { cache } of reads) if (cache.slot === -1) this.#giveSlot(cache);
    const results = new Map<Read, Float32Array>();
    for (const read of reads) if (read.ids.length > 1) results.set(read, await this.#readPiece(read));
    // Last, because their logits stay where each call has its own.
    const single = reads.filter(({ ids }) => ids.length === 1);
    if (single.length > 0) await this.#runTogether(single, results);
    for (const { cache, ids, keeps } of reads) if (keeps) cache.length += ids.length;
    return reads.map((read) => results.get(read)!);
  }

  async dispose(): Promise<void> {
    await this.#session.dispose();
  }

  async #runTogether(reads: readonly Read[], results: Map<Read, Float32Array>): Promise<void> {
    this.#gather(reads.map(({ cache }) => cache));
    const idsOf = new Map(reads.map(({ cache, ids }) => [cache, ids]));
    // Products of one row of numbers are computed by other code, with other roundings, than those of more.
    const owners = Array.from({ length: Math.max(2, reads.length) }, (_, slot) => this.#owners[slot]);
    const rows = owners.map((owner) => ({ length: owner?.length ?? 0, ids: (owner && idsOf.get(owner)) ?? [0] }));
    const logits = await this.#call({ firstSlot: 0, rows, from: 0 });
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
  async #readPiece({ cache, ids, logitsFrom }: Read): Promise<Float32Array> {
    const even = ids.length % 2 === 0 ? ids : [...ids, 0];
    const from = Math.min(logitsFrom, even.length - 2);
    const logits = await this.#call({ firstSlot: cache.slot, rows: [{ length: cache.length, ids: even }], from });
    return logits.slice((logitsFrom - from) * this.vocabularySize, (ids.length - from) * this.vocabularySize);
  }

  async #call({ firstSlot, rows, from }: Call): Promise<Float32Array> {
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
    const views = this.#viewsOf(firstSlot, rows.length);
    const kept = keptLogits(this.#session, { width, from });
    const logitsDims = [rows.length, kept.count, this.vocabularySize];
    const feeds = {
      ...kept.feeds,
      input_ids: ids.tensor,
      attention_mask: mask.tensor,
      ...(this.#hasPositions && { position_ids: positions.tensor }),
      ...Object.fromEntries(this.#pastNames.map((name, at) => [name, views[at]!])),
    };
    const into = new Map<string, TensorValue>(this.#presentNames.map((name, at) => [name, views[at]!]));
    into.set('logits', { data: this.#logits.of(rows.length * kept.count * this.vocabularySize), dims: logitsDims });
    const [logits] = await this.#session.runForAll(feeds, ['logits'], into);
    // Of one row all, or of several rows the only one each.
    const first = rows.length > 1 ? 0 : from - (width - kept.count);
    return logits!.data.subarray(Math.min(first, kept.count) * this.vocabularySize);
  }

  /** Neighboring slots of all tensors, without copying. */
  #viewsOf(firstSlot: number, slots: number): readonly TensorValue[] {
    const name = `${firstSlot} ${slots}`;
    const known = this.#views.get(name);
    if (known !== undefined) return known;
    const { heads, width } = this.#shape;
    const length = heads * this.#columns * width;
    const dims = [slots, heads, this.#columns, width];
    const views = this.#tensors.map((tensor) => {
      return { data: tensor.subarray(firstSlot * length, (firstSlot + slots) * length), dims };
    });
    this.#views.set(name, views);
    return views;
  }

  /** Moves caches so that these have the first slots. Those that have one of these stay. */
  #gather(caches: readonly SlotCache[]): void {
    const members = new Set(caches);
    const outside = caches.filter(({ slot }) => slot >= caches.length);
    for (let slot = 0; slot < caches.length; slot++) {
      const owner = this.#owners[slot];
      if (owner === undefined || !members.has(owner)) this.#exchange(slot, outside.pop()!.slot);
    }
  }

  #exchange(left: number, right: number): void {
    const [first, second] = [this.#owners[left], this.#owners[right]];
    const spare = first === undefined ? undefined : this.#freeSlot();
    if (spare !== undefined) this.#copyTokens(left, spare, first!.length);
    this.#copyTokens(right, left, second!.length);
    if (spare !== undefined) this.#copyTokens(spare, right, first!.length);
    this.#owners[left] = second;
    this.#owners[right] = first;
    second!.slot = left;
    if (first !== undefined) first.slot = right;
  }

  #giveSlot(cache: SlotCache): void {
    cache.slot = this.#freeSlot();
    this.#owners[cache.slot] = cache;
  }

  #freeSlot(): number {
    const free = this.#owners.indexOf(undefined);
    if (free !== -1) return free;
    this.#reserve(2 * this.#owners.length, 0);
    return this.#owners.indexOf(undefined);
  }

  /** Copies the first tokens of a slot. */
  #copyTokens(from: number, to: number, length: number): void {
    const { heads, width } = this.#shape;
    for (const tensor of this.#tensors) {
      for (let head = 0; head < heads; head++) {
        const start = (from * heads + head) * this.#columns * width;
        tensor.copyWithin((to * heads + head) * this.#columns * width, start, start + length * width);
      }
    }
  }

  #reserve(slots: number, columns: number): void {
    const more = Math.max(slots, this.#owners.length);
    const isWider = columns > this.#columns;
    if (more === this.#owners.length && !isWider) return;
    const owners = Array.from({ length: more }, (_, slot) => this.#owners[slot]);
    this.#layOut(owners, isWider ? Math.max(columns, 1.5 * this.#columns) : this.#columns);
  }

  /** Gives memory back that was of no use in the last calls: one long row makes all slots long. */
  #shrink(longest: number): void {
    const owners = this.#owners.filter((owner) => owner !== undefined);
    this.#most = Math.max(this.#most, Math.max(2, owners.length) * longest);
    this.#runs = (this.#runs + 1) % runsOfWindow;
    if (this.#runs > 0) return;
    if (4 * this.#most < this.#owners.length * this.#columns - 2 * columnsOfBlock)
      this.#layOut(
        Array.from({ length: Math.max(2, owners.length) }, (_, slot) => owners[slot]),
        longest,
      );
    this.#most = 0;
  }

  /** Makes slots anew, for these and as long as this at least, with what the owners have. */
  #layOut(owners: readonly (SlotCache | undefined)[], columns: number): void {
    const wide = Math.ceil(columns / columnsOfBlock) * columnsOfBlock;
    const { heads, width } = this.#shape;
    this.#views.clear();
    const before = this.#columns * width;
    const after = wide * width;
    const size = owners.length * heads * after;
    // One array: each new one of some megabytes has V8 look for garbage.
    const all = new this.#Numbers(this.#tensors.length * size);
    this.#tensors = this.#tensors.map((tensor, at) => {
      const other = all.subarray(at * size, (at + 1) * size);
      for (const [slot, owner] of owners.entries()) {
        if (owner === undefined) continue;
        for (let head = 0; head < heads; head++) {
          const from = (owner.slot * heads + head) * before;
          const tokens = tensor.subarray(from, from + owner.length * width);
          other.set(tokens, (slot * heads + head) * after);
        }
      }
      return other;
    });
    for (const [slot, owner] of owners.entries()) if (owner !== undefined) owner.slot = slot;
    this.#owners = [...owners];
    this.#columns = wide;
  }
}
