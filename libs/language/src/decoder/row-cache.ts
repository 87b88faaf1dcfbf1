import type { TokenCache } from './decoder.ts';

/** Of one token. */
export interface CacheShape {
  /** Keys and values of each layer: twice the layers. */
  readonly tensors: number;
  readonly heads: number;
  /** Numbers of one key or value of one head. */
  readonly width: number;
}

/** Where a row's tokens stand in a tensor of many rows: `[rows, heads, columns, width]`. */
export interface CachePlace {
  readonly row: number;
  readonly columns: number;
}

const tokensOfBlock = 64;

/** Keys and values of one row, without gaps: each tensor is `[heads, capacity, width]`, the tokens first. */
export class RowCache implements TokenCache {
  readonly #shape: CacheShape;
  #tensors: Float32Array[];
  #capacity = 0;
  #length = 0;

  constructor(shape: CacheShape) {
    this.#shape = shape;
    this.#tensors = Array.from({ length: shape.tensors }, () => new Float32Array(0));
  }

  get length(): number {
    return this.#length;
  }

  /** Copies all tokens of a tensor to the first columns of a row. */
  writeTo(target: Float32Array, tensor: number, { row, columns }: CachePlace): void {
    const { heads, width } = this.#shape;
    const source = this.#tensors[tensor]!;
    for (let head = 0; head < heads; head++) {
      const from = head * this.#capacity * width;
      const tokens = source.subarray(from, from + this.#length * width);
      target.set(tokens, (row * heads + head) * columns * width);
    }
  }

  /** Adds the tokens that stand from a column on, all tensors at once. */
  append(sources: readonly Float32Array[], { row, columns }: CachePlace, column: number, count: number): void {
    const { heads, width } = this.#shape;
    this.#reserve(this.#length + count);
    for (const [at, tensor] of this.#tensors.entries()) {
      for (let head = 0; head < heads; head++) {
        const from = ((row * heads + head) * columns + column) * width;
        const tokens = sources[at]!.subarray(from, from + count * width);
        tensor.set(tokens, (head * this.#capacity + this.#length) * width);
      }
    }
    this.#length += count;
  }

  /** A cache of its first tokens. */
  copy(length: number): RowCache {
    const copy = new RowCache(this.#shape);
    const columns = this.#capacity;
    if (length > 0) copy.append(this.#tensors, { row: 0, columns }, 0, length);
    return copy;
  }

  #reserve(tokens: number): void {
    if (tokens <= this.#capacity) return;
    const blocks = Math.ceil(Math.max(tokens, this.#capacity * 1.5) / tokensOfBlock);
    const { heads, width } = this.#shape;
    const capacity = blocks * tokensOfBlock;
    this.#tensors = this.#tensors.map((_, at) => {
      const larger = new Float32Array(heads * capacity * width);
      this.writeTo(larger, at, { row: 0, columns: capacity });
      return larger;
    });
    this.#capacity = capacity;
  }
}
