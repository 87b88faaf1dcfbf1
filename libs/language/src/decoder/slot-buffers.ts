import type { TensorValue } from '@darkroom/runtime';
import type { TokenCache } from './decoder.ts';
import type { CacheShape } from './row-cache.ts';

/** A row's slot; it has none before something is in it. */
export class SlotCache implements TokenCache {
  /** Tokens that it is to have room for from the beginning. */
  readonly expected: number;
  slot = -1;
  length = 0;
  /** Tokens behind these that a call is about to add, and has begun to. */
  pending = 0;

  constructor(expected: number) {
    this.expected = expected;
  }

  /** Tokens that are not to be written over. */
  get held(): number {
    return this.length + this.pending;
  }
}

/** What a slot is made of: keys and values as the graph has them, in float32 or in the bits of float16. */
export interface SlotKind {
  readonly shape: CacheShape;
  readonly Numbers: typeof Float32Array | typeof Uint16Array;
}

/** Of a row's tokens those from one to before another. */
export interface TokenRange {
  readonly first: number;
  readonly end: number;
}

/** Keys and values of rows of one length, `[slots, heads, columns, width]` each, a row's tokens first. */
export class SlotBuffers {
  readonly columns: number;
  /** Whose each slot is. */
  readonly owners: (SlotCache | undefined)[];
  readonly #shape: CacheShape;
  readonly #tensors: readonly (Float32Array | Uint16Array)[];
  /** By slots: making them anew takes longer than some graphs. */
  readonly #views = new Map<string, readonly TensorValue[]>();

  constructor({ shape, Numbers }: SlotKind, slots: number, columns: number) {
    this.#shape = shape;
    this.columns = columns;
    this.owners = Array.from({ length: slots }, () => undefined);
    const size = slots * shape.heads * columns * shape.width;
    // One array: each new one of some megabytes has V8 look for garbage. It takes memory as it is written to.
    const all = new Numbers(shape.tensors * size);
    this.#tensors = Array.from({ length: shape.tensors }, (_, at) => all.subarray(at * size, (at + 1) * size));
  }

  /** Neighboring slots of all tensors, without copying. */
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

  /** Copies some tokens of a slot of these or others to the same place of a slot. */
  copyTokens(source: SlotBuffers, from: number, to: number, { first, end }: TokenRange): void {
    const { heads, width } = this.#shape;
    for (const [at, tensor] of this.#tensors.entries()) {
      for (let head = 0; head < heads; head++) {
        const start = (from * heads + head) * source.columns;
        const tokens = source.#tensors[at]!.subarray((start + first) * width, (start + end) * width);
        tensor.set(tokens, ((to * heads + head) * this.columns + first) * width);
      }
    }
  }

  /** Moves caches so that these have the first slots. Those that have one of these stay. */
  gather(caches: readonly SlotCache[]): void {
    const members = new Set(caches);
    const outside = caches.filter(({ slot }) => slot >= caches.length);
    for (let slot = 0; slot < caches.length; slot++) {
      const owner = this.owners[slot];
      if (owner === undefined || !members.has(owner)) this.#exchange(slot, outside.pop()!.slot);
    }
  }

  #exchange(left: number, right: number): void {
    const [first, second] = [this.owners[left], this.owners[right]];
    const length = Math.max(first?.held ?? 0, second!.held);
    const { heads, width } = this.#shape;
    const row = heads * this.columns * width;
    for (const tensor of this.#tensors) {
      for (let head = 0; head < heads; head++) {
        const start = left * row + head * this.columns * width;
        const other = right * row + head * this.columns * width;
        const kept = first && tensor.slice(start, start + first.held * width);
        tensor.copyWithin(start, other, other + length * width);
        if (kept !== undefined) tensor.set(kept, other);
      }
    }
    this.owners[left] = second;
    this.owners[right] = first;
    second!.slot = left;
    if (first !== undefined) first.slot = right;
  }
}
