/** Views of text requests for polls, streams, webhooks and the list of models. */
import type { Metadata, OutputInfo, OutputProgress, RequestSnapshot } from '@darkroom/core';
import type { z } from 'zod';
import type { EventView, KindEvent, ResultViewOptions } from '../request/kind.ts';
import { readCalls } from './form/call-reader.ts';
import { withImageUrls } from './form/message-content.ts';
import { type ToolCallView, toolCallView } from './form/tool-call-view.ts';
import type { TextCard, TextInput, TextOutputFacts } from './form/text-input.ts';
import type { textModelShape, textRequestShape, textResultShape } from './text-view-shapes.ts';
import { isForUpstream, type UpstreamTextCard, type UpstreamTextInput } from './upstream-text.ts';

type View<Shape extends z.ZodRawShape> = z.infer<z.ZodObject<Shape>>;

/** A stored text input. The prompt is absent after the end if prompts are not retained. */
export type StoredTextInput = Omit<TextInput, 'prompt' | 'stop' | 'logitBias'> & Partial<TextInput>;

export function textOutputFacts(output: OutputInfo): TextOutputFacts {
  const { finish_reason, stop, prompt_tokens, completion_tokens, cached_tokens, calls } = output as OutputInfo &
    TextOutputFacts;
  return { finish_reason, ...(stop !== undefined && { stop }), prompt_tokens, completion_tokens, cached_tokens, calls };
}

/** Returns the usage of all texts together; the prompt is counted once. */
export function textUsage(outputs: readonly OutputInfo[]): View<typeof textResultShape>['usage'] {
  const facts = outputs.map((output) => textOutputFacts(output));
  const completion = facts.reduce((sum, { completion_tokens: tokens }) => sum + tokens, 0);
  const prompt = facts[0]?.prompt_tokens ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    cached_tokens: facts[0]?.cached_tokens ?? 0,
    nfe: facts.reduce((sum, { calls }) => sum + calls, 0),
  };
}

/** A text in a webhook: the text itself, or its URL. */
type WebhookText = { index: number } & ({ text: string } | { url: string; bytes: number });

/** Returns the result. `inlined` has the bytes of texts to include; absent if the response has the texts elsewhere. */
export function textResultView(
  id: string,
  outputs: readonly OutputInfo[],
  { inlined, urlOf = (path) => path }: ResultViewOptions = {},
): View<typeof textResultShape> & { texts?: WebhookText[] } {
  return {
    ...(inlined && {
      texts: outputs.map((output) => toWebhookText(urlOf(`/v1/predict/${id}`), output, inlined.get(output.index))),
    }),
    usage: textUsage(outputs),
    finish_reasons: outputs.map((output) => textOutputFacts(output).finish_reason),
  };
}

function toWebhookText(url: string, { index, bytes }: OutputInfo, data: Uint8Array | undefined): WebhookText {
  if (data !== undefined) return { index, text: new TextDecoder().decode(data) };
  return { index, url, bytes };
}

export function textProgressView({ index, done, total }: OutputProgress): {
  index: number;
  tokens: number;
  max_tokens?: number;
} {
  return { index, tokens: done, ...(total !== undefined && { max_tokens: total }) };
}

export function textEventView(_id: string, event: KindEvent): EventView {
  switch (event.type) {
    case 'progress':
    case 'preview':
      return { name: 'progress', data: textProgressView(event) };
    case 'delta':
    case 'snapshot': {
      const { index, offset, text, facts } = event;
      return { name: event.type, data: { index, offset, text, ...pieceView(facts) } };
    }
    case 'reset':
      return { name: 'reset', data: { index: event.index, offset: event.offset } };
    case 'output': {
      const { index, bytes } = event.output;
      return { name: 'text', data: { index, bytes, ...textOutputFacts(event.output) } };
    }
  }
}

/** Returns the fields of a text chunk other than its text. */
export function pieceView(facts: Metadata = {}): {
  token_ids?: number[];
  nfe?: number;
  logprobs?: unknown[];
} {
  const { ids, calls, logprobs } = facts;
  return {
    ...(typeof ids === 'string' && { token_ids: idsOf(ids) }),
    ...(typeof calls === 'number' && { nfe: calls }),
    ...(typeof logprobs === 'string' && { logprobs: logprobsOf(logprobs) }),
  };
}

/** Parses ids such as `12,7,`. */
function idsOf(ids: string): number[] {
  return ids.split(',').slice(0, -1).map(Number);
}

/** Parses one line of JSON per token. */
function logprobsOf(lines: string): unknown[] {
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line): unknown => JSON.parse(line));
}

