/**
 * Text token by token: each step gives every row its next token. A row joins and leaves at any step, and rows of any length
 * share one call of the model. A prompt is read in pieces, within a budget for each step, so that those who write never wait
 * for more than one of them.
 *
 * Known limits: one graph, no images, no adapters, no speculative decoding.
 */
import type { DarkroomError, RowCheckpoint, RowEvent, RowRequest, StepReport } from '@darkroom/core';
import type { DecoderRead } from '../decoder/decoder.ts';
import { commonLength, KeptCaches, type KnownCache, leastCommonTokens } from '../decoder/kept-caches.ts';
import { adjustLogits, createLogitAdjustment, type LogitAdjustment } from '../sampling/adjust-logits.ts';
import { chooseToken } from '../sampling/choose-token.ts';
import { tokenLogprob } from '../sampling/token-logprobs.ts';
import { checkTextRequest, type TextRequest } from '../row/text-request.ts';
import { decodeTextCheckpoint, encodeTextCheckpoint, indexesOf, startText } from '../row/text-row.ts';
import { textOutput, type TextRow } from '../row/text-row.ts';
import { StepPace } from './step-pace.ts';
import {
  hasRoomFor,
  notNumbers,
  shareStep,
  stepBudget,
  type TextPipeline,
  type TextPipelineOptions,
} from './text-pipeline.ts';

/** One text that grows at its end. */
export interface AutoregressiveRow extends TextRow {
  readonly adjustment: LogitAdjustment;
  /** Tokens of prompt and text that are not in the cache: the last of them leads to the next. */
  readonly unread: number;
  /** Those of them that may be read in one piece. */
  readonly piece: number;
  /** Whether it said how far it is since it was made. */
  hasSaidProgress: boolean;
}

/** Its tokens come by themselves: how far it is, each says once in so many of them. */
const progressEvery = 16;

export class AutoregressivePipeline implements TextPipeline<AutoregressiveRow> {
  readonly card: TextPipelineOptions['card'];
  readonly components: TextPipeline['components'];
  readonly #options: TextPipelineOptions;
  readonly #rows = new Set<AutoregressiveRow>();
  readonly #kept: KeptCaches;
  readonly #pace: StepPace;

  constructor(options: TextPipelineOptions) {
    this.#options = options;
    this.#kept = new KeptCaches(options.decoder, options.keptTokens);
    this.#pace = new StepPace(options.stepTokens);
    this.card = options.card;
    this.components = [options.component];
  }

