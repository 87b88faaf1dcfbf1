/**
 * Generates text block by block (SDAR's `block_diffusion_generate`, with blocks that begin at the end of the prompt).
 * Each call unmasks tokens of a row's block, in any order; a complete block is read into the cache, and the next
 * begins. Tokens of a call see each other, so the size of prompt chunks is fixed.
 */
import { type DarkroomError, type NonEmpty, pairUp } from '@darkroom/core';
import type { RowCheckpoint, RowEvent, StepReport } from '@darkroom/core';
import type { Decoder } from '../decoder/decoder.ts';
import { encodeTextCheckpoint, TextRow, type TextRowOptions } from '../row/text-row.ts';
import { adjustLogits } from '../sampling/adjust-logits.ts';
import { type ChosenToken, chooseRatedToken } from '../sampling/choose-token.ts';
import { shareStep, stepBudget } from './model-calls.ts';
import { countTokens, invalidLogitsError, TextPipeline, type TextPipelineOptions } from './text-pipeline.ts';

/** Marks a masked position of a block. */
const maskedToken = -1;
/** Prompt tokens per call. */
export const promptChunk = 128;

type BlockConfig = NonNullable<TextPipelineOptions['config']['block']>;

/** A text whose last block is being denoised. */
export class BlockDiffusionRow extends TextRow {
  /** Token ids of the current block; `maskedToken` for masked ones. Shorter at the text's limit. */
  block: number[];
  /** Number of written blocks that were reread, including before the checkpoint. */
  readBlocks: number;

  constructor(options: TextRowOptions, { decoder, blockSize }: { decoder: Decoder; blockSize: number }) {
    super(options, decoder.createCache());
    const { checkpoint } = options;
    this.readBlocks = checkpoint?.readBlocks ?? 0;
    this.block = this.emptyBlock(blockSize);
    if (checkpoint?.block?.length === this.block.length) this.block = [...checkpoint.block];
  }

  emptyBlock(size: number): number[] {
    const length = Math.min(size, this.request.limit - this.written.tokens.length);
    return Array.from({ length }, () => maskedToken);
  }

  get shapeKey(): string {
    return this.cache.length < this.request.prompt.length ? 'read' : 'write';
  }

  get isLastCall(): boolean {
    return this.calls >= (this.request.maxCalls ?? Infinity);
  }

  /** Counts known tokens, including those of the current block. */
  get progress() {
    const known = this.block.filter((id) => id !== maskedToken).length;
    return { type: 'progress', done: this.written.tokens.length + known, total: this.request.limit } as const;
  }

  /** The block's tokens once it is final: all are known, or the text ends before the unknown ones. */
  get finalTokens(): readonly number[] | undefined {
    const { written, block } = this;
    const unknown = block.indexOf(maskedToken);
    if (unknown === -1) return block;
    const known = block.slice(0, unknown);
    return this.isLastCall || written.wouldEnd(known) ? known : undefined;
  }
}

export class BlockDiffusionPipeline extends TextPipeline<BlockDiffusionRow> {
  readonly #block: BlockConfig;

  constructor(options: TextPipelineOptions) {
    super(options);
    const { block } = options.config;
    if (block === undefined) throw new RangeError('a model for block diffusion must state its blocks');
    this.#block = block;
  }