export function textRequestView(
  { id, state, done, input, model, outputs }: RequestSnapshot,
  texts: readonly string[],
  { urlOf = (path) => path }: Pick<ResultViewOptions, 'urlOf'> = {},
): View<typeof textRequestShape> & Pick<View<typeof textResultShape>, 'usage'> {
  const stored = input as StoredTextInput | UpstreamTextInput;
  return {
    // After the end, includes tokens without text, such as the end token.
    tokens: state === 'succeeded' ? textUsage(outputs).completion_tokens : done,
    progress: state === 'succeeded' ? 1 : Math.min(1, done / (stored.n * stored.maxTokens)),
    seed: stored.seed,
    texts: texts.map((text, index) => ({ index, text, ...callsIn(id, { index, text }, stored) })),
    parameters: isForUpstream(stored)
      ? upstreamParameters(model, stored, (name) => urlOf(`/v1/predict/${id}/inputs/${name}`))
      : parametersOf(model, stored, (name) => urlOf(`/v1/predict/${id}/inputs/${name}`)),
    usage: usageSoFar(outputs, { done, input: stored }),
  };
}

/** Returns the usage of a request in any state; for unfinished texts, the tokens known so far. */
function usageSoFar(
  outputs: readonly OutputInfo[],
  { done, input }: { done: number; input: StoredTextInput | UpstreamTextInput },
): View<typeof textResultShape>['usage'] {
  const usage = textUsage(outputs);
  const known = isForUpstream(input) ? 0 : (input.prompt?.length ?? input.promptTokens ?? 0);
  const prompt = outputs.length > 0 ? usage.prompt_tokens : known;
  const completion = Math.max(usage.completion_tokens, done);
  return { ...usage, prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** Returns the tool calls in a text, if the request has tools. */
function callsIn(
  id: string,
  { index, text }: { index: number; text: string },
  input: StoredTextInput | UpstreamTextInput,
): { tool_calls?: ToolCallView[] } {
  const { callMarkup } = input;
  const calls = callMarkup === undefined ? [] : readCalls(callMarkup, text).calls;
  return calls.length === 0 ? {} : { tool_calls: calls.map((call, at) => toolCallView(call, { id, index, at })) };
}

/** Returns a body that reproduces the same texts. */
function parametersOf(
  model: string,
  input: StoredTextInput,
  inputUrl: (name: string) => string,
): View<typeof textRequestShape>['parameters'] {
  const { logprobs, maxCalls, confidenceThreshold, tokensPerCall, messages } = input;
  return {
    model,
    ...(messages && { messages: withImageUrls(messages, inputUrl) }),
    prompt: input.prompt === undefined || messages !== undefined ? null : [...input.prompt],
    n: input.n,
    max_tokens: input.maxTokens,
    temperature: input.temperature,
    top_p: input.topP,
    top_k: input.topK,
    min_p: input.minP,
    presence_penalty: input.presencePenalty,
    frequency_penalty: input.frequencyPenalty,
    logit_bias: { ...input.logitBias },
    ...(logprobs !== undefined && { logprobs: true, top_logprobs: logprobs }),
    seed: input.seed,
    stop: [...(input.stop ?? [])],
    ignore_eos: input.ignoreEos,
    ...input.form,
    ...(maxCalls !== undefined && { max_nfe: maxCalls }),
    ...(confidenceThreshold !== undefined && { confidence_threshold: confidenceThreshold }),
    ...(tokensPerCall !== undefined && { tokens_per_step: tokensPerCall }),
  };
}

/** Returns the fields that were sent; the upstream server chose the others. */
function upstreamParameters(
  model: string,
  { params, n, seed }: UpstreamTextInput,
  inputUrl: (name: string) => string,
): View<typeof textRequestShape>['parameters'] {
  const { prompt = null, messages, ...others } = params;
  return { model, ...others, ...(messages && { messages: withImageUrls(messages, inputUrl) }), prompt, n, seed };
}

export function textModelView(card: TextCard | UpstreamTextCard): View<typeof textModelShape> {
  const { block, deterministic, maxModelTokens, vocabularySize } = card;
  const images = card.codec === undefined ? undefined : card.images;
  const takes = card.codec === undefined ? card.takes : images === undefined ? [] : ['image' as const];
  return {
    mode: card.mode,
    ...(maxModelTokens !== undefined && { max_model_len: maxModelTokens }),
    ...(vocabularySize !== undefined && { vocabulary_size: vocabularySize }),
    has_chat_template: card.hasChatTemplate,
    ...(takes !== undefined && { takes: [...takes] }),
    ...(images && { images: { min: images.minImages, max: images.maxImages } }),
    ...(card.hasTools !== undefined && { has_tools: card.hasTools }),
    deterministic: deterministic.is,
    ...(!deterministic.is && { deterministic_reason: deterministic.reason }),
    ...(block !== undefined && { block_size: block.size }),
    ...(card.codec !== undefined && { defaults: defaultsView(card) }),
  };
}

function defaultsView({ defaults, block }: TextCard): NonNullable<View<typeof textModelShape>['defaults']> {
  return {
    max_tokens: defaults.maxTokens,
    temperature: defaults.temperature,
    top_p: defaults.topP,
    top_k: defaults.topK,
    ...(block !== undefined && { confidence_threshold: block.confidenceThreshold }),
  };
}
