import type { Decoder, TokenCache } from './decoder.ts';

/** A cache, and the tokens that are in it. */
export interface KnownCache {
  readonly cache: TokenCache;
  /** At least as many as the cache has. */
  readonly ids: readonly number[];
}

/** What a cache has of the beginning of a text. */
export interface CommonBeginning {
  readonly cache: TokenCache;
  readonly length: number;
}

/** Below this it is quicker to read the tokens than to look for them. */
export const leastCommonTokens = 8;

/**
 * Caches of texts that have ended, for others that begin as they did: with the same instructions, or with the turns of the
 * same chat. Those that were of use longest ago go first.
 */
export class KeptCaches {
  readonly #decoder: Decoder;
  readonly #maxTokens: number;
  #kept: KnownCache[] = [];

  /** @param maxTokens that are kept together. */
  constructor(decoder: Decoder, maxTokens: number) {
    this.#decoder = decoder;
    this.#maxTokens = maxTokens;
  }

  get tokens(): number {
    return this.#kept.reduce((sum, { cache }) => sum + cache.length, 0);
  }

  /** Takes a cache that nobody else uses any more. */
  keep(known: KnownCache): void {
    const { cache, ids } = known;
    // What is the beginning of another is of no more use than that other.
    const isWithin = this.#kept.some((other) => lengthWithin(other, ids.slice(0, cache.length)) === cache.length);
    if (isWithin || cache.length < leastCommonTokens) return this.#decoder.releaseCache(cache);
    const covered = this.#kept.filter((other) => lengthWithin(known, other.ids) >= other.cache.length);
    this.#drop(covered);
    this.#kept.push({ cache, ids: ids.slice(0, cache.length) });
    while (this.tokens > this.#maxTokens) this.#drop(this.#kept.slice(0, 1));
  }

  /**
   * The longest beginning that one of these, or of others, has in common with a text.
   *
   * @param others caches that are in use.
   */
  find(ids: readonly number[], others: readonly KnownCache[]): CommonBeginning | undefined {
    let best: (CommonBeginning & { known: KnownCache }) | undefined;
    for (const known of [...this.#kept, ...others]) {
      const length = lengthWithin(known, ids);
      if (length >= leastCommonTokens && length > (best?.length ?? 0)) best = { cache: known.cache, length, known };
    }
    const used = this.#kept.find((known) => known === best?.known);
    if (used !== undefined) this.#kept = [...this.#kept.filter((known) => known !== used), used];
    return best;
  }

  #drop(dropped: readonly KnownCache[]): void {
    this.#kept = this.#kept.filter((known) => !dropped.includes(known));
    for (const { cache } of dropped) this.#decoder.releaseCache(cache);
  }
}

/** Tokens that two texts begin with. */
export function commonLength(left: readonly number[], right: readonly number[]): number {
  const most = Math.min(left.length, right.length);
  let length = 0;
  while (length < most && left[length] === right[length]) length += 1;
  return length;
}

/** Tokens at the beginning of a text that a cache has. */
function lengthWithin({ cache, ids }: KnownCache, text: readonly number[]): number {
  return Math.min(cache.length, commonLength(ids, text));
}
