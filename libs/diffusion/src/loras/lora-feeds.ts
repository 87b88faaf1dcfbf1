import { valueOfKey } from '@darkroom/core';
import type { TensorValue } from '@darkroom/runtime';
import { loraBlock, loraInputsOf, type LoraLayer, loraRowsInput } from './lora-layers.ts';
import type { LoraSet } from './lora-set.ts';

type Feeds = Record<string, TensorValue>;

/**
 * Builds the adapters' inputs for the rows of a call. Reuses them in the next call if it has the same adapters, as the
 * steps of one request do.
 */
export class LoraFeeds {
  readonly #layers: readonly LoraLayer[];
  #key = '';
  #stacks: Feeds = {};

  constructor(layers: readonly LoraLayer[]) {
    this.#layers = layers;
  }

  /** @param rows the adapters of each row of the batch. */
  feedsOf(rows: readonly LoraSet[]): Feeds {
    const sets = [...new Map(rows.map((set) => [set.key, set])).values()].toSorted(byKey);
    const key = sets.map((set) => set.key).join('\n');
    if (key !== this.#key) {
      this.#stacks = this.#stack(sets);
      this.#key = key;
    }
    const positions = new Map(sets.map((set, at) => [set.key, BigInt(at)]));
    const data = BigInt64Array.from(rows, (set) => valueOfKey(positions, set.key));
    return { ...this.#stacks, [loraRowsInput]: { data, dims: [rows.length] } };
  }

  /** Stacks the sets; shorter ones are padded with blocks of zeros to the longest. */
  #stack(sets: readonly LoraSet[]): Feeds {
    const blocks = Math.max(...sets.map((set) => set.blocks));
    const feeds: Feeds = {};
    for (const layer of this.#layers) {
      const { a, b } = loraInputsOf(layer);
      const { inputs, outputs, name } = layer;
      const stackOf = (end: 'a' | 'b', width: number): Float32Array => {
        const length = blocks * loraBlock * width;
        const [first, ...others] = sets;
        // A single set is used without copying.
        if (first !== undefined && others.length === 0)
          return first.layers.get(name)?.[end] ?? new Float32Array(length);
        const stack = new Float32Array(sets.length * length);
        for (const [at, set] of sets.entries()) stack.set(set.layers.get(name)?.[end] ?? [], at * length);
        return stack;
      };
      feeds[a] = { data: stackOf('a', inputs), dims: [sets.length, blocks, inputs, loraBlock] };
      feeds[b] = { data: stackOf('b', outputs), dims: [sets.length, blocks * loraBlock, outputs] };
    }
    return feeds;
  }
}

function byKey(left: LoraSet, right: LoraSet): number {
  return left.key < right.key ? -1 : 1;
}
