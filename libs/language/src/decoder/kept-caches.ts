import type { Decoder, TokenCache } from './decoder.ts';

/** A cache, and the tokens that are in it. */
export interface KnownCache {
  readonly cache: TokenCache;
  /** Those of the cache, and more perhaps; where there are fewer, only they may be used. */
  readonly ids: readonly number[];
  /** Whose it is. What somebody has read is of use to nobody else: who could tell by it would know what others write. */
  readonly owner: string | undefined;
  /** What it was read for. */
  readonly request: object;
}

/** A text that looks for its beginning. */
export type WantedText = Pick<KnownCache, 'ids' | 'owner'>;

/** What a cache has of the beginning of a text. */
export interface CommonBeginning {
  readonly known: KnownCache;
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

  /** @param maxTokens that they may take the memory of. */
  constructor(decoder: Decoder, maxTokens: number) {
    this.#decoder = decoder;
    this.#maxTokens = maxTokens;
    decoder.onGrowth?.((room) => this.#fit(room));
  }

  /** Memory that they take, in tokens. */
  get room(): number {
    return this.#roomWith(0);
  }

  /** Takes a cache that nobody else uses any more. */
  keep(known: KnownCache): void {
    const { cache } = known;
    const own = { ...known, ids: known.ids.slice(0, cache.length) };
    // What is the beginning of another is of no more use than that other.
    const isWithin = this.#kept.some((other) => lengthWithin(other, own) === own.ids.length);
    if (isWithin || own.ids.length < leastCommonTokens) return this.#decoder.releaseCache(cache);
    this.#drop(this.#kept.filter((other) => lengthWithin(own, other) === other.ids.length));
    this.#kept.push(own);
    this.#fit();
  }

  /**
   * The longest beginning that one of these, or of others, has in common with a text.
   *
   * @param others caches that are in use.
   */
  find(text: WantedText, others: readonly KnownCache[]): CommonBeginning | undefined {
    let best: CommonBeginning | undefined;
    for (const known of [...this.#kept, ...others]) {
      const length = lengthWithin(known, text);
      if (length >= leastCommonTokens && length > (best?.length ?? 0)) best = { length, known };
    }
    const used = this.#kept.find((known) => known === best?.known);
    if (used !== undefined) this.#kept = [...this.#kept.filter((known) => known !== used), used];
    return best;
  }

  /** @param least what each of them is about to take. */
  #fit(least = 0): void {
    while (this.#roomWith(least) > this.#maxTokens) this.#drop(this.#kept.slice(0, 1));
  }

  #roomWith(least: number): number {
    return this.#kept.reduce((sum, { cache }) => sum + Math.max(least, this.#decoder.roomOf(cache)), 0);
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
function lengthWithin({ cache, ids, owner }: KnownCache, text: WantedText): number {
  return owner === text.owner ? Math.min(cache.length, commonLength(ids, text.ids)) : 0;
}
