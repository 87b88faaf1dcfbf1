/** What texts look like to OpenAI's clients: answers, and the chunks of a stream. */
import {
  type CallPiece,
  type TextOutputFacts,
  textUsage,
  type TokenLogprob,
  toolCallId,
  type ToolCallView,
} from '@darkroom/kinds';
import type { OutputInfo } from '@darkroom/core';

/** What differs between the two routes. */
export interface TextShape {
  /** Before our id in `id`. */
  idPrefix: string;
  /** `object` of an answer, and of a chunk. */
  answerObject: string;
  chunkObject: string;
  /** Of a choice before its first piece; undefined where nothing is said then. */
  begun: object | undefined;
  /** Of a choice with a piece of its text. */
  piece(text: string): object;
  /** Of a choice with a piece of a call of a tool; undefined where nothing is said. */
  call(piece: Exclude<CallPiece, { type: 'text' }>, place: { id: string; index: number }): object | undefined;
  /** Of a choice at its end. */
  ended: object;
  /** Of a choice with all of its text, and the calls that stood in it. */
  whole(text: string, calls: readonly ToolCallView[]): object;
  /** `text`: of these tokens. `offset`: where it begins in the whole, in UTF-16 code units. */
  logprobs(tokens: readonly TokenLogprob[], text: string, offset: number): object;
}

export const chatShape: TextShape = {
  idPrefix: 'chatcmpl-',
  answerObject: 'chat.completion',
  chunkObject: 'chat.completion.chunk',
  begun: { delta: { role: 'assistant', content: '' } },
  piece: (text) => ({ delta: { content: text } }),
  call(piece, place) {
    const { call: index } = piece;
    if (piece.type === 'called') return undefined;
    if (piece.type === 'arguments') return { delta: { tool_calls: [{ index, function: { arguments: piece.text } }] } };
    const id = toolCallId({ ...place, at: index });
    const begun = { index, id, type: 'function', function: { name: piece.name, arguments: '' } };
    return { delta: { tool_calls: [begun] } };
  },
  ended: { delta: {} },
  whole(text, calls) {
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
  begun: undefined,
  piece: (text) => ({ text }),
  // Prompts without messages have no tools.
  call: () => undefined,
  ended: { text: '' },
  whole: (text) => ({ text }),
  logprobs(tokens, text, offset) {
    return {
      tokens: tokens.map(({ token }) => token),
      token_logprobs: tokens.map(({ logprob }) => logprob),
      // The one that was taken is among them, however improbable it was.
      top_logprobs: tokens.map(({ token, logprob, top }) =>
        Object.fromEntries([...top.map((other) => [other.token, other.logprob]), [token, logprob]]),
      ),
      text_offset: beginningsOf(tokens, text).map((at) => offset + at),
    };
  },
};

/** Where tokens begin in their text, in UTF-16 code units. A part of a character and a special token bring no text. */
function beginningsOf(tokens: readonly TokenLogprob[], text: string): number[] {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let at = 0;
  return tokens.map(({ bytes }) => {
    const begins = at;
    const brought = decoder.decode(Uint8Array.from(bytes), { stream: true });
    if (text.startsWith(brought, at)) at += brought.length;
    return begins;
  });
}

/** Who calls a tool waits for what it gives; who was cut has called none for sure. */
export function finishReasonOf(
  { finish_reason: reason }: Pick<TextOutputFacts, 'finish_reason'>,
  calls: number,
): string {
  return calls > 0 && reason === 'stop' ? 'tool_calls' : reason;
}

/** Of all texts of a request. */
export function openaiUsage(outputs: readonly OutputInfo[]) {
  const { prompt_tokens, completion_tokens, total_tokens, cached_tokens, nfe } = textUsage(outputs);
  return { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details: { cached_tokens }, nfe };
}
