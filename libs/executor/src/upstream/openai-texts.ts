/** Texts by `/v1/chat/completions` and `/v1/completions`, as OpenAI's API reference has them. */
import type { RowEvent, RowOutput } from '@darkroom/core';
import type { TokenLogprob, UpstreamTextInput } from '@darkroom/kinds';
import { fieldOf, listOf, numberOf, textOf } from './fields.ts';
import { GrowingText, mostTextEventBytes, secretsOf, seedOf, tokenLogprob } from './text-pieces.ts';
import { errorIn, streamFailure, UpstreamError } from './upstream-error.ts';
import type { UpstreamHttp } from './upstream-http.ts';

export async function* runOpenaiText(
  http: UpstreamHttp,
  { model, input, index }: { model: string; input: UpstreamTextInput; index: number },
  signal: AbortSignal,
): AsyncGenerator<RowEvent, RowOutput, void> {
  const isChat = input.asked.messages !== undefined;
  const path = isChat ? '/v1/chat/completions' : '/v1/completions';
  const secrets = secretsOf(input);
  const answer = await http.post(path, bodyOf(input, { model, index, isChat }), { signal, secrets });
  if (answer.contentType !== 'text/event-stream')
    throw new UpstreamError(
      'unavailable',
      `${http.name} answers ${path} with ${answer.contentType || 'no type'}, expected text/event-stream`,
    );
  const text = new GrowingText(input);
  let end: { finish_reason: 'stop' | 'length'; stop?: string } | undefined;
  let usage: unknown;
  try {
    for await (const chunk of answer.events(mostTextEventBytes)) {
      const said = errorIn(chunk);
      if (said !== undefined) throw streamFailure(http.name, said, secrets);
      usage = fieldOf(chunk, 'usage') ?? usage;
      const [choice] = listOf(chunk, 'choices');
      const piece = isChat ? textOf(fieldOf(choice, 'delta'), 'content') : textOf(choice, 'text');
      yield* text.add(piece ?? '', logprobsOf(choice, input.logprobs), numberOf(usage, 'completion_tokens'));
      end = endOf(choice) ?? end;
    }
  } catch (error) {
    // Its text is there; only what it used up is not.
    if (end === undefined || signal.aborted) throw error;
  }
  if (end === undefined)
    throw new UpstreamError(
      'unavailable',
      `${http.name} ended a text without its last chunk, expected a finish_reason`,
    );
  const details = fieldOf(usage, 'prompt_tokens_details');
  return text.output({
    ...end,
    prompt_tokens: numberOf(usage, 'prompt_tokens') ?? 0,
    completion_tokens: numberOf(usage, 'completion_tokens') ?? text.done,
    cached_tokens: numberOf(details, 'cached_tokens') ?? 0,
  });
}

/** What was not asked for is the server's to choose. */
function bodyOf(
  input: UpstreamTextInput,
  { model, index, isChat }: { model: string; index: number; isChat: boolean },
): object {
  const { logprobs, top_logprobs, ...asked } = input.asked;
  const probabilities = isChat ? { logprobs, top_logprobs } : { logprobs: input.logprobs };
  return {
    model,
    ...asked,
    ...(logprobs === true && probabilities),
    seed: seedOf(input, index),
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** Why a text ended, as far as our readers know reasons; vLLM says which stop text it was. */
function endOf(choice: unknown): { finish_reason: 'stop' | 'length'; stop?: string } | undefined {
  const reason = textOf(choice, 'finish_reason');
  if (reason === undefined) return undefined;
  const stop = textOf(choice, 'stop_reason');
  return { finish_reason: reason === 'length' ? 'length' : 'stop', ...(stop !== undefined && { stop }) };
}

/** Undefined where nobody asked. A completion has lists beside each other, a chat has a list of tokens. */
function logprobsOf(choice: unknown, alternatives: number | undefined): TokenLogprob[] | undefined {
  const said = fieldOf(choice, 'logprobs');
  if (alternatives === undefined || typeof said !== 'object' || said === null) return undefined;
  if (fieldOf(said, 'content') !== undefined)
    return listOf(said, 'content').map((token) => tokenLogprob(token as object, alternatives));
  const tops = listOf(said, 'top_logprobs');
  const numbers = listOf(said, 'token_logprobs');
  return listOf(said, 'tokens').map((token, at) => {
    const others = Object.entries((tops[at] ?? {}) as Record<string, unknown>);
    const top_logprobs = others.map(([name, logprob]) => ({ token: name, logprob }));
    return tokenLogprob({ token, logprob: numbers[at], top_logprobs }, alternatives);
  });
}
