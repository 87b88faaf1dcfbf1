import { commonPrefixLength, PrefixCache, type CachedText, minPrefixTokens } from '../decoder/prefix-cache.ts';
import type { TextRow } from '../row/text-row.ts';
import type { TextPipelineOptions } from './text-pipeline.ts';

type PrefixOptions = Pick<TextPipelineOptions, 'decoder' | 'prefixCacheTokens' | 'singlesMatchChunks'>;

/**
 * Shares cached prefixes: new rows copy them from rows in progress and from retained caches, instead of reading them.
 */
export class SharedPrefixes {
  readonly #options: PrefixOptions;
  readonly #cache: PrefixCache;

  constructor(options: PrefixOptions) {
    this.#options = options;
    this.#cache = new PrefixCache(options.decoder, options.prefixCacheTokens);
  }

  /** Retains the cache of a row that leaves. */
  retain(row: TextRow): void {
    this.#cache.add(this.#cachedTextOf(row));
  }

  /**
   * Returns the rows that need not wait for another row to read a common prefix. New rows copy known prefixes.
   *
   * @param all all rows of the pipeline.
   */
  readyRows<Row extends TextRow>(rows: readonly Row[], all: Iterable<Row>): Row[] {
    if (rows.every(({ cache }) => cache.length > 0)) return [...rows];
    const others = [...all].filter(({ cache }) => cache.length > 0).map((row) => this.#cachedTextOf(row));
    return rows.filter((row, at) => row.cache.length > 0 || this.#copyPrefix(row, others, rows.slice(0, at)));
  }

  #cachedTextOf(row: TextRow): CachedText {
    const { cache, owner, request } = row;
    return { cache, ids: this.#sharedIdsOf(row), owner, request };
  }

  /** Returns the tokens whose cached values have the same bits in any cache. */
  #sharedIdsOf(row: TextRow): readonly number[] {
    return this.#options.singlesMatchChunks ? row.ids : row.request.prompt;
  }

  /**
   * Copies the longest known prefix to the row's cache.
   *
   * @param others caches in use.
   * @param earlier rows that precede it in this step.
   * @returns false if the row should wait, since an earlier row is about to read a longer common prefix.
   */
  #copyPrefix(row: TextRow, others: readonly CachedText[], earlier: readonly TextRow[]): boolean {
    const { decoder, singlesMatchChunks } = this.#options;
    // The last token must be read to predict the next one; read two if a single one would round differently.
    const ids = this.#sharedIdsOf(row).slice(0, singlesMatchChunks ? -1 : -2);
    const { owner, request } = row;
    const found = this.#cache.find({ ids, owner }, others);
    const minLength = (found?.length ?? 0) + minPrefixTokens;
    if (earlier.some((other) => other.owner === owner && commonPrefixLength(other.ids, ids) >= minLength)) return false;
    if (found !== undefined) {
      decoder.releaseCache(row.cache);
      row.cache = decoder.copyCache(found.known.cache, found.length, request.prompt.length);
      row.takenTokens = Math.min(row.cache.length, request.prompt.length);
    }
    // A prefix read for another text of the same request does not count as cached.
    row.cachedTokens ??= found !== undefined && found.known.request !== request ? row.takenTokens : 0;
    return true;
  }
}
