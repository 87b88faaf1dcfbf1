/**
 * Text token by token: each step gives every row its next token. A row joins and leaves at any step, and rows of any length
 * share one call of the model. A prompt is read in pieces, within a budget for each step, so that those who write never wait
 * for more than one of them.
 *
 * Known limits: one graph, no images, no adapters, no speculative decoding.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { DarkroomError, RowCheckpoint, RowEvent, RowRequest, StepReport } from '@darkroom/core';
import type { TextMatcher } from '@darkroom/kinds';
import { adjustLogits, createLogitAdjustment, type LogitAdjustment } from '../sampling/adjust-logits.ts';
import { chooseToken } from '../sampling/choose-token.ts';
import { maskLogits } from '../sampling/mask-logits.ts';
import { tokenLogprob } from '../sampling/token-logprobs.ts';
import { checkTextRequest, type TextRequest } from '../row/text-request.ts';
import { decodeTextCheckpoint, encodeTextCheckpoint, indexesOf, startText } from '../row/text-row.ts';
import { textOutput, type TextRow } from '../row/text-row.ts';
import { clockOf, PartedCall } from './parted-call.ts';
import { idsOf, SharedBeginnings } from './shared-beginnings.ts';
import { StepPace } from './step-pace.ts';
import {
  countTokens,
  hasRoomFor,
  hasWriters,
  idleStepTokens,
  notNumbers,
  notWritable,
  shareStep,
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
  /** Knows what may come next, where there is a constraint. */
  readonly matcher: TextMatcher | undefined;
  /** After its last token, while it is not known yet what may come next. */
  waiting: Float32Array | undefined;
  /** What the next report says of it: that of a step that fails is said by the one that does not. */
  readonly said: RowEvent[];
}

/** Its tokens come by themselves: how far it is, each says once in so many of them. */
const progressEvery = 16;

export class AutoregressivePipeline implements TextPipeline<AutoregressiveRow> {
  readonly card: TextPipelineOptions['card'];
  readonly components: TextPipeline['components'];
  readonly #options: TextPipelineOptions;
  readonly #rows = new Set<AutoregressiveRow>();
  readonly #beginnings: SharedBeginnings;
  readonly #pace: StepPace;
  readonly #clock: () => number;
  /** A call of rows that read, of which parts are left. */
  #begun: PartedCall<AutoregressiveRow> | undefined;

