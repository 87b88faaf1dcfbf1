import type { RowEvent } from '@darkroom/core';
import { IncrementalDetokenizer, maskText, type TextCodec, type TextPieceFacts } from '@darkroom/kinds';
import type { TextRequest } from './text-request.ts';

type RowDelta = Extract<RowEvent, { type: 'delta' }>;
type RowSnapshot = Extract<RowEvent, { type: 'snapshot' }>;

/** Why a text has ended. */
export type TextEnd = { readonly reason: 'stop'; readonly stop?: string } | { readonly reason: 'length' };

export interface WrittenTextOptions {
  request: Pick<TextRequest, 'stop' | 'ignoreEos' | 'limit'>;
  codec: TextCodec;
  endIds: readonly number[];
}

/** A token that is written, and of which nothing is said yet. */
interface UnsaidToken {
  readonly id: number;
  /** Where its text begins, in UTF-16 code units. */
  readonly offset: number;
  readonly logprob: string | undefined;
}

/** What a row has written: tokens, their text, and what of it has not been said. */
export class WrittenText {
  readonly tokens: number[] = [];
  /** How often each token was written. */
  readonly counts = new Map<number, number>();
  readonly #options: WrittenTextOptions;
  #detokenizer: IncrementalDetokenizer;
  #unsaid: UnsaidToken[] = [];
  #text = '';
  /** Length of what is said, and tokens of it. */
  #said = 0;
  #saidTokens = 0;
  /** Length of the text with what is held back. */
  #units = 0;
  #end: TextEnd | undefined;

  constructor(options: WrittenTextOptions) {
    this.#options = options;
    this.#detokenizer = new IncrementalDetokenizer(options.codec, options.request.stop);
  }

  /** All of it but what is held back. */
  get text(): string {
    return this.#text;
  }

  /** undefined while it goes on. */
  get end(): TextEnd | undefined {
    return this.#end;
  }

  /** What was given with tokens of which nothing is said yet. */
  get unsaidLogprobs(): string[] {
    return this.#unsaid.flatMap(({ logprob }) => logprob ?? []);
  }

  isEnd(id: number): boolean {
    return !this.#options.request.ignoreEos && this.#options.endIds.includes(id);
  }

  /**
   * Writes a token.
   *
   * @param logprob a line to be said with it.
   */
  push(id: number, logprob?: string): void {
    this.tokens.push(id);
    this.counts.set(id, (this.counts.get(id) ?? 0) + 1);
    if (this.isEnd(id)) return this.#finish({ reason: 'stop' });
    const { text, stop, units } = this.#detokenizer.push(id);
    this.#unsaid.push({ id, offset: this.#units, logprob });
    this.#units += units;
    this.#text += text;
    if (stop !== undefined) {
      this.#unsaid = this.#unsaid.filter(({ offset }) => offset < this.#text.length);
      this.#end = { reason: 'stop', stop };
    } else if (this.tokens.length === this.#options.request.limit) this.finishLength();
  }

  /** Ends it where it stands. */
  finishLength(): void {
    this.#finish({ reason: 'length' });
  }

  /** What was not said; undefined if there is no text in it, as long as more may come. */
  takeDelta(): RowDelta | undefined {
    const offset = this.#said;
    const text = this.#text.slice(offset);
    if (text === '' && (this.#end === undefined || this.#unsaid.length === 0)) return undefined;
    const said = this.#say();
    const logprobs = said.map(({ logprob }) => logprob).join('');
    const facts: TextPieceFacts = { ids: idsText(said.map(({ id }) => id)), ...(logprobs !== '' && { logprobs }) };
    return { type: 'delta', offset, text, done: this.#saidTokens, facts: { ...facts } };
  }

  /**
   * What stands after this text in a block that is worked on.
   *
   * @param block ids; −1 for those that are not known yet.
   */
  snapshot(block: readonly number[], { calls, maskId }: { calls: number; maskId: number }): RowSnapshot {
    const detokenizer = this.#detokenizer.clone();
    let text = '';
    let stop: string | undefined;
    const shown: number[] = [];
    for (const id of block) {
      if (this.isEnd(id) || stop !== undefined) break;
      const piece = id === -1 ? detokenizer.pushText(maskText) : detokenizer.push(id);
      shown.push(id === -1 ? maskId : id);
      text += piece.text;
      ({ stop } = piece);
    }
    if (stop === undefined) text += detokenizer.end();
    const done = this.tokens.length + block.filter((id) => id !== -1).length;
    return { type: 'snapshot', offset: this.#text.length, text, done, facts: { ids: idsText(shown), calls } };
  }

  /**
   * The tokens of a block that stays, after those before: as `push`, until the text ends.
   *
   * @param isLast whether it ends with them in any case.
   */
  settle(block: readonly number[], { calls, isLast }: { calls: number; isLast: boolean }): RowSnapshot {
    const offset = this.#text.length;
    for (const id of block) if (this.#end === undefined) this.push(id);
    if (isLast && this.#end === undefined) this.finishLength();
    const ids = idsText(this.#say().map(({ id }) => id));
    const text = this.#text.slice(offset);
    return { type: 'snapshot', offset, text, done: this.#saidTokens, facts: { ids, calls, settled: 1 } };
  }

  /** Tokens of the text that is said now: not those of which all is held back, as they may be of a stop text. */
  #say(): UnsaidToken[] {
    const isHeldBack = this.#end === undefined && this.#units > this.#text.length;
    const held = isHeldBack ? this.#unsaid.findIndex(({ offset }) => offset >= this.#text.length) : -1;
    const said = held === -1 ? this.#unsaid : this.#unsaid.slice(0, held);
    this.#said = this.#text.length;
    this.#saidTokens += said.length;
    this.#unsaid = this.#unsaid.slice(said.length);
    return said;
  }

  /** Whether an end token or a stop text would end it, if these came next. */
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
