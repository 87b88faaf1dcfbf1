/**
 * Text block by block: a block of masks stands after what is known, and each call of the model makes some of its tokens known,
 * in any order. When none is missing, the block is read once more to be in the cache, and the next begins. Rows in different
 * blocks, and with different numbers of masks, share a call.
 *
 * Source: SDAR's `block_diffusion_generate`, with blocks that begin where the prompt ends.
 *
 * In a call each token sees all others of it. So a text depends on how its prompt is cut into pieces: they have always the same
 * length here, whoever else has something to read.
 */
import type { DarkroomError, RowCheckpoint, RowEvent, RowRequest, StepReport } from '@darkroom/core';
import { createLogitAdjustment, type LogitAdjustment } from '../sampling/adjust-logits.ts';
import { checkTextRequest, type TextRequest } from '../row/text-request.ts';
import { decodeTextCheckpoint, encodeTextCheckpoint, indexesOf, startText } from '../row/text-row.ts';
import { textOutput, type TextRow } from '../row/text-row.ts';
import { denoiseBlock, unknownToken } from './denoise-block.ts';
import {
  countTokens,
  hasRoomFor,
  notNumbers,
  shareStep,
  stepBudget,
  type TextPipeline,
  type TextPipelineOptions,
} from './text-pipeline.ts';

/** One text whose last block is worked on. */
export interface BlockDiffusionRow extends TextRow {
  readonly adjustment: LogitAdjustment;
  /** Ids of the block in work; `unknownToken` where none is known. Shorter where the text has no room for all. */
  block: number[];
  /** Tokens of the prompt and of whole blocks that are not in the cache. */
  readonly unread: number;
  /** Blocks that were read after they were written, here or by who wrote its checkpoint. */
  readBlocks: number;
}

/** Tokens of a prompt that are read in one call. */
export const promptPiece = 128;

/** What a row does in a call. */
interface Part {
  readonly row: BlockDiffusionRow;
  /** It reads these, or works on its block if there are none. */
  readonly unread: readonly number[];
}

export class BlockDiffusionPipeline implements TextPipeline<BlockDiffusionRow> {
  readonly card: TextPipelineOptions['card'];
  readonly components: TextPipeline['components'];
  readonly #options: TextPipelineOptions;
  readonly #rows = new Set<BlockDiffusionRow>();
  readonly #block: NonNullable<TextPipelineOptions['config']['block']>;

  constructor(options: TextPipelineOptions) {
    this.#options = options;
    this.#block = options.config.block!;
    this.card = options.card;
    this.components = [options.component];
  }

