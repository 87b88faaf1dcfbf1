/**
 * llama.cpp's native API: `/health`, `/props` and `/completion`, as its server's README describes it. Requests with
 * tools or images go to `/v1/chat/completions`, which restricts calls to the tools and their schemas, and reads images.
 */
import type { RowOutput } from '@darkroom/core';
import {
  chatMessagesOf,
  type ChatTemplate,
  createChatTemplate,
  toolsInUse,
  type UpstreamTextCard,
  type UpstreamTextInput,
  writtenCalls,
} from '@darkroom/kinds';
import type { CallEvent } from '../calls/backend-client.ts';
import { withInlineImages } from '../calls/inline-images.ts';
import { fieldOf, listProperty, numberProperty, textProperty } from './http/fields.ts';
import { runOpenaiText } from './openai-texts.ts';
import { bareSchema, GrowingText, llamaSeed, maxTextEventBytes, secretsOf, toTokenLogprob } from './text-chunks.ts';
import type { UpstreamHttp } from './http/upstream-http.ts';
import { unavailable, UpstreamError } from '../calls/backend-error.ts';
import { errorIn, streamFailure } from './http/upstream-error.ts';
import type { UpstreamCall, UpstreamInfo, UpstreamProtocol, UpstreamProtocolOptions } from './upstream-protocol.ts';

export const createLlamaCpp = (options: UpstreamProtocolOptions): UpstreamProtocol => new LlamaCpp(options);

class LlamaCpp implements UpstreamProtocol {
  readonly #http: UpstreamHttp;
  readonly #model: string;
  readonly #created = Math.floor(Date.now() / 1000);
  #template: ChatTemplate | undefined;
  #bos: string | undefined;

  constructor({ http, model }: UpstreamProtocolOptions) {
    this.#http = http;
    this.#model = model;
  }

  async describe(signal: AbortSignal): Promise<UpstreamInfo> {
    await this.check(signal);
    const props = await this.#http.get('/props', signal);
    const slots = numberProperty(props, 'total_slots');
    const maxModelTokens = numberProperty(fieldOf(props, 'default_generation_settings'), 'n_ctx');
    if (slots === undefined || slots < 1 || maxModelTokens === undefined)
      throw wrongServer('/props without total_slots and n_ctx');
    this.#bos = textProperty(props, 'bos_token');
    this.#template = templateOf(props);
    const written = this.#template?.calls ?? { reason: 'it has no template for messages' };
    const calls = 'markup' in written ? { markup: writtenCalls } : written;
    const card: UpstreamTextCard = {
      id: this.#model,
      created: this.#created,
      ownedBy: 'llama.cpp',
      kind: 'text',
      pipeline: 'llama.cpp',
      mode: 'autoregressive',
      maxModelTokens,
      takes: fieldOf(fieldOf(props, 'modalities'), 'vision') === true ? ['image'] : [],
      hasChatTemplate: this.#template !== undefined,
      hasTools: 'markup' in calls,
      calls,
      takesGrammar: true,
      takesFormatOfPrompt: true,
      deterministic: { is: false, reason: 'another server runs it' },
    };
    return { card, slots };
  }

  async check(signal: AbortSignal): Promise<void> {
    const health = await this.#http.get('/health', signal);
    if (textProperty(health, 'status') === undefined) throw wrongServer('/health without status');
  }

