/** Texts over `/v1/chat/completions` and `/v1/completions`, as in OpenAI's API reference. */
import type { RowOutput } from '@darkroom/core';
import type { UpstreamTextParams, TokenLogprob, UpstreamTextInput } from '@darkroom/kinds';
import type { CallEvent } from '../calls/backend-client.ts';
import { CallWriter } from './call-writer.ts';
import { fieldOf, listProperty, numberProperty, textProperty } from './http/fields.ts';
import {
  bareSchema,
  GrowingText,
  llamaSeed,
  maxTextEventBytes,
  secretsOf,
  seedOfText,
  toTokenLogprob,
} from './text-chunks.ts';
import { unavailable } from '../calls/backend-error.ts';
import { errorIn, streamFailure } from './http/upstream-error.ts';
import type { UpstreamResponse, UpstreamHttp } from './http/upstream-http.ts';

/** Differences between OpenAI-compatible servers. */
export interface TextDialect {
  /** Send the bare schema with a `prompt`, since /v1/completions ignores `response_format`, and no random seed. */
  isLlamaCpp: boolean;
}

interface OpenaiTextCall {
  model: string;
  input: UpstreamTextInput;
  index: number;
  dialect: TextDialect;
}

export async function* runOpenaiText(
  http: UpstreamHttp,
  call: OpenaiTextCall,
  signal: AbortSignal,
): AsyncGenerator<CallEvent, RowOutput, void> {
  const { input } = call;
  const isChat = input.params.messages !== undefined;
  const secrets = secretsOf(input);
  const answer = await postText(http, call, { isChat, signal, secrets });
  const text = new GrowingText(input);
  const calls = new CallWriter(input.callMarkup);
  let end: { finish_reason: 'stop' | 'length'; stop?: string } | undefined;
  let usage: unknown;
  try {
    for await (const chunk of answer.events(maxTextEventBytes)) {
      const streamError = errorIn(chunk);
      if (streamError !== undefined) throw streamFailure(streamError, secrets);
      usage = fieldOf(chunk, 'usage') ?? usage;
      const [choice] = listProperty(chunk, 'choices');
      const chunkText = isChat ? calls.push(fieldOf(choice, 'delta')) : textProperty(choice, 'text');
      yield* text.add(chunkText ?? '', logprobsOf(choice, input.logprobs), numberProperty(usage, 'completion_tokens'));
      const ended = endOf(choice);
      if (ended === undefined) continue;
      end = ended;
      // Only the usage may follow.
      answer.endSoon();
    }
  } catch (error) {
    // The text is complete; only the usage is missing.
    if (end === undefined || signal.aborted) throw error;
  }
  if (end === undefined) throw unavailable('ended a text without its last chunk, expected a finish_reason');
  yield* text.add(calls.end(), [], text.done);
  yield* text.progress();
  const details = fieldOf(usage, 'prompt_tokens_details');
  return text.output({
    ...end,
    prompt_tokens: numberProperty(usage, 'prompt_tokens') ?? 0,
    completion_tokens: numberProperty(usage, 'completion_tokens') ?? text.done,
    cached_tokens: numberProperty(details, 'cached_tokens') ?? 0,
  });
}

async function postText(
  http: UpstreamHttp,
  call: OpenaiTextCall,
  { isChat, ...options }: { isChat: boolean; signal: AbortSignal; secrets: readonly string[] },
): Promise<UpstreamResponse> {
  const path = isChat ? '/v1/chat/completions' : '/v1/completions';
  const answer = await http.post(path, bodyOf(call, isChat), options);
  if (answer.contentType === 'text/event-stream') return answer;
  const contentType = answer.contentType || 'no type';
  throw unavailable(`answers ${path} with ${contentType}, expected text/event-stream`);
}

/** Builds the request body; the server's defaults apply to fields that the client did not send. */
function bodyOf({ model, input, index, dialect }: OpenaiTextCall, isChat: boolean): object {
  const { logprobs, top_logprobs, messages, response_format, ...others } = input.params;
  const probabilities = isChat ? { logprobs, top_logprobs } : { logprobs: input.logprobs };
  return {
    model,
    ...others,
    ...(dialect.isLlamaCpp && isChat && llamaTools(input.params)),
    ...(messages && { messages: messages.map(withJsonArguments) }),
    ...(dialect.isLlamaCpp && !isChat ? bareSchema(response_format) : { response_format }),
    ...(logprobs === true && probabilities),
    seed: dialect.isLlamaCpp ? llamaSeed(input, index) : seedOfText(input, index),
    stream: true,
    stream_options: { include_usage: true },
  };
}

/**
 * Returns the fields of tools as llama.cpp reads them: it ignores a `tool_choice` that names a tool, and calls of
 * several tools depend on its template unless the request asks for them.
 */
function llamaTools({ tools, tool_choice: choice, parallel_tool_calls: isParallel }: UpstreamTextParams): object {
  if (typeof choice !== 'object' || choice === null)
    return tools === undefined || tools === null ? {} : { parallel_tool_calls: isParallel ?? true };
  const named = tools?.filter(({ function: { name } }) => name === choice.function.name);
  return { tools: named, tool_choice: 'required', parallel_tool_calls: false };
}

/** Converts arguments of tool calls to JSON strings, as the server expects; our clients may also send objects. */
function withJsonArguments(message: NonNullable<UpstreamTextParams['messages']>[number]): object {
  const { tool_calls: calls } = message;
  if (calls == null) return message;
  const tool_calls = calls.map((call) => {
    const { arguments: given } = call.function;
    const json = typeof given === 'string' ? given : JSON.stringify(given);
    return { ...call, function: { ...call.function, arguments: json } };
  });
  return { ...message, tool_calls };
}

/** Maps the finish reason to ours; vLLM also reports the stop string. */
function endOf(choice: unknown): { finish_reason: 'stop' | 'length'; stop?: string } | undefined {
  const reason = textProperty(choice, 'finish_reason');
  if (reason === undefined) return undefined;
  const stop = textProperty(choice, 'stop_reason');
  return { finish_reason: reason === 'length' ? 'length' : 'stop', ...(stop !== undefined && { stop }) };
}

/** Returns undefined if not requested. Completions have parallel lists, chats a list of tokens. */
function logprobsOf(choice: unknown, alternatives: number | undefined): TokenLogprob[] | undefined {
  const logprobs = fieldOf(choice, 'logprobs');
  if (alternatives === undefined || typeof logprobs !== 'object' || logprobs === null) return undefined;
  if (fieldOf(logprobs, 'content') !== undefined)
    return listProperty(logprobs, 'content').map((token) => toTokenLogprob(token as object, alternatives));
  const tops = listProperty(logprobs, 'top_logprobs');
  const numbers = listProperty(logprobs, 'token_logprobs');
  return listProperty(logprobs, 'tokens').map((token, at) => {
    const others = Object.entries((tops[at] ?? {}) as Record<string, unknown>);
    const top_logprobs = others.map(([name, logprob]) => ({ token: name, logprob }));
    return toTokenLogprob({ token, logprob: numbers[at], top_logprobs }, alternatives);
  });
}
