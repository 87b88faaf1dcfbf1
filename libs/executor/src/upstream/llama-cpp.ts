/** llama.cpp's own API: `/health`, `/props` and `/completion`, as the README of its server has them. */
import type { RowOutput } from '@darkroom/core';
import {
  type ChatTemplate,
  createChatTemplate,
  toolsInUse,
  type UpstreamTextCard,
  type UpstreamTextInput,
} from '@darkroom/kinds';
import type { Said } from '../calls/caller.ts';
import { fieldOf, listOf, numberOf, textOf } from './fields.ts';
import { bareSchema, GrowingText, mostTextEventBytes, secretsOf, seedOf, tokenLogprob } from './text-pieces.ts';
import type { UpstreamHttp } from './upstream-http.ts';
import { errorIn, streamFailure, unavailable, UpstreamError } from './upstream-error.ts';
import type { UpstreamCall, UpstreamFacts, UpstreamProtocol, UpstreamProtocolOptions } from './upstream-protocol.ts';

/** For llama.cpp this seed means that it draws one. */
const drawnSeed = 2 ** 32 - 1;

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

  async describe(signal: AbortSignal): Promise<UpstreamFacts> {
    await this.check(signal);
    const props = await this.#http.get('/props', signal);
    const slots = numberOf(props, 'total_slots');
    const maxModelTokens = numberOf(fieldOf(props, 'default_generation_settings'), 'n_ctx');
    if (slots === undefined || slots < 1 || maxModelTokens === undefined)
      throw otherServer('/props without total_slots and n_ctx');
    this.#bos = textOf(props, 'bos_token');
    this.#template = templateOf(props);
    const calls = this.#template?.calls ?? { reason: 'it has no template for messages' };
    const card: UpstreamTextCard = {
      id: this.#model,
      created: this.#created,
      ownedBy: 'llama.cpp',
      kind: 'text',
      pipeline: 'llama.cpp',
      mode: 'autoregressive',
      maxModelTokens,
      hasChatTemplate: this.#template !== undefined,
      hasTools: 'markup' in calls,
      calls,
      callsByGrammar: true,
      takesGrammar: true,
      takesFormatOfPrompt: true,
      deterministic: { is: false, reason: 'another server runs it' },
    };
    return { card, slots };
  }

  async check(signal: AbortSignal): Promise<void> {
    const health = await this.#http.get('/health', signal);
    if (textOf(health, 'status') === undefined) throw otherServer('/health without status');
  }

  async *run({ input, index }: UpstreamCall, signal: AbortSignal): AsyncGenerator<Said, RowOutput, void> {
    const wish = input as UpstreamTextInput;
    const body = { ...samplingOf(wish, index), prompt: promptOf(wish, this.#template, this.#bos), stream: true };
    const secrets = secretsOf(wish);
    const answer = await this.#http.post('/completion', body, { signal, secrets });
    const text = new GrowingText(wish);
    for await (const chunk of answer.events(mostTextEventBytes)) {
      const said = errorIn(chunk);
      if (said !== undefined) throw streamFailure(said, secrets);
      const probabilities = listOf(chunk, 'completion_probabilities');
      const tokens = probabilities.map((each) => tokenLogprob(each as object, wish.logprobs ?? 0));
      yield* text.add(textOf(chunk, 'content') ?? '', tokens, numberOf(chunk, 'tokens_predicted'));
      if (fieldOf(chunk, 'stop') !== true) continue;
      yield* text.progress();
      return text.output(factsOf(chunk));
    }
    throw unavailable('ended a text without its last chunk, expected stop: true');
  }
}

function otherServer(what: string): UpstreamError {
  const expected = "expected llama.cpp's server (UPSTREAM_API=llama.cpp)";
  return new UpstreamError('model_unsupported', `answers ${what}, ${expected}`);
}

function templateOf(props: unknown): ChatTemplate | undefined {
  const [source = '', withTools = ''] = ['chat_template', 'chat_template_tool_use'].map((name) => textOf(props, name));
  if (source === '') return undefined;
  const [bos_token = '', eos_token = ''] = ['bos_token', 'eos_token'].map((name) => textOf(props, name));
  try {
    return createChatTemplate(
      { default: source, ...(withTools !== '' && { tool_use: withTools }) },
      { bos_token, eos_token },
      [bos_token, eos_token].filter((text) => text !== ''),
    );
  } catch {
    // Its server reads it in a way of its own; prompts still work.
    return undefined;
  }
}

function promptOf(
  { asked }: UpstreamTextInput,
  template: ChatTemplate | undefined,
  bos = '',
): string | readonly number[] {
  const { prompt, messages = [] } = asked;
  const tools = toolsInUse(asked);
  if (prompt !== undefined) return prompt;
  if (template === undefined)
    throw new UpstreamError('invalid_request', 'messages: the model has no template for them');
  const text = template.render(messages, { ...(tools && { tools }) });
  // The server puts it there.
  return bos !== '' && text.startsWith(bos) ? text.slice(bos.length) : text;
}

/** What was not asked for is the server's to choose. */
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
    grammar = input.callGrammar,
    tools: _tools,
    tool_choice: _choice,
    parallel_tool_calls: _parallel,
    ...same
  } = input.asked;
  return {
    ...same,
    seed: seedOf(input, index) % drawnSeed,
    ...bareSchema(response_format),
    ...(grammar !== undefined && { grammar }),
    ...(max_tokens !== undefined && { n_predict: max_tokens }),
    ...(stop !== undefined && { stop: typeof stop === 'string' ? [stop] : stop }),
    ...(logit_bias && { logit_bias: Object.entries(logit_bias).map(([id, bias]) => [Number(id), bias]) }),
    // Without others it says nothing of the one that was taken.
    ...(input.logprobs !== undefined && { n_probs: Math.max(1, top_logprobs ?? 0) }),
  };
}

function factsOf(last: unknown): Parameters<GrowingText['output']>[0] {
  const stop = textOf(last, 'stopping_word') ?? '';
  return {
    finish_reason: textOf(last, 'stop_type') === 'limit' ? 'length' : 'stop',
    ...(stop !== '' && { stop }),
    prompt_tokens: numberOf(last, 'tokens_evaluated') ?? 0,
    completion_tokens: numberOf(last, 'tokens_predicted') ?? 0,
    cached_tokens: numberOf(fieldOf(last, 'timings'), 'cache_n') ?? 0,
  };
}
