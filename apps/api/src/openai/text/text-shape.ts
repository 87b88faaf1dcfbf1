/** OpenAI's formats of texts, in answers and in chunks of a stream. */
import {
  type CallPiece,
  pieceView,
  type StoredTextInput,
  type TextOutputFacts,
  textUsage,
  type TokenLogprob,
  toolCallId,
  type ToolCallView,
} from '@darkroom/kinds';
import type { OutputInfo } from '@darkroom/core';
import type { AddedText } from './follow-texts.ts';

/** Differences between chat and completions. Methods that return undefined add no chunk. */
export interface TextShape {
  /** Prefix of our request id in `id`. */
  idPrefix: string;
  /** Values of the field `object` in an answer and in a chunk. */
  answerObject: string;
  chunkObject: string;
  /** Returns the chunk that opens a choice. `isCall`: the choice begins with a tool call. */
  openingPart(isCall: boolean): object | undefined;
  /** Returns a chunk with a part of the text. */
  textPart(text: string): object;
  /** Returns a chunk with a part of a tool call. */
  callPart(piece: Exclude<CallPiece, { type: 'text' }>, position: { id: string; index: number }): object | undefined;
  /** The chunk that ends a choice. */
  closingPart: object;
  /** Returns a choice with its full text and its tool calls. */
  fullChoice(text: string, calls: readonly ToolCallView[]): object;
  /** @param text the text of these tokens. @param offset its offset in the full text, in UTF-16 code units. */
  logprobs(tokens: readonly TokenLogprob[], text: string, offset: number): object;
}

export const chatShape: TextShape = {
  idPrefix: 'chatcmpl-',
  answerObject: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  openingPart: (isCall) => ({ delta: { role: 'assistant', content: isCall ? null : '' } }),
  textPart: (text) => ({ delta: { content: text } }),
  callPart(piece, position) {
    const { call: index } = piece;
    if (piece.type === 'called') return undefined;
    if (piece.type === 'arguments') return { delta: { tool_calls: [{ index, function: { arguments: piece.text } }] } };
    const id = toolCallId({ ...position, at: index });
    const begun = { index, id, type: 'function', function: { name: piece.name, arguments: '' } };
    return { delta: { tool_calls: [begun] } };
  },
  closingPart: { delta: {} },
  fullChoice(text, calls) {
    const content = text === '' && calls.length > 0 ? null : text;
    return { message: { role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }), refusal: null } };
  },
  logprobs: (tokens) => ({
    content: tokens.map(({ top, ...token }) => ({ ...token, top_logprobs: top })),
    refusal: null,
  }),
};

export const completionShape: TextShape = {
  idPrefix: 'cmpl-',
  answerObject: 'text_completion',
  chunkObject: 'text_completion',
  openingPart: () => undefined,
  textPart: (text) => ({ text }),
  // This route takes no tools.
  callPart: () => undefined,
  closingPart: { text: '' },
  fullChoice: (text) => ({ text }),
  logprobs(tokens, text, offset) {
    return {
      tokens: tokens.map(({ token }) => token),
      token_logprobs: tokens.map(({ logprob }) => logprob),
      // OpenAI's list always contains the sampled token, even if it is not among the most probable ones.
      top_logprobs: tokens.map(({ token, logprob, top }) =>
        Object.fromEntries([...top.map((other) => [other.token, other.logprob]), [token, logprob]]),
      ),
      text_offset: textOffsetsOf(tokens, text).map((at) => offset + at),
    };
  },
};

/** Returns the logprobs of a chunk; undefined if the client did not request them or they are no longer in the log. */
export function tokensOf(
  { input }: { input: unknown },
  { facts }: Pick<AddedText, 'facts'>,
): TokenLogprob[] | undefined {
  if ((input as StoredTextInput).logprobs === undefined) return undefined;
  return facts === undefined ? undefined : ((pieceView(facts).logprobs ?? []) as TokenLogprob[]);
}

/** Returns each token's offset in `text`, in UTF-16 code units. Partial characters and special tokens add no length. */
export function textOffsetsOf(tokens: readonly Pick<TokenLogprob, 'bytes'>[], text: string): number[] {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let at = 0;
  return tokens.map(({ bytes }) => {
    const offset = at;
    const decoded = decoder.decode(Uint8Array.from(bytes), { stream: true });
    if (text.startsWith(decoded, at)) at += decoded.length;
    return offset;
  });
}

/** Returns `tool_calls` if the text called tools and was not cut off: a cut text may contain an incomplete call. */
export function finishReasonOf(
  { finish_reason: reason }: Pick<TextOutputFacts, 'finish_reason'>,
  calls: number,
): string {
  return calls > 0 && reason === 'stop' ? 'tool_calls' : reason;
}

/** Sums the usage of all texts of a request. */
export function openaiUsage(outputs: readonly OutputInfo[]) {
  const { prompt_tokens, completion_tokens, total_tokens, cached_tokens, nfe } = textUsage(outputs);
  return { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details: { cached_tokens }, nfe };
}