  protected createRow(options: TextRowOptions): BlockDiffusionRow {
    return new BlockDiffusionRow(options, { decoder: this.options.decoder, blockSize: this.#block.size });
  }

  async step(rows: NonEmpty<BlockDiffusionRow>): Promise<StepReport<BlockDiffusionRow>> {
    const { decoder, stepTokens } = this.options;
    const before = countTokens(rows);
    const budget = stepBudget(rows, this.rows, stepTokens);
    const shared = shareStep(rows, budget, (row) => this.#unreadChunk(row).length || this.#block.size);
    const parts = shared.map(({ row }) => ({ row, unread: this.#unreadChunk(row) }));
    // Rows without unread tokens denoise their block.
    const reads = parts.map(({ row, unread }) => {
      if (unread.length > 0) return { cache: row.cache, ids: unread, keeps: true, logitsFrom: unread.length };
      return { cache: row.cache, ids: this.#masked(row.block), keeps: false, logitsFrom: 0 };
    });
    const logits = await decoder.run(reads);
    const events = new Map<BlockDiffusionRow, readonly RowEvent[]>();
    const failures = new Map<BlockDiffusionRow, DarkroomError>();
    for (const [{ row, unread }, ofRow] of pairUp(parts, logits)) {
      const rowEvents = unread.length > 0 ? this.#afterReading(row) : this.#denoise(row, ofRow);
      if (rowEvents === undefined) failures.set(row, invalidLogitsError());
      else if (rowEvents.length > 0) events.set(row, rowEvents);
    }
    return { modelRows: parts.length, tokens: countTokens(rows, before), events, failures };
  }

  #masked(block: readonly number[]): number[] {
    const ids = block.map((id) => (id === maskedToken ? this.#block.maskId : id));
    return [...ids, ...Array.from({ length: this.#block.size - ids.length }, () => this.#block.maskId)];
  }

  /** Returns the tokens that the row reads next: a prompt chunk, or a written block. */
  #unreadChunk({ request: { prompt }, written: { tokens }, cache, unread }: BlockDiffusionRow): readonly number[] {
    if (unread === 0) return [];
    if (cache.length < prompt.length) return prompt.slice(cache.length, cache.length + promptChunk);
    const from = cache.length - prompt.length;
    return tokens.slice(from, from + this.#block.size);
  }

  #afterReading(row: BlockDiffusionRow): RowEvent[] {
    const { cache, request, readBlocks, written } = row;
    const blocks = Math.floor((cache.length - request.prompt.length) / this.#block.size);
    // After a checkpoint, blocks are reread that were counted before.
    if (blocks <= readBlocks) return [];
    row.readBlocks = blocks;
    row.calls += 1;
    if (!row.isLastCall) return [row.progress];
    // Emit the text that was held back as a possible stop string.
    return [row.progress, written.settle([], { calls: row.calls, isLast: true })];
  }

  /** Unmasks tokens of the block by a call's logits. @returns undefined if the logits are invalid. */
  #denoise(row: BlockDiffusionRow, logits: Float32Array): RowEvent[] | undefined {
    const { maskId } = this.#block;
    const proposals = this.#propose(row, logits);
    if (proposals === undefined) return undefined;
    this.#unmask(row, proposals);
    row.calls += 1;
    const { calls, written, finalTokens: known } = row;
    const snapshot =
      known === undefined
        ? written.snapshot(row.block, { calls, maskId })
        : written.settle(known, { calls, isLast: row.isLastCall });
    if (known !== undefined) row.block = row.emptyBlock(this.#block.size);
    return [row.progress, snapshot];
  }

  /** Chooses a token for each masked position. @returns undefined if a logit is not a number. */
  #propose({ request, written, adjustment, random, block }: BlockDiffusionRow, logits: Float32Array) {
    const proposals: (ChosenToken & { readonly position: number })[] = [];
    for (const [position, id] of block.entries()) {
      if (id !== maskedToken) continue;
      const from = position * this.options.decoder.vocabularySize;
      // A model may have more logits than there are tokens.
      const known = logits.subarray(from, from + this.card.vocabularySize);
      adjustLogits(known, adjustment, written.counts);
      known[this.#block.maskId] = -Infinity;
      const chosen = chooseRatedToken(known, request, random);
      if (chosen === undefined) return undefined;
      proposals.push({ position, ...chosen });
    }
    return proposals;
  }

  /**
   * Unmasks the tokens above the threshold and always the most probable one (SDAR's `low_confidence_dynamic`), or a
   * fixed number of the most probable (`low_confidence_static`).
   */
  #unmask({ request, block }: BlockDiffusionRow, proposals: readonly (ChosenToken & { position: number })[]): void {
    const { tokensPerCall, confidenceThreshold = this.#block.confidenceThreshold } = request;
    // A stable sort: of equal probabilities, the first position wins.
    const ranked = proposals.toSorted((left, right) => right.probability - left.probability);
    for (const [rank, { position, id, probability }] of ranked.entries()) {
      const stays = tokensPerCall === undefined ? probability >= confidenceThreshold : rank < tokensPerCall;
      if (stays || rank === 0) block[position] = id;
    }
  }

  checkpoint({ written, random, calls, block, readBlocks, progress }: BlockDiffusionRow): RowCheckpoint {
    const { tokens } = written;
    return encodeTextCheckpoint(progress.done, { tokens, random: random.snapshot(), calls, block, readBlocks });
  }

  release(row: BlockDiffusionRow): void {
    this.rows.delete(row);
    this.options.decoder.releaseCache(row.cache);
  }
}
