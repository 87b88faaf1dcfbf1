/** A loaded graph that reads tokens and gives logits, and the caches of what it has read. */

/** What the graph keeps of the tokens that a row has read. */
export interface TokenCache {
  /** Tokens that are in it. */
  readonly length: number;
}

/** One row's part in a call. */
export interface DecoderRead<Cache extends TokenCache = TokenCache> {
  /** Of the tokens before these. */
  readonly cache: Cache;
  /** At least one. */
  readonly ids: readonly number[];
  /** Whether the cache has these tokens too afterwards. */
  readonly keeps: boolean;
  /** Of which of these tokens the logits are given: of those from this one on; of none if it is their number. */
  readonly logitsFrom: number;
}

/** Calls must not overlap. */
export interface Decoder<Cache extends TokenCache = TokenCache> {
  /** Logits of one position. */
  readonly vocabularySize: number;
  /**
   * An empty cache. It takes memory as it grows.
   *
   * @param expected tokens that it is going to have in any case: there is room for them from the beginning.
   */
  createCache(expected?: number): Cache;
  /** A cache of the first tokens of another; of none if that had to be released to make room for it. */
  copyCache(cache: Cache, length: number, expected?: number): Cache;
  /** Memory that a cache takes, in tokens: at least its length. */
  roomOf(cache: Cache): number;
  /**
   * Of decoders whose caches grow with the longest: who hears, before they do, what each is about to take, and may release some
   * that are in no call.
   */
  onGrowth?(listener: (room: number) => void): void;
  /** What it held may be used for others. It is not to be used any more. */
  releaseCache(cache: Cache): void;
  /**
   * Calls the graph once for all rows. What is given for a row does not depend on the others.
   *
   * @returns logits of each row's positions asked for, one after the other; overwritten by the next call.
   * @throws DarkroomError if that fails; the caches are as they were then.
   */
  run(reads: readonly DecoderRead<Cache>[]): Promise<readonly Float32Array[]>;
  /**
   * The same in parts, between which others may `run`. One that is not gone on with to its end changes nothing; only one at a
   * time.
   */
  runByParts(reads: readonly DecoderRead<Cache>[]): AsyncGenerator<void, readonly Float32Array[]>;
  dispose(): Promise<void>;
}

/** What comes of parts when all of them are done. */
export async function lastOf<Value>(parts: AsyncGenerator<void, Value>): Promise<Value> {
  for (;;) {
    const part = await parts.next();
    if (part.done === true) return part.value;
  }
}