  // oxlint-disable-next-line require-await
  async createRows(rowRequest: RowRequest): Promise<BlockDiffusionRow[]> {
    const request = checkTextRequest(rowRequest.input, this.card);
    const made = indexesOf(rowRequest, request).map((index) => this.#createRow(rowRequest, request, index));
    for (const row of made) this.#rows.add(row);
    return made;
  }

  hasRoomFor(row: BlockDiffusionRow, others: readonly BlockDiffusionRow[]): boolean {
    return hasRoomFor(row, others, this.#options.memoryTokens);
  }

  async step(rows: readonly BlockDiffusionRow[]): Promise<StepReport<BlockDiffusionRow>> {
    const { decoder } = this.#options;
    const before = countTokens(rows);
    const budget = stepBudget(rows, this.#rows, this.#options.stepTokens);
    const shared = shareStep(rows, budget, (row) => this.#unreadPiece(row).length || this.#block.size);
    const parts = shared.map(({ row }): Part => ({ row, unread: this.#unreadPiece(row) }));
    const reads = parts.map(({ row, unread }) => {
      if (unread.length > 0) return { cache: row.cache, ids: unread, keeps: true, logitsFrom: unread.length };
      return { cache: row.cache, ids: this.#masked(row.block), keeps: false, logitsFrom: 0 };
    });
    const logits = await decoder.run(reads);
    const events = new Map<BlockDiffusionRow, readonly RowEvent[]>();
    const failures = new Map<BlockDiffusionRow, DarkroomError>();
    for (const [at, { row, unread }] of parts.entries()) {
      const said = unread.length > 0 ? this.#haveRead(row) : this.#develop(row, logits[at]!);
      if (said === undefined) failures.set(row, notNumbers());
      else if (said.length > 0) events.set(row, said);
    }
    return { modelRows: parts.length, tokens: countTokens(rows, before), events, failures };
  }

  finish(row: BlockDiffusionRow) {
    return Promise.resolve(textOutput(row));
  }

  checkpoint(row: BlockDiffusionRow): RowCheckpoint {
    const {
      written: { tokens },
      random,
      calls,
      block,
      readBlocks,
    } = row;
    return encodeTextCheckpoint(progressOf(row).done, { tokens, random: random.snapshot(), calls, block, readBlocks });
  }

  release(row: BlockDiffusionRow): void {
    this.#rows.delete(row);
    this.#options.decoder.releaseCache(row.cache);
  }

  settle(): Promise<void> {
    return Promise.resolve();
  }

  async dispose(): Promise<void> {
    await Promise.all([this.#options.decoder.dispose(), this.#options.grammars.dispose()]);
  }

  #createRow(rowRequest: RowRequest, request: TextRequest, index: number): BlockDiffusionRow {
    const { codec, config, decoder } = this.#options;
    const { limit, prompt } = request;
    const { vocabularySize } = this.card;
    const checkpoint = decodeTextCheckpoint(rowRequest.checkpoints?.get(index)?.data, { limit, vocabularySize });
    const row: BlockDiffusionRow = {
      ...startText({ request, owner: rowRequest.owner, index, codec, endIds: config.endIds, checkpoint }),
      index,
      slots: prompt.length + limit,
      cache: decoder.createCache(),
      adjustment: createLogitAdjustment(request),
      block: [],
      readBlocks: checkpoint?.readBlocks ?? 0,
      get unread() {
        return prompt.length + this.written.tokens.length - this.cache.length;
      },
      get shapeKey() {
        return this.cache.length < prompt.length ? 'read' : 'write';
      },
      get isDone() {
        return this.written.end !== undefined;
      },
    };
    const block = this.#emptyBlock(row);
    row.block = checkpoint?.block?.length === block.length ? [...checkpoint.block] : block;
    return row;
  }

  #emptyBlock({ request, written }: BlockDiffusionRow): number[] {
    const length = Math.min(this.#block.size, request.limit - written.tokens.length);
    return Array.from({ length }, () => unknownToken);
  }

  #masked(block: readonly number[]): number[] {
    const ids = block.map((id) => (id === unknownToken ? this.#block.maskId : id));
    return [...ids, ...Array.from({ length: this.#block.size - ids.length }, () => this.#block.maskId)];
  }

  /** What the row reads next: a piece of its prompt, or a block that is written. */
  #unreadPiece({ request: { prompt }, written: { tokens }, cache, unread }: BlockDiffusionRow): readonly number[] {
    if (unread === 0) return [];
    if (cache.length < prompt.length) return prompt.slice(cache.length, cache.length + promptPiece);
    const from = cache.length - prompt.length;
    return tokens.slice(from, from + this.#block.size);
  }

  #haveRead(row: BlockDiffusionRow): RowEvent[] {
    const { cache, request, readBlocks, written } = row;
    const blocks = Math.floor((cache.length - request.prompt.length) / this.#block.size);
    // One that goes on from a checkpoint reads blocks again; that was counted.
    if (blocks <= readBlocks) return [];
    row.readBlocks = blocks;
    countCall(row);
    if (!isLastCall(row)) return [progressOf(row)];
    // What was held back of it comes now.
    return [progressOf(row), written.settle([], { calls: row.calls, isLast: true })];
  }

  /** A call's logits make tokens of the block known. */
  #develop(row: BlockDiffusionRow, logits: Float32Array): RowEvent[] | undefined {
    const { vocabularySize } = this.card;
    const { decoder } = this.#options;
    const { maskId, confidenceThreshold } = this.#block;
    const { request, written, adjustment, random, block } = row;
    const isDenoised = denoiseBlock(block, {
      request,
      confidenceThreshold: request.confidenceThreshold ?? confidenceThreshold,
      maskId,
      adjustment,
      counts: written.counts,
      random,
      logitsOf(place) {
        const from = place * decoder.vocabularySize;
        // A model may have more logits than there are tokens.
        return logits.subarray(from, from + vocabularySize);
      },
    });
    if (!isDenoised) return undefined;
    countCall(row);
    const { calls } = row;
    const known = knownTokens(row);
    const snapshot =
      known === undefined
        ? written.snapshot(block, { calls, maskId })
        : written.settle(known, { calls, isLast: isLastCall(row) });
    if (known !== undefined) row.block = this.#emptyBlock(row);
    return [progressOf(row), snapshot];
  }
}

/** Tokens that are known, those of the block in work among them. */
function progressOf({ request: { limit }, written: { tokens }, block }: BlockDiffusionRow) {
  const known = block.filter((id) => id !== unknownToken).length;
  return { type: 'progress', done: tokens.length + known, total: limit } as const;
}

function countCall(row: BlockDiffusionRow): void {
  row.calls += 1;
}

function isLastCall({ calls, request: { maxCalls = Infinity } }: BlockDiffusionRow): boolean {
  return calls >= maxCalls;
}

/** The block's tokens, if nothing of it changes any more: all are known, or the text ends before those that are not. */
function knownTokens(row: BlockDiffusionRow): readonly number[] | undefined {
  const { written, block } = row;
  const unknown = block.indexOf(unknownToken);
  if (unknown === -1) return block;
  const known = block.slice(0, unknown);
  return isLastCall(row) || written.wouldEnd(known) ? known : undefined;
}
