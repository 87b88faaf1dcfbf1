import type { RowEvent } from '@darkroom/core';
import { IncrementalDetokenizer, maskText, type TextCodec, type TextPieceFacts } from '@darkroom/kinds';
import type { TextRowRequest } from './text-row-request.ts';

type RowDelta = Extract<RowEvent, { type: 'delta' }>;
type RowSnapshot = Extract<RowEvent, { type: 'snapshot' }>;

/** Why a text has ended. */
export type TextEnd = { readonly reason: 'stop'; readonly stop?: string } | { readonly reason: 'length' };

export interface WrittenTextOptions {
  request: Pick<TextRowRequest, 'stop' | 'ignoreEos' | 'limit'>;
  codec: TextCodec;
  endIds: readonly number[];
}

/** A token that was written but not emitted yet. */
interface PendingToken {
  readonly id: number;
  /** Start of its text, in UTF-16 code units. */
  readonly offset: number;
  readonly logprob: string | undefined;
}

/** A row's output: tokens, their text, and what has been emitted of it. */
export class RowText {
  readonly tokens: number[] = [];
  /** How often each token was written. */
  readonly counts = new Map<number, number>();
  readonly #options: WrittenTextOptions;
  #detokenizer: IncrementalDetokenizer;
  #pending: PendingToken[] = [];
  #text = '';
  /** Length of the emitted text, in UTF-16 code units, and number of its tokens. */
  #emittedUnits = 0;
  #emittedTokens = 0;
  /** Length of the text including what is held back. */
  #units = 0;
  #end: TextEnd | undefined;

  constructor(options: WrittenTextOptions) {
    this.#options = options;
    this.#detokenizer = new IncrementalDetokenizer(options.codec, options.request.stop);
  }

  /** The text without what is held back as a possible stop string. */
  get text(): string {
    return this.#text;
  }

  /** Undefined while the text continues. */
  get end(): TextEnd | undefined {
    return this.#end;
  }

  /** Logprob lines of tokens that were not emitted yet. */
  get pendingLogprobs(): string[] {
    return this.#pending.flatMap(({ logprob }) => logprob ?? []);
  }

  isEnd(id: number): boolean {
    return !this.#options.request.ignoreEos && this.#options.endIds.includes(id);
  }

  /**
   * Appends a token.
   *
   * @param logprob a line to emit with it.
   */
  push(id: number, logprob?: string): void {
    this.tokens.push(id);
    this.counts.set(id, (this.counts.get(id) ?? 0) + 1);
    if (this.isEnd(id)) return this.#finish({ reason: 'stop' });
    const { text, stop, units } = this.#detokenizer.push(id);
    this.#pending.push({ id, offset: this.#units, logprob });
    this.#units += units;
    this.#text += text;
    if (stop !== undefined) {
      this.#pending = this.#pending.filter(({ offset }) => offset < this.#text.length);
      this.#end = { reason: 'stop', stop };
    } else if (this.tokens.length === this.#options.request.limit) this.finishLength();
  }

  /** Ends the text as an end token does. */
  finishStop(): void {
    this.#finish({ reason: 'stop' });
  }

  /** Ends the text as its limit does. */
  finishLength(): void {
    this.#finish({ reason: 'length' });
  }

  /** Returns the text not emitted yet; undefined if there is none, unless the text has ended with tokens left. */
  takeDelta(): RowDelta | undefined {
    const offset = this.#emittedUnits;
    const text = this.#text.slice(offset);
    if (text === '' && (this.#end === undefined || this.#pending.length === 0)) return undefined;
    const emitted = this.#emit();
    const logprobs = emitted.map(({ logprob }) => logprob).join('');
    const facts: TextPieceFacts = { ids: idsText(emitted.map(({ id }) => id)), ...(logprobs !== '' && { logprobs }) };
    return { type: 'delta', offset, text, done: this.#emittedTokens, facts: { ...facts } };
  }

  /**
   * Returns the block in progress, which follows the text.
   *
   * @param block token ids; −1 for masked ones.
   */
  snapshot(block: readonly number[], { calls, maskId }: { calls: number; maskId: number }): RowSnapshot {
    const detokenizer = this.#detokenizer.clone();
    let text = '';
    let stop: string | undefined;
    const shown: number[] = [];
    for (const id of block) {
      if (this.isEnd(id) || stop !== undefined) break;
      const chunk = id === -1 ? detokenizer.pushText(maskText) : detokenizer.push(id);
      shown.push(id === -1 ? maskId : id);
      text += chunk.text;
      ({ stop } = chunk);
    }
    if (stop === undefined) text += detokenizer.end();
    const done = this.tokens.length + block.filter((id) => id !== -1).length;
    return { type: 'snapshot', offset: this.#text.length, text, done, facts: { ids: idsText(shown), calls } };
  }

  /**
   * Appends the tokens of a final block, as `push` does, until the text ends.
   *
   * @param isLast true to end the text after them in any case.
   */
  settle(block: readonly number[], { calls, isLast }: { calls: number; isLast: boolean }): RowSnapshot {
    const offset = this.#text.length;
    for (const id of block) if (this.#end === undefined) this.push(id);
    if (isLast && this.#end === undefined) this.finishLength();
    const ids = idsText(this.#emit().map(({ id }) => id));
    const text = this.#text.slice(offset);
    return { type: 'snapshot', offset, text, done: this.#emittedTokens, facts: { ids, calls, settled: 1 } };
  }

  /** Marks text and tokens as emitted and returns the tokens; without those held back as a possible stop string. */
  #emit(): PendingToken[] {
    const isHeldBack = this.#end === undefined && this.#units > this.#text.length;
    const firstHeld = isHeldBack ? this.#pending.findIndex(({ offset }) => offset >= this.#text.length) : -1;
    const emitted = firstHeld === -1 ? this.#pending : this.#pending.slice(0, firstHeld);
    this.#emittedUnits = this.#text.length;
    this.#emittedTokens += emitted.length;
    this.#pending = this.#pending.slice(emitted.length);
    return emitted;
  }

  /** Returns true if an end token or a stop string in these tokens would end the text. */
  wouldEnd(ids: readonly number[]): boolean {
    const detokenizer = this.#detokenizer.clone();
    return ids.some((id) => this.isEnd(id) || detokenizer.push(id).stop !== undefined);
  }

  #finish(end: TextEnd): void {
    this.#text += this.#detokenizer.end();
    this.#end = end;
  }
}

function idsText(ids: readonly number[]): string {
  return ids.map((id) => `${id},`).join('');
}
