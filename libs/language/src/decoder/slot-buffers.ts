import { pairUp } from '@darkroom/core';
import type { TensorValue } from '@darkroom/runtime';
import type { TokenCache } from './decoder.ts';
import type { CacheShape } from './row-cache.ts';

/** A row's cache in a slot, which it gets when it is first written. */
export class SlotCache implements TokenCache {
  /** Tokens to reserve room for from the start. */
  readonly expected: number;
  slot = -1;
  length = 0;
  /** Tokens behind `length` that a call in progress is writing. */
  pending = 0;

  constructor(expected: number) {
    this.expected = expected;
  }

  /** Number of tokens that must not be overwritten. */
  get usedLength(): number {
    return this.length + this.pending;
  }
}

/** Dimensions and number type of slots: float32, or float16 as bits. */
export interface SlotKind {
  readonly shape: CacheShape;
  readonly Numbers: typeof Float32Array | typeof Uint16Array;
}

/** A range of a row's tokens: `first` to before `end`. */
export interface TokenRange {
  readonly first: number;
  readonly end: number;
}

/** Keys and values of rows, in tensors `[slots, heads, columns, width]`, each row's tokens first. */
export class SlotBuffers {
  readonly columns: number;
  /** The row in each slot. */
  readonly owners: (SlotCache | undefined)[];
  readonly #shape: CacheShape;
  readonly #tensors: readonly (Float32Array | Uint16Array)[];
  /** Views by slots: creating them takes longer than some graphs. */
  readonly #views = new Map<string, readonly TensorValue[]>();

  constructor({ shape, Numbers }: SlotKind, slots: number, columns: number) {
    this.#shape = shape;
    this.columns = columns;
    this.owners = Array.from({ length: slots }, () => undefined);
    const size = slots * shape.heads * columns * shape.width;
    // Use one array: each new array of some megabytes triggers a garbage collection. The OS commits memory on first
    // write.
    const all = new Numbers(shape.tensors * size);
    this.#tensors = Array.from({ length: shape.tensors }, (_, at) => all.subarray(at * size, (at + 1) * size));
  }

  /** Returns adjacent slots of all tensors as views. */
  viewsOf(firstSlot: number, slots: number): readonly TensorValue[] {
    const name = `${firstSlot} ${slots}`;
    const known = this.#views.get(name);
    if (known !== undefined) return known;
    const { heads, width } = this.#shape;
    const length = heads * this.columns * width;
    const dims = [slots, heads, this.columns, width];
    const views = this.#tensors.map((tensor) => {
      return { data: tensor.subarray(firstSlot * length, (firstSlot + slots) * length), dims };
    });
    this.#views.set(name, views);
    return views;
  }

  /** Copies a range of tokens from a slot of `source` to the same columns of a slot. */
  copyTokens(source: SlotBuffers, from: number, to: number, { first, end }: TokenRange): void {
    const { heads, width } = this.#shape;
    for (const [tensor, other] of pairUp(this.#tensors, source.#tensors)) {
      for (let head = 0; head < heads; head++) {
        const start = (from * heads + head) * source.columns;
        const tokens = other.subarray((start + first) * width, (start + end) * width);
        tensor.set(tokens, ((to * heads + head) * this.columns + first) * width);
      }
    }
  }

  /** Moves these caches to the first slots. Those already there stay where they are. */
  gather(caches: readonly SlotCache[]): void {
    const members = new Set(caches);
    const isTakenBy = (owner: SlotCache | undefined): boolean => owner !== undefined && members.has(owner);
    const vacant = [...caches.keys()].filter((slot) => !isTakenBy(this.owners[slot]));
    const outside = caches.filter(({ slot }) => slot >= caches.length);
    for (const [cache, slot] of pairUp(outside, vacant)) this.#moveTo(slot, cache);
  }

  /** Moves a cache to a slot, and the cache that is there to its own. */
  #moveTo(left: number, second: SlotCache): void {
    const { slot: right } = second;
    const first = this.owners[left];
    const length = Math.max(first?.usedLength ?? 0, second.usedLength);
    const { heads, width } = this.#shape;
    const row = heads * this.columns * width;
    for (const tensor of this.#tensors) {
      for (let head = 0; head < heads; head++) {
        const start = left * row + head * this.columns * width;
        const other = right * row + head * this.columns * width;
        const saved = first && tensor.slice(start, start + first.usedLength * width);
        tensor.copyWithin(start, other, other + length * width);
        if (saved !== undefined) tensor.set(saved, other);
      }
    }
    this.owners[left] = second;
    this.owners[right] = first;
    second.slot = left;
    if (first !== undefined) first.slot = right;
  }
}