  // oxlint-disable-next-line require-await
  async createRows(rowRequest: RowRequest): Promise<AutoregressiveRow[]> {
    const request = checkTextRequest(rowRequest.input, this.card);
    const made = indexesOf(rowRequest, request).map((index) => this.#createRow(rowRequest, request, index));
    for (const row of made) this.#rows.add(row);
    return made;
  }

  hasRoomFor(row: AutoregressiveRow, others: readonly AutoregressiveRow[]): boolean {
    return hasRoomFor(row, others, this.#options.memoryTokens);
  }

  async step(rows: readonly AutoregressiveRow[]): Promise<StepReport<AutoregressiveRow>> {
    const budget = stepBudget(rows, this.#rows, this.#pace.tokens);
    const ready = this.#readyRows(rows);
    const parts = shareStep(ready, budget, (row) => this.#countOf(row, budget));
    const reads = parts.map(({ row, count }) => {
      const logitsFrom = count === row.unread ? count - 1 : count;
      return { cache: row.cache, ids: unreadIds(row, count), keeps: true, logitsFrom };
    });
    const logits = await this.#runTimed(reads, budget);
    const events = new Map<AutoregressiveRow, readonly RowEvent[]>();
    const failures = new Map<AutoregressiveRow, DarkroomError>();
    for (const [at, { row }] of parts.entries()) {
      if (logits[at]!.length === 0) continue;
      const said = this.#writeToken(row, logits[at]!);
      if (said === undefined) failures.set(row, notNumbers());
      else events.set(row, said);
    }
    return { modelRows: parts.length, events, failures };
  }

  finish(row: AutoregressiveRow) {
    return Promise.resolve(textOutput(row));
  }

  checkpoint({ written, random, calls, cachedTokens = 0 }: AutoregressiveRow): RowCheckpoint {
    const { tokens, unsaidLogprobs: logprobs } = written;
    return encodeTextCheckpoint(tokens.length, { tokens, random: random.snapshot(), calls, cachedTokens, logprobs });
  }

  release(row: AutoregressiveRow): void {
    this.#rows.delete(row);
    this.#kept.keep(this.#knownOf(row));
  }

  settle(): Promise<void> {
    return Promise.resolve();
  }

  async dispose(): Promise<void> {
    await this.#options.decoder.dispose();
  }

  #createRow(rowRequest: RowRequest, request: TextRequest, index: number): AutoregressiveRow {
    const { codec, config, decoder, singlesAsPieces } = this.#options;
    const { limit, prompt } = request;
    const { vocabularySize } = codec;
    const checkpoint = decodeTextCheckpoint(rowRequest.checkpoints?.get(index)?.data, { limit, vocabularySize });
    return {
      ...startText({ request, owner: rowRequest.owner, index, codec, endIds: config.endIds, checkpoint }),
      index,
      slots: prompt.length + limit,
      cache: decoder.createCache(),
      adjustment: createLogitAdjustment(request),
      hasSaidProgress: false,
      get unread() {
        return prompt.length + this.written.tokens.length - this.cache.length;
      },
      // What was written one by one is read so by who goes on with it, where that makes a difference.
      get piece() {
        return singlesAsPieces ? this.unread : Math.max(1, prompt.length - this.cache.length);
      },
      get shapeKey() {
        return this.piece > 1 ? 'read' : 'write';
      },
      get isDone() {
        return this.written.end !== undefined;
      },
      // Only of the last token that there is room for it is known that it is the last.
      get stepsLeft() {
        return this.unread === 1 && this.written.tokens.length === limit - 1 ? 1 : undefined;
      },
    };
  }

  /** Calls the model, and takes note of how long that took where others wait for it. */
  async #runTimed(reads: readonly DecoderRead[], budget: number): Promise<readonly Float32Array[]> {
    const startedAtMs = performance.now();
    const logits = await this.#options.decoder.run(reads);
    const takenMs = performance.now() - startedAtMs;
    if (budget === Infinity) this.#pace.hasWritten(takenMs);
    // Of less than there might have been it does not tell how long as much takes.
    else if (budget === this.#pace.tokens && 2 * widthOf(reads) > budget) this.#pace.hasRead(takenMs);
    return logits;
  }

  #countOf({ piece }: AutoregressiveRow, budget: number): number {
    const count = Math.min(piece, budget);
    // No single token of a prompt is left over, where that makes a difference.
    return piece - count === 1 && count > 2 && !this.#options.singlesAsPieces ? count - 1 : count;
  }

  /** Rows that do not wait for others to read what they begin with. New ones take what others have read of it. */
  #readyRows(rows: readonly AutoregressiveRow[]): AutoregressiveRow[] {
    if (rows.every(({ cache }) => cache.length > 0)) return [...rows];
    const others = [...this.#rows].filter(({ cache }) => cache.length > 0).map((row) => this.#knownOf(row));
    return rows.filter((row, at) => row.cache.length > 0 || this.#findBeginning(row, others, rows.slice(0, at)));
  }

  #knownOf(row: AutoregressiveRow): KnownCache {
    const { cache, owner, request } = row;
    return { cache, ids: this.#sharedIdsOf(row), owner, request };
  }

  /** Those that have the same bits in any cache. */
  #sharedIdsOf(row: AutoregressiveRow): readonly number[] {
    return this.#options.singlesAsPieces ? idsOf(row) : row.request.prompt;
  }

  /**
   * @param others caches in use.
   * @param earlier rows that read in this step before it.
   * @returns false if it is better to wait for one of them, that is about to read more of it.
   */
  #findBeginning(
    row: AutoregressiveRow,
    others: readonly KnownCache[],
    earlier: readonly AutoregressiveRow[],
  ): boolean {
    // The last token leads to the next, so it is read in any case; never alone, where that makes a difference.
    const ids = this.#sharedIdsOf(row).slice(0, this.#options.singlesAsPieces ? -1 : -2);
    const { owner, request } = row;
    const found = this.#kept.find({ ids, owner }, others);
    const most = (found?.length ?? 0) + leastCommonTokens;
    if (earlier.some((other) => other.owner === owner && commonLength(idsOf(other), ids) >= most)) return false;
    // What its own request has read for another of its texts is no earlier one's.
    const isOfOther = found !== undefined && found.known.request !== request;
    row.cachedTokens ??= isOfOther ? Math.min(found.length, request.prompt.length) : 0;
    if (found === undefined) return true;
    const { decoder } = this.#options;
    decoder.releaseCache(row.cache);
    row.cache = decoder.copyCache(found.known.cache, found.length);
    return true;
  }

  /** @param logits after the row's last token; they are changed. */
  #writeToken(row: AutoregressiveRow, logits: Float32Array): RowEvent[] | undefined {
    const { codec } = this.#options;
    const { request, written, adjustment, random } = row;
    // A model may have more logits than there are tokens.
    const known = logits.subarray(0, codec.vocabularySize);
    adjustLogits(known, adjustment, written.counts);
    const id = chooseToken(known, request, random);
    if (id === -1) return undefined;
    const { logprobs } = request;
    const line = logprobs === undefined ? undefined : JSON.stringify(tokenLogprob(known, id, logprobs, codec));
    written.push(id, line && `${line}\n`);
    row.calls += 1;
    const delta = written.takeDelta();
    return [...progressOf(row), ...(delta === undefined ? [] : [delta])];
  }
}

function idsOf({ request: { prompt }, written: { tokens } }: AutoregressiveRow): readonly number[] {
  return tokens.length === 0 ? prompt : [...prompt, ...tokens];
}

function unreadIds(row: AutoregressiveRow, count: number): readonly number[] {
  const { cache, unread, written } = row;
  if (unread === 1 && written.tokens.length > 0) return written.tokens.slice(-1);
  return idsOf(row).slice(cache.length, cache.length + count);
}

/** Tokens of a call, where each row is as wide as the widest. */
function widthOf(reads: readonly DecoderRead[]): number {
  return reads.length * reads.reduce((most, { ids }) => Math.max(most, ids.length), 0);
}

function progressOf(row: AutoregressiveRow): RowEvent[] {
  const done = row.written.tokens.length;
  if (row.hasSaidProgress && done % progressEvery !== 0) return [];
  row.hasSaidProgress = true;
  return [{ type: 'progress', done, total: row.request.limit }];
}
