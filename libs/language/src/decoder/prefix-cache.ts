import type { Decoder, TokenCache } from './decoder.ts';

/** A cache with its tokens. */
export interface CachedText {
  readonly cache: TokenCache;
  /** Tokens of the cache. May be longer than the cache; if shorter, only these may be reused. */
  readonly ids: readonly number[];
  /**
   * The client that it belongs to. Caches are not shared between owners: response times would reveal what others send.
   */
  readonly owner: string | undefined;
  /** The request that it was computed for. */
  readonly request: object;
}

/** A text whose prefix is looked up. */
export type PrefixQuery = Pick<CachedText, 'ids' | 'owner'>;

/** The longest prefix of a text found in a cache. */
export interface CommonPrefix {
  readonly known: CachedText;
  readonly length: number;
}

/** Prefixes shorter than this are faster to recompute than to copy. */
export const minPrefixTokens = 8;

/**
 * Prefix cache: retains the caches of ended texts for others with the same prefix, such as equal instructions or the
 * earlier messages of a chat. Evicts the least recently used.
 */
export class PrefixCache {
  readonly #decoder: Decoder;
  readonly #maxTokens: number;
  #caches: CachedText[] = [];

  /** @param maxTokens memory limit, in tokens. */
  constructor(decoder: Decoder, maxTokens: number) {
    this.#decoder = decoder;
    this.#maxTokens = maxTokens;
    decoder.onGrowth?.((minTokens) => this.#fit(minTokens));
  }

  /** Memory in use, in tokens. */
  get usedTokens(): number {
    return this.#usedWith(0);
  }

  /** Retains a cache that no row uses any more. */
  add(known: CachedText): void {
    const { cache } = known;
    const trimmed = { ...known, ids: known.ids.slice(0, cache.length) };
    // A cache whose tokens are a prefix of another's is redundant.
    const isWithin = this.#caches.some((other) => prefixLength(other, trimmed) === trimmed.ids.length);
    if (isWithin || trimmed.ids.length < minPrefixTokens) return this.#decoder.releaseCache(cache);
    this.#drop(this.#caches.filter((other) => prefixLength(trimmed, other) === other.ids.length));
    this.#caches.push(trimmed);
    this.#fit();
  }

  /**
   * Returns the longest common prefix of a text with a retained cache, or with another.
   *
   * @param others caches that are in use.
   */
  find(text: PrefixQuery, others: readonly CachedText[]): CommonPrefix | undefined {
    let best: CommonPrefix | undefined;
    for (const known of [...this.#caches, ...others]) {
      const length = prefixLength(known, text);
      if (length >= minPrefixTokens && length > (best?.length ?? 0)) best = { length, known };
    }
    const used = this.#caches.find((known) => known === best?.known);
    if (used !== undefined) this.#caches = [...this.#caches.filter((known) => known !== used), used];
    return best;
  }

  /** Evicts caches to fit the limit. @param minTokens the size that each cache will take at least. */
  #fit(minTokens = 0): void {
    while (this.#usedWith(minTokens) > this.#maxTokens) this.#drop(this.#caches.slice(0, 1));
  }

  #usedWith(minTokens: number): number {
    return this.#caches.reduce((sum, { cache }) => sum + Math.max(minTokens, this.#decoder.memoryOf(cache)), 0);
  }

  #drop(dropped: readonly CachedText[]): void {
    this.#caches = this.#caches.filter((known) => !dropped.includes(known));
    for (const { cache } of dropped) this.#decoder.releaseCache(cache);
  }
}

/** Returns the length of the common prefix of two texts, in tokens. */
export function commonPrefixLength(left: readonly number[], right: readonly number[]): number {
  const max = Math.min(left.length, right.length);
  let length = 0;
  while (length < max && left[length] === right[length]) length += 1;
  return length;
}

/** Returns the number of tokens of a text's prefix that a cache holds. */
function prefixLength({ cache, ids, owner }: CachedText, text: PrefixQuery): number {
  return owner === text.owner ? Math.min(cache.length, commonPrefixLength(ids, text.ids)) : 0;
}
