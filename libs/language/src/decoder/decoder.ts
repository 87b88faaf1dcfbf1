/** Interface of a loaded graph that reads tokens and returns logits, and of its KV caches. */

import type { DecoderRow } from './decoder-tokens.ts';

/** Keys and values of the tokens that a row has read. */
export interface TokenCache {
  /** Number of tokens in the cache. */
  readonly length: number;
}

/** One row of a call. Its new tokens are at least one. */
export interface DecoderRead<Cache extends TokenCache = TokenCache> extends DecoderRow {
  /** Cache of the row's earlier tokens. */
  readonly cache: Cache;
  /** True to add these tokens to the cache. */
  readonly keeps: boolean;
  /** Index of the first new token whose logits are returned; the number of tokens for no logits. */
  readonly logitsFrom: number;
}

/** A loaded graph. Calls must not overlap. */
export interface Decoder<Cache extends TokenCache = TokenCache> {
  /** Number of logits per position. */
  readonly vocabularySize: number;
  /**
   * Creates an empty cache, which allocates memory as it grows.
   *
   * @param expected tokens that it will hold in any case: memory for them is reserved at once.
   */
  createCache(expected?: number): Cache;
  /** Copies the first tokens of a cache. The copy is empty if that cache had to be released to make room. */
  copyCache(cache: Cache, length: number, expected?: number): Cache;
  /** Memory that a cache takes, in tokens; at least its length. */
  memoryOf(cache: Cache): number;
  /**
   * For decoders whose caches all grow with the longest: registers a listener that receives the new size of each before
   * they grow, and may release caches that are not in a call.
   */
  onGrowth?(listener: (size: number) => void): void;
  /** Releases a cache for reuse. The caller must not use it afterwards. */
  releaseCache(cache: Cache): void;
  /**
   * Calls the graph once for all rows. A row's result does not depend on the other rows.
   *
   * @returns for each row the logits of the requested positions, concatenated; overwritten by the next call.
   * @throws DarkroomError if the call fails; the caches are then unchanged.
   */
  run(reads: readonly DecoderRead<Cache>[]): Promise<readonly Float32Array[]>;
  /**
   * Does the same as `run` in parts, between which other calls may `run`. Has no effect unless iterated to its end.
   * Only one may be in progress.
   */
  runByParts(reads: readonly DecoderRead<Cache>[]): AsyncGenerator<void, readonly Float32Array[]>;
  dispose(): Promise<void>;
}

/** Iterates to the end and returns the result. */
export async function lastOf<Value>(parts: AsyncGenerator<void, Value>): Promise<Value> {
  for (;;) {
    const part = await parts.next();
    if (part.done === true) return part.value;
  }
}
