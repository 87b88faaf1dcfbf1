/** A text in the writing as OpenAI's chunks. */
import type { OutputInfo } from '@darkroom/core';
import { type CallPiece, CallReader, type TextInput, textOutputFacts, type TokenLogprob } from '@darkroom/kinds';
import { finishReasonOf, type TextShape } from './text-shape.ts';

/** What a chunk says of a choice. */
export interface ChoicePart {
  part: object;
  logprobs: object | null;
  finish_reason: string | null;
}

/** Makes the chunks of one choice. */
export class ChoiceChunks {
  readonly #shape: TextShape;
  readonly #place: { id: string; index: number };
  readonly #reader: CallReader | undefined;
  /** UTF-16 code units by now. */
  #length = 0;
  #hasBegun = false;

  constructor(shape: TextShape, { id, input, index }: { id: string; input: unknown; index: number }) {
    const { callMarkup } = input as Pick<TextInput, 'callMarkup'>;
    this.#shape = shape;
    this.#place = { id, index };
    this.#reader = callMarkup && new CallReader(callMarkup);
  }

  /** @param tokens of the text; undefined where nothing is said of them. */
  add(text: string, tokens: readonly TokenLogprob[] | undefined): ChoicePart[] {
    const hasTokens = (tokens ?? []).length > 0;
    if (text === '' && !hasTokens) return [];
    const parts = this.#reader === undefined ? [this.#shape.piece(text)] : this.#partsOf(this.#reader.push(text));
    // Text that is held back, and may come to be a call.
    if (parts.length === 0 && hasTokens) parts.push(this.#shape.piece(''));
    const logprobs = tokens === undefined ? null : this.#shape.logprobs(tokens, text, this.#length);
    this.#length += text.length;
    return [
      ...this.#begin(),
      ...parts.map((part, at) => ({ part, logprobs: at === 0 ? logprobs : null, finish_reason: null })),
    ];
  }

  end(output: OutputInfo): ChoicePart[] {
    const rest = this.#partsOf(this.#reader?.end() ?? []).map((part) => ({
      part,
      logprobs: null,
      finish_reason: null,
    }));
    const finish_reason = finishReasonOf(textOutputFacts(output), this.#reader?.calls ?? 0);
    return [...this.#begin(), ...rest, { part: this.#shape.ended, logprobs: null, finish_reason }];
  }

  #begin(): ChoicePart[] {
    const { begun } = this.#shape;
    if (this.#hasBegun || begun === undefined) return [];
    this.#hasBegun = true;
    return [{ part: begun, logprobs: null, finish_reason: null }];
  }

  #partsOf(pieces: readonly CallPiece[]): object[] {
    return pieces.flatMap((piece) =>
      piece.type === 'text' ? [this.#shape.piece(piece.text)] : (this.#shape.call(piece, this.#place) ?? []),
    );
  }
}
