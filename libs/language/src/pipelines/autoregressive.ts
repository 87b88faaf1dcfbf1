/**
 * Generates text token by token. Rows join and leave at any step, and rows of any length share a model call. Prompts
 * are read in chunks, within a token budget per step, so that writing rows wait for one chunk at most. Images are
 * encoded in calls of their own, in parts between which rows write. Not supported: adapters, speculative decoding.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { DarkroomError, NonEmpty, RowCheckpoint, RowEvent, StepReport } from '@darkroom/core';
import type { TextMatcher } from '@darkroom/kinds';
import { encodeTextCheckpoint, TextRow, type TextRowOptions } from '../row/text-row.ts';
import { adjustLogits, maskLogits } from '../sampling/adjust-logits.ts';
import { chooseToken } from '../sampling/choose-token.ts';
import { tokenLogprob } from '../sampling/token-logprobs.ts';
import { ModelCalls } from './model-calls.ts';
import { SharedPrefixes } from './shared-prefixes.ts';
import { constraintError, countTokens, invalidLogitsError, TextPipeline } from './text-pipeline.ts';
import type { TextPipelineOptions } from './text-pipeline.ts';

/** Deltas show progress too, so a progress event follows only every this many tokens. */
const progressEvery = 16;
/** Max wait of a step while no row can continue: others may join. */
const waitMs = 20;

/** A text that grows at its end. */
export class AutoregressiveRow extends TextRow {
  /** Set once the row has emitted progress since its creation. */
  hasReportedProgress = false;
  /** Tracks which tokens the constraint allows next, if there is one. */
  readonly matcher: TextMatcher | undefined;
  /** Logits after the last token, while the matcher computes which tokens are allowed. */
  waitingLogits: Float32Array | undefined;
  /** Events for the next report. If a step fails, the next successful one reports them. */
  readonly pendingEvents: RowEvent[] = [];
  readonly #singlesMatchChunks: boolean;

  constructor(options: TextRowOptions, { decoder, grammars, singlesMatchChunks }: TextPipelineOptions) {
    const { prompt, constraint } = options.request;
    super(options, decoder.createCache(prompt.length));
    this.matcher = constraint && grammars.open(constraint, this.written.tokens);
    this.#singlesMatchChunks = singlesMatchChunks;
  }

  /**
   * Max unread tokens in one chunk. On resume, rereads tokens one by one if they were written so and chunks would round
   * differently.
   */
  get chunk(): number {
    return this.#singlesMatchChunks ? this.unread : Math.max(1, this.request.prompt.length - this.cache.length);
  }

  get shapeKey(): string {
    return this.chunk > 1 || this.images?.isMissingFrom(this.cache.length) === true ? 'read' : 'write';
  }

  /** The last step is known in advance only if the text reaches its limit. */
  get stepsLeft(): number | undefined {
    return this.unread === 1 && this.written.tokens.length === this.request.limit - 1 ? 1 : undefined;
  }

  /** True while it waits for its matcher. */
  get isBlocked(): boolean {
    return this.waitingLogits !== undefined && this.matcher?.next === undefined;
  }
}

export class AutoregressivePipeline extends TextPipeline<AutoregressiveRow> {
  readonly #prefixes: SharedPrefixes;
  readonly #calls: ModelCalls<AutoregressiveRow>;

  constructor(options: TextPipelineOptions) {
    super(options);
    this.#prefixes = new SharedPrefixes(options);
    this.#calls = new ModelCalls(options, this.#prefixes);
  }

  protected createRow(options: TextRowOptions): AutoregressiveRow {
    return new AutoregressiveRow(options, this.options);
  }