  run({ input, index, attachments }: UpstreamCall, signal: AbortSignal): AsyncGenerator<CallEvent, RowOutput, void> {
    const textInput = withInlineImages(input as UpstreamTextInput, attachments);
    if (toolsInUse(textInput.params) === undefined && textInput.images === undefined)
      return this.#complete(textInput, index, signal);
    const call = { model: this.#model, input: textInput, index, dialect: { isLlamaCpp: true } };
    return runOpenaiText(this.#http, call, signal);
  }

  async *#complete(
    textInput: UpstreamTextInput,
    index: number,
    signal: AbortSignal,
  ): AsyncGenerator<CallEvent, RowOutput, void> {
    const body = {
      ...samplingOf(textInput, index),
      prompt: promptOf(textInput, this.#template, this.#bos),
      stream: true,
    };
    const secrets = secretsOf(textInput);
    const answer = await this.#http.post('/completion', body, { signal, secrets });
    const text = new GrowingText(textInput);
    for await (const chunk of answer.events(maxTextEventBytes)) {
      const streamError = errorIn(chunk);
      if (streamError !== undefined) throw streamFailure(streamError, secrets);
      const probabilities = listProperty(chunk, 'completion_probabilities');
      const tokens = probabilities.map((each) => toTokenLogprob(each as object, textInput.logprobs ?? 0));
      yield* text.add(textProperty(chunk, 'content') ?? '', tokens, numberProperty(chunk, 'tokens_predicted'));
      if (fieldOf(chunk, 'stop') !== true) continue;
      yield* text.progress();
      return text.output(factsOf(chunk));
    }
    throw unavailable('ended a text without its last chunk, expected stop: true');
  }
}

function wrongServer(what: string): UpstreamError {
  const expected = "expected llama.cpp's server (UPSTREAM_API=llama.cpp)";
  return new UpstreamError('model_unsupported', `answers ${what}, ${expected}`);
}

function templateOf(props: unknown): ChatTemplate | undefined {
  const [source = '', withTools = ''] = ['chat_template', 'chat_template_tool_use'].map((name) =>
    textProperty(props, name),
  );
  if (source === '') return undefined;
  const [bos_token = '', eos_token = ''] = ['bos_token', 'eos_token'].map((name) => textProperty(props, name));
  try {
    return createChatTemplate(
      { default: source, ...(withTools !== '' && { tool_use: withTools }) },
      { bos_token, eos_token },
      [bos_token, eos_token].filter((text) => text !== ''),
    );
  } catch {
    // Ignore the error: the server's own engine may support the template, and prompts need none.
    return undefined;
  }
}

function promptOf(
  { params }: UpstreamTextInput,
  template: ChatTemplate | undefined,
  bos = '',
): string | readonly number[] {
  const { prompt, messages = [] } = params;
  if (prompt !== undefined) return prompt;
  if (template === undefined)
    throw new UpstreamError('invalid_request', 'messages: the model has no template for them');
  const text = template.render(chatMessagesOf(messages));
  // The server adds the BOS token itself.
  return bos !== '' && text.startsWith(bos) ? text.slice(bos.length) : text;
}

/** Translates the client's parameters. The server's defaults apply to absent ones. */
function samplingOf(input: UpstreamTextInput, index: number): object {
  const {
    prompt: _prompt,
    messages: _messages,
    max_tokens,
    stop,
    logit_bias,
    logprobs: _,
    top_logprobs,
    response_format,
    tools: _tools,
    tool_choice: _choice,
    parallel_tool_calls: _parallel,
    ...same
  } = input.params;
  return {
    ...same,
    seed: llamaSeed(input, index),
    ...bareSchema(response_format),
    ...(max_tokens !== undefined && { n_predict: max_tokens }),
    ...(stop !== undefined && { stop: typeof stop === 'string' ? [stop] : stop }),
    ...(logit_bias && { logit_bias: Object.entries(logit_bias).map(([id, bias]) => [Number(id), bias]) }),
    // With n_probs 0 the server reports no log probability, not even that of the chosen token.
    ...(input.logprobs !== undefined && { n_probs: Math.max(1, top_logprobs ?? 0) }),
  };
}

function factsOf(last: unknown): Parameters<GrowingText['output']>[0] {
  const stop = textProperty(last, 'stopping_word') ?? '';
  return {
    finish_reason: textProperty(last, 'stop_type') === 'limit' ? 'length' : 'stop',
    ...(stop !== '' && { stop }),
    prompt_tokens: numberProperty(last, 'tokens_evaluated') ?? 0,
    completion_tokens: numberProperty(last, 'tokens_predicted') ?? 0,
    cached_tokens: numberProperty(fieldOf(last, 'timings'), 'cache_n') ?? 0,
  };
}
