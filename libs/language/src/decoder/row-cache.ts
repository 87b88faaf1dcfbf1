import { itemAt, pairUp } from '@darkroom/core';
import type { TokenCache } from './decoder.ts';

/** Dimensions of a token's keys and values. */
export interface CacheShape {
  /** Keys and values of each layer: twice the number of layers. */
  readonly tensors: number;
  readonly heads: number;
  /** Numbers per key or value of one head. */
  readonly width: number;
}

/** Position of a row in a batched tensor `[rows, heads, columns, width]`. */
export interface CachePosition {
  readonly row: number;
  readonly columns: number;
}

const tokensOfBlock = 64;

/** Keys and values of one row, without gaps. Each tensor is `[heads, capacity, width]`, its tokens first. */
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

  /** Tokens that fit without reallocation. */
  get capacity(): number {
    return this.#capacity;
  }

  /** Copies all tokens of a tensor to the first columns of a row. */
  writeTo(target: Float32Array, tensor: number, { row, columns }: CachePosition): void {
    const { heads, width } = this.#shape;
    const source = itemAt(this.#tensors, tensor);
    for (let head = 0; head < heads; head++) {
      const from = head * this.#capacity * width;
      const tokens = source.subarray(from, from + this.#length * width);
      target.set(tokens, (row * heads + head) * columns * width);
    }
  }

  /** Appends `count` tokens from a column on, for all tensors. */
  append(sources: readonly Float32Array[], { row, columns }: CachePosition, column: number, count: number): void {
    const { heads, width } = this.#shape;
    this.#reserve(this.#length + count);
    for (const [tensor, source] of pairUp(this.#tensors, sources)) {
      for (let head = 0; head < heads; head++) {
        const from = ((row * heads + head) * columns + column) * width;
        const tokens = source.subarray(from, from + count * width);
        tensor.set(tokens, (head * this.#capacity + this.#length) * width);
      }
    }
    this.#length += count;
  }

  /** Copies the first tokens to a new cache. */
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