  async step(rows: NonEmpty<AutoregressiveRow>): Promise<StepReport<AutoregressiveRow>> {
    await waitForMatcher(rows);
    const before = countTokens(rows);
    const failures = new Map<AutoregressiveRow, DarkroomError>();
    const recordFailure = (row: AutoregressiveRow, failure: DarkroomError | undefined) =>
      failure && failures.set(row, failure);
    for (const row of rows) recordFailure(row, this.#resume(row));
    const others = rows.filter((row) => row.waitingLogits === undefined && !row.isDone && !failures.has(row));
    const parts = others.length > 0 ? await this.#calls.run(others, this.rows) : [];
    for (const { row, logits } of parts) if (logits.length > 0) recordFailure(row, this.#applyLogits(row, logits));
    const events = new Map(
      rows.flatMap((row) => (row.pendingEvents.length > 0 ? [[row, row.pendingEvents.splice(0)]] : [])),
    );
    return { modelRows: parts.length, tokens: countTokens(rows, before), events, failures };
  }

  /** Continues a row whose allowed tokens are now known, or ends it if there are none. */
  #resume(row: AutoregressiveRow): DarkroomError | undefined {
    const next = row.matcher?.next;
    if (next === undefined || row.isDone) return undefined;
    if (next.type === 'refused') return constraintError(next.problem);
    if (next.isEnd) this.#end(row);
    else if (row.waitingLogits !== undefined) return this.#writeToken(row, row.waitingLogits);
    return undefined;
  }

  /** @param logits after the row's last token; a view that the next call overwrites. */
  #applyLogits(row: AutoregressiveRow, logits: Float32Array): DarkroomError | undefined {
    // A model may have more logits than there are tokens.
    const known = logits.subarray(0, this.card.vocabularySize);
    const next = row.matcher?.next;
    if (row.matcher !== undefined && next === undefined) row.waitingLogits = known.slice();
    else if (next?.type === 'allowed' && next.isEnd) this.#end(row);
    else return this.#writeToken(row, known);
    return undefined;
  }

  /** @param logits one per token; modified in place. */
  #writeToken(row: AutoregressiveRow, logits: Float32Array): DarkroomError | undefined {
    const { request, written, adjustment, random, matcher } = row;
    const next = matcher?.next;
    if (next?.type === 'refused') return constraintError(next.problem);
    adjustLogits(logits, adjustment, written.counts);
    const { logprobs } = request;
    // Report log probabilities without the constraint's mask.
    const rated = logprobs !== undefined && next !== undefined ? logits.slice() : logits;
    if (next !== undefined && !maskLogits(logits, next.words))
      return constraintError('no token of this model can continue it');
    const id = chooseToken(logits, request, random);
    if (id === -1) return invalidLogitsError();
    row.waitingLogits = undefined;
    const { codec } = this.options;
    const line = logprobs === undefined ? undefined : JSON.stringify(tokenLogprob(rated, id, logprobs, codec));
    written.push(id, line && `${line}\n`);
    // The matcher computes the allowed tokens while the model reads this one.
    if (written.end === undefined) matcher?.accept(id);
    row.calls += 1;
    row.pendingEvents.push(...progressOf(row));
    emitDelta(row);
    return undefined;
  }

  /** Ends a row whose constraint allows nothing more, without waiting for an end token. */
  #end(row: AutoregressiveRow): void {
    row.waitingLogits = undefined;
    row.written.finishStop();
    emitDelta(row);
  }

  checkpoint({ written, random, calls, cachedTokens = 0 }: AutoregressiveRow): RowCheckpoint {
    const { tokens, pendingLogprobs: logprobs } = written;
    return encodeTextCheckpoint(tokens.length, { tokens, random: random.snapshot(), calls, cachedTokens, logprobs });
  }

  release(row: AutoregressiveRow): void {
    this.rows.delete(row);
    this.#calls.release(row);
    row.matcher?.close();
    this.#prefixes.retain(row);
  }
}

/** Resolves when a row can continue, or after `waitMs`. */
async function waitForMatcher(rows: readonly AutoregressiveRow[]): Promise<void> {
  if (!rows.every(({ isBlocked }) => isBlocked)) return;
  await Promise.race([...rows.map(({ matcher }) => matcher?.whenKnown()), delay(waitMs, undefined, { ref: false })]);
}

function emitDelta({ written, pendingEvents }: AutoregressiveRow): void {
  const delta = written.takeDelta();
  if (delta !== undefined) pendingEvents.push(delta);
}

function progressOf(row: AutoregressiveRow): RowEvent[] {
  const done = row.written.tokens.length;
  if (row.hasReportedProgress && done % progressEvery !== 0) return [];
  row.hasReportedProgress = true;
  return [{ type: 'progress', done, total: row.request.limit }];
}
