/** Converts a streamed text to OpenAI's chunks. */
import type { OutputInfo } from '@darkroom/core';
import { type CallPiece, CallReader, type TextInput, textOutputFacts, type TokenLogprob } from '@darkroom/kinds';
import { finishReasonOf, type TextShape } from './text-shape.ts';

/** Content of a chunk for one choice. */
export interface ChoicePart {
  part: object;
  logprobs: object | null;
  finish_reason: string | null;
}

/** Builds the chunks of one choice. */
export class ChoiceChunks {
  readonly #shape: TextShape;
  readonly #position: { id: string; index: number };
  readonly #reader: CallReader | undefined;
  /** Text that may become a tool call, with its tokens. Not emitted until the reader has decided. */
  #pending: { text: string; tokens: TokenLogprob[] } = { text: '', tokens: [] };
  /** UTF-16 code units that were emitted. */
  #length = 0;
  #isOpen = false;

  constructor(shape: TextShape, { id, input, index }: { id: string; input: unknown; index: number }) {
    const { callMarkup } = input as Pick<TextInput, 'callMarkup'>;
    this.#shape = shape;
    this.#position = { id, index };
    this.#reader = callMarkup && new CallReader(callMarkup);
  }

  /** @param tokens the tokens of the text; undefined if logprobs are not requested or not available. */
  add(text: string, tokens: readonly TokenLogprob[] | undefined): ChoicePart[] {
    if (text === '' && (tokens ?? []).length === 0) return [];
    const pieces: CallPiece[] = this.#reader === undefined ? [{ type: 'text', text }] : this.#reader.push(text);
    this.#pending = { text: this.#pending.text + text, tokens: [...this.#pending.tokens, ...(tokens ?? [])] };
    const parts = this.#partsOf(pieces);
    if (parts.length === 0) return [];
    return [...this.#open(pieces[0]?.type === 'call'), ...this.#withLogprobs(parts, tokens !== undefined)];
  }

  end(output: OutputInfo): ChoicePart[] {
    const parts = this.#partsOf(this.#reader?.end() ?? []);
    const hasTokens = this.#pending.tokens.length > 0;
    // Emit the logprobs of the tokens of a call's markup with an empty text.
    if (parts.length === 0 && hasTokens) parts.push(this.#shape.textPart(''));
    const finish_reason = finishReasonOf(textOutputFacts(output), this.#reader?.calls ?? 0);
    return [
      ...this.#open(),
      ...this.#withLogprobs(parts, hasTokens),
      { part: this.#shape.closingPart, logprobs: null, finish_reason },
    ];
  }

  /** Adds the logprobs of all pending tokens to the first part. */
  #withLogprobs(parts: readonly object[], hasTokens: boolean): ChoicePart[] {
    const { text, tokens } = this.#pending;
    const logprobs = hasTokens ? this.#shape.logprobs(tokens, text, this.#length) : null;
    this.#pending = { text: '', tokens: [] };
    this.#length += text.length;
    return parts.map((part, at) => ({ part, logprobs: at === 0 ? logprobs : null, finish_reason: null }));
  }

  #open(isCall = false): ChoicePart[] {
    const opening = this.#shape.openingPart(isCall);
    if (this.#isOpen || opening === undefined) return [];
    this.#isOpen = true;
    return [{ part: opening, logprobs: null, finish_reason: null }];
  }

  #partsOf(pieces: readonly CallPiece[]): object[] {
    return pieces.flatMap((piece) =>
      piece.type === 'text' ? [this.#shape.textPart(piece.text)] : (this.#shape.callPart(piece, this.#position) ?? []),
    );
  }
}
