/** Texts by `/v1/chat/completions` and `/v1/completions`, as OpenAI's API reference has them. */
import type { RowOutput } from '@darkroom/core';
import type { TextAsk, TokenLogprob, UpstreamTextInput } from '@darkroom/kinds';
import type { Said } from '../calls/caller.ts';
import { CallWriter } from './call-writer.ts';
import { fieldOf, listOf, numberOf, textOf } from './fields.ts';
import { bareSchema, GrowingText, mostTextEventBytes, secretsOf, seedOf, tokenLogprob } from './text-pieces.ts';
import { errorIn, streamFailure, unavailable } from './upstream-error.ts';
import type { UpstreamAnswer, UpstreamHttp } from './upstream-http.ts';

/** What such servers differ in. */
export interface TextDialect {
  /** Whether a `prompt` goes with the schema of its answer alone: llama.cpp passes over a `response_format` there. */
  hasBareSchema: boolean;
}

interface OpenaiTextAsk {
  model: string;
  input: UpstreamTextInput;
  index: number;
  dialect: TextDialect;
}

export async function* runOpenaiText(
  http: UpstreamHttp,
  ask: OpenaiTextAsk,
  signal: AbortSignal,
): AsyncGenerator<Said, RowOutput, void> {
  const { input } = ask;
  const isChat = input.asked.messages !== undefined;
  const secrets = secretsOf(input);
  const answer = await askFor(http, ask, { isChat, signal, secrets });
  const text = new GrowingText(input);
  const calls = new CallWriter(input.callMarkup);
  let end: { finish_reason: 'stop' | 'length'; stop?: string } | undefined;
  let usage: unknown;
  try {
    for await (const chunk of answer.events(mostTextEventBytes)) {
      const said = errorIn(chunk);
      if (said !== undefined) throw streamFailure(said, secrets);
      usage = fieldOf(chunk, 'usage') ?? usage;
      const [choice] = listOf(chunk, 'choices');
      const piece = isChat ? calls.push(fieldOf(choice, 'delta')) : textOf(choice, 'text');
      yield* text.add(piece ?? '', logprobsOf(choice, input.logprobs), numberOf(usage, 'completion_tokens'));
      const ended = endOf(choice);
      if (ended === undefined) continue;
      end = ended;
      // Only what it used up may follow.
      answer.endSoon();
    }
  } catch (error) {
    // Its text is there; only what it used up is not.
    if (end === undefined || signal.aborted) throw error;
  }
  if (end === undefined) throw unavailable('ended a text without its last chunk, expected a finish_reason');
  yield* text.add(calls.end(), [], text.done);
  yield* text.progress();
  const details = fieldOf(usage, 'prompt_tokens_details');
  return text.output({
    ...end,
    prompt_tokens: numberOf(usage, 'prompt_tokens') ?? 0,
    completion_tokens: numberOf(usage, 'completion_tokens') ?? text.done,
    cached_tokens: numberOf(details, 'cached_tokens') ?? 0,
  });
}

async function askFor(
  http: UpstreamHttp,
  ask: OpenaiTextAsk,
  { isChat, ...options }: { isChat: boolean; signal: AbortSignal; secrets: readonly string[] },
): Promise<UpstreamAnswer> {
  const path = isChat ? '/v1/chat/completions' : '/v1/completions';
  const answer = await http.post(path, bodyOf(ask, isChat), options);
  if (answer.contentType === 'text/event-stream') return answer;
  const came = answer.contentType || 'no type';
  throw unavailable(`answers ${path} with ${came}, expected text/event-stream`);
}

/** What was not asked for is the server's to choose. */
function bodyOf({ model, input, index, dialect }: OpenaiTextAsk, isChat: boolean): object {
  const { logprobs, top_logprobs, messages, response_format, ...asked } = input.asked;
  const probabilities = isChat ? { logprobs, top_logprobs } : { logprobs: input.logprobs };
  return {
    model,
    ...asked,
    ...(messages && { messages: messages.map(withJsonArguments) }),
    ...(dialect.hasBareSchema && !isChat ? bareSchema(response_format) : { response_format }),
    ...(logprobs === true && probabilities),
    seed: seedOf(input, index),
    stream: true,
    stream_options: { include_usage: true },
  };
}

/** Arguments of calls may come here as objects; there they are JSON in a text. */
function withJsonArguments(message: NonNullable<TextAsk['messages']>[number]): object {
  const { tool_calls: calls } = message;
  if (calls == null) return message;
  const tool_calls = calls.map((call) => {
    const { arguments: given } = call.function;
    const json = typeof given === 'string' ? given : JSON.stringify(given);
    return { ...call, function: { ...call.function, arguments: json } };
  });
  return { ...message, tool_calls };
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