  constructor(options: TextPipelineOptions) {
    this.#options = options;
    this.#beginnings = new SharedBeginnings(options);
    this.#pace = new StepPace(options.stepTokens);
    this.#clock = clockOf(options.component.device);
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
    await whenOneMayGoOn(rows);
    const before = countTokens(rows);
    const failures = new Map<AutoregressiveRow, DarkroomError>();
    const note = (row: AutoregressiveRow, failure: DarkroomError | undefined) => failure && failures.set(row, failure);
    for (const row of rows) note(row, this.#catchUp(row));
    const others = rows.filter((row) => row.waiting === undefined && !row.isDone && !failures.has(row));
    const parts = others.length > 0 ? await this.#read(others) : [];
    for (const { row, logits } of parts) if (logits.length > 0) note(row, this.#haveLogits(row, logits));
    const events = new Map(rows.flatMap((row) => (row.said.length > 0 ? [[row, row.said.splice(0)]] : [])));
    return { modelRows: parts.length, tokens: countTokens(rows, before), events, failures };
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
    row.matcher?.close();
    this.#beginnings.keep(row);
  }

  settle(): Promise<void> {
    return Promise.resolve();
  }

  async dispose(): Promise<void> {
    await Promise.all([this.#options.decoder.dispose(), this.#options.grammars.dispose()]);
  }

  #createRow(rowRequest: RowRequest, request: TextRequest, index: number): AutoregressiveRow {
    const { codec, config, decoder, grammars, singlesAsPieces } = this.#options;
    const { limit, prompt, constraint } = request;
    const { vocabularySize } = this.card;
    const checkpoint = decodeTextCheckpoint(rowRequest.checkpoints?.get(index)?.data, { limit, vocabularySize });
    const text = startText({ request, owner: rowRequest.owner, index, codec, endIds: config.endIds, checkpoint });
    return {
      ...text,
      index,
      slots: prompt.length + limit,
      cache: decoder.createCache(prompt.length),
      adjustment: createLogitAdjustment(request),
      hasSaidProgress: false,
      matcher: constraint && grammars.open(constraint, text.written.tokens),
      waiting: undefined,
      said: [],
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

  /**
   * One call of the model, for as many rows as there is room for; or as much of it as those who write may wait for.
   *
   * @returns the rows of a call that has come to its end, with their logits if they have read all they have.
   */
  async #read(rows: readonly AutoregressiveRow[]) {
    const isReading = rows[0]!.shapeKey === 'read';
    const isAwaited = isReading && hasWriters(this.#rows);
    const begun = isReading ? this.#begun : undefined;
    const goesOn = begun?.rows.every((row) => rows.includes(row)) === true;
    if (!goesOn) await begun?.drop();
    const call = goesOn ? begun : this.#begin(rows, isReading, isAwaited);
    // One that fails is not gone on with.
    if (isReading) this.#begun = undefined;
    const logits = await call.goOn(isAwaited ? this.#pace.readMs : Infinity);
    if (logits === undefined) {
      this.#begun = call;
      return [];
    }
    if (!isReading) this.#pace.hasWritten(call.takenMs);
    // Of less than there might have been it does not tell how long as much takes.
    else if (isAwaited && 2 * call.tokens > this.#pace.tokens) this.#pace.hasRead(call.partMs);
    return call.rows.map((row, at) => ({ row, logits: logits[at]! }));
  }

  #begin(rows: readonly AutoregressiveRow[], isReading: boolean, isAwaited: boolean): PartedCall<AutoregressiveRow> {
    const budget = !isReading ? Infinity : isAwaited ? this.#pace.tokens : idleStepTokens;
    const parts = shareStep(this.#beginnings.readyRows(rows, this.#rows), budget, (row) => this.#countOf(row, budget));
    const reads = parts.map(({ row, count }) => {
      const logitsFrom = count === row.unread ? count - 1 : count;
      return { cache: row.cache, ids: unreadIds(row, count), keeps: true, logitsFrom };
    });
    return new PartedCall(
      this.#options.decoder,
      parts.map(({ row }) => row),
      reads,
      this.#clock,
    );
  }

  #countOf({ piece }: AutoregressiveRow, budget: number): number {
    const count = Math.min(piece, budget);
    // No single token of a prompt is left over, where that makes a difference.
    return piece - count === 1 && count > 2 && !this.#options.singlesAsPieces ? count - 1 : count;
  }

  /** A row that knows now what may come next goes on, or ends if nothing may. */
  #catchUp(row: AutoregressiveRow): DarkroomError | undefined {
    const next = row.matcher?.next;
    if (next === undefined || row.isDone) return undefined;
    if (next.type === 'refused') return notWritable(next.problem);
    if (next.isEnd) this.#end(row);
    else if (row.waiting !== undefined) return this.#writeToken(row, row.waiting);
    return undefined;
  }

  /** @param logits after the row's last token; not to be kept. */
  #haveLogits(row: AutoregressiveRow, logits: Float32Array): DarkroomError | undefined {
    // A model may have more logits than there are tokens.
    const known = logits.subarray(0, this.card.vocabularySize);
    const next = row.matcher?.next;
    if (row.matcher !== undefined && next === undefined) row.waiting = known.slice();
    else if (next?.type === 'allowed' && next.isEnd) this.#end(row);
    else return this.#writeToken(row, known);
    return undefined;
  }

  /** @param logits one for each token; they are changed. */
  #writeToken(row: AutoregressiveRow, logits: Float32Array): DarkroomError | undefined {
    const { request, written, adjustment, random, matcher } = row;
    const next = matcher?.next;
    if (next?.type === 'refused') return notWritable(next.problem);
    adjustLogits(logits, adjustment, written.counts);
    const { logprobs } = request;
    // How probable a token is has nothing to do with what it was chosen from.
    const rated = logprobs !== undefined && next !== undefined ? logits.slice() : logits;
    if (next !== undefined && !maskLogits(logits, next.words))
      return notWritable('no token of this model goes on with it');
    const id = chooseToken(logits, request, random);
    if (id === -1) return notNumbers();
    row.waiting = undefined;
    const { codec } = this.#options;
    const line = logprobs === undefined ? undefined : JSON.stringify(tokenLogprob(rated, id, logprobs, codec));
    written.push(id, line && `${line}\n`);
    // What may follow is found out while the model reads it.
    if (written.end === undefined) matcher?.accept(id);
    row.calls += 1;
    row.said.push(...progressOf(row));
    sayDelta(row);
    return undefined;
  }

  /** Its constraint allows nothing more: there is no need to ask the model for an end token. */
  #end(row: AutoregressiveRow): void {
    row.waiting = undefined;
    row.written.finishStop();
    sayDelta(row);
  }
}

/** While nobody can go on, a step waits no longer than this: others may come. */
const waitMs = 20;

/** Resolves when one of these rows need not wait for what may come next. */
async function whenOneMayGoOn(rows: readonly AutoregressiveRow[]): Promise<void> {
  const isHeldUp = ({ waiting, matcher }: AutoregressiveRow) => waiting !== undefined && matcher?.next === undefined;
  if (!rows.every(isHeldUp)) return;
  await Promise.race([...rows.map(({ matcher }) => matcher?.whenKnown()), delay(waitMs, undefined, { ref: false })]);
}

function sayDelta({ written, said }: AutoregressiveRow): void {
  const delta = written.takeDelta();
  if (delta !== undefined) said.push(delta);
}

function unreadIds(row: AutoregressiveRow, count: number): readonly number[] {
  const { cache, unread, written } = row;
  if (unread === 1 && written.tokens.length > 0) return written.tokens.slice(-1);
  return idsOf(row).slice(cache.length, cache.length + count);
}

function progressOf(row: AutoregressiveRow): RowEvent[] {
  const done = row.written.tokens.length;
  if (row.hasSaidProgress && done % progressEvery !== 0) return [];
  row.hasSaidProgress = true;
  return [{ type: 'progress', done, total: row.request.limit }];
}
