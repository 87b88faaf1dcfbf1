import { commonLength, KeptCaches, type KnownCache, leastCommonTokens } from '../decoder/kept-caches.ts';
import type { TextRow } from '../row/text-row.ts';
import type { TextPipelineOptions } from './text-pipeline.ts';

type BeginningOptions = Pick<TextPipelineOptions, 'decoder' | 'keptTokens' | 'singlesAsPieces'>;

/** What rows take of each other's caches in place of reading it: of those beside them, and of those that have ended. */
export class SharedBeginnings {
  readonly #options: BeginningOptions;
  readonly #kept: KeptCaches;

  constructor(options: BeginningOptions) {
    this.#options = options;
    this.#kept = new KeptCaches(options.decoder, options.keptTokens);
  }

  /** Takes the cache of a row that goes. */
  keep(row: TextRow): void {
    this.#kept.keep(this.#knownOf(row));
  }

  /**
   * Rows that do not wait for others to read what they begin with. New ones take what others have read of it.
   *
   * @param all rows that there are.
   */
  readyRows<Row extends TextRow>(rows: readonly Row[], all: Iterable<Row>): Row[] {
    if (rows.every(({ cache }) => cache.length > 0)) return [...rows];
    const others = [...all].filter(({ cache }) => cache.length > 0).map((row) => this.#knownOf(row));
    return rows.filter((row, at) => row.cache.length > 0 || this.#findBeginning(row, others, rows.slice(0, at)));
  }

  #knownOf(row: TextRow): KnownCache {
    const { cache, owner, request } = row;
    return { cache, ids: this.#sharedIdsOf(row), owner, request };
  }

  /** Those that have the same bits in any cache. */
  #sharedIdsOf(row: TextRow): readonly number[] {
    return this.#options.singlesAsPieces ? idsOf(row) : row.request.prompt;
  }

  /**
   * @param others caches in use.
   * @param earlier rows that read in this step before it.
   * @returns false if it is better to wait for one of them, that is about to read more of it.
   */
  #findBeginning(row: TextRow, others: readonly KnownCache[], earlier: readonly TextRow[]): boolean {
    const { decoder, singlesAsPieces } = this.#options;
    // The last token leads to the next, so it is read in any case; never alone, where that makes a difference.
    const ids = this.#sharedIdsOf(row).slice(0, singlesAsPieces ? -1 : -2);
    const { owner, request } = row;
    const found = this.#kept.find({ ids, owner }, others);
    const most = (found?.length ?? 0) + leastCommonTokens;
    if (earlier.some((other) => other.owner === owner && commonLength(idsOf(other), ids) >= most)) return false;
    if (found !== undefined) {
      decoder.releaseCache(row.cache);
      row.cache = decoder.copyCache(found.known.cache, found.length, request.prompt.length);
      row.takenTokens = Math.min(row.cache.length, request.prompt.length);
    }
    // What its own request has read for another of its texts is no earlier one's.
    row.cachedTokens ??= found !== undefined && found.known.request !== request ? row.takenTokens : 0;
    return true;
  }
}

/** Prompt and text. */
export function idsOf({ request: { prompt }, written: { tokens } }: TextRow): readonly number[] {
  return tokens.length === 0 ? prompt : [...prompt, ...tokens];
}
