/** Text handling shared by all upstream protocols and custom modules. */
import type { RowEvent, RowOutput } from '@darkroom/core';
import {
  imagesIn,
  textOf,
  type TextOutputFacts,
  type TokenLogprob,
  type UpstreamTextInput,
  type UpstreamTextParams,
} from '@darkroom/kinds';
import type { CallEvent } from '../calls/backend-client.ts';
import { unavailable } from '../calls/backend-error.ts';

/** Max size of an event in bytes: a token, with the log probabilities of twenty others. */
export const maxTextEventBytes = 1024 * 1024;

/** Max UTF-16 units per token, far above real texts: a server that exceeds it never stops. */
const unitsPerToken = 64;
/** Max UTF-16 units of log probabilities per token; with twenty alternatives they take a quarter of this. */
const logprobUnitsPerToken = 8192;
/** Min interval between progress events. */
const progressIntervalMs = 50;

/** Returns all client text that must not appear in error messages. Objects are compared by their JSON. */
export function secretsOf({ params }: UpstreamTextInput): string[] {
  const { prompt, messages = [], tools = [], grammar, response_format: format, stop } = params;
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  const texts = [
    ...[prompt, grammar, stop].flat(),
    format?.type === 'json_schema' ? format.json_schema : undefined,
    ...messages.flatMap(({ content }) => [
      textOf(content),
      ...imagesIn([{ content }]).map(({ part }) => part.image_url.url),
    ]),
    ...[...calls, ...tools].flatMap((each) => Object.values(each.function)),
  ];
  return texts.flatMap((each) => {
    if (typeof each === 'string') return [each];
    return typeof each === 'object' && each !== null ? [JSON.stringify(each)] : [];
  });
}

/** Converts a `response_format` to llama.cpp's field, which takes the bare schema. */
export function bareSchema(format: UpstreamTextParams['response_format']): { json_schema?: object } {
  if (format?.type === 'json_object') return { json_schema: { type: 'object' } };
  return format?.type === 'json_schema' ? { json_schema: format.json_schema.schema } : {};
}

/** Returns the seed of text `index`: consecutive texts have consecutive seeds. */
export function seedOfText({ seed }: UpstreamTextInput, index: number): number {
  return (seed + index) % 2 ** 32;
}

/** Returns the seed for llama.cpp, which draws a random one for the highest seed. */
export function llamaSeed(input: UpstreamTextInput, index: number): number {
  return seedOfText(input, index) % (2 ** 32 - 1);
}

/** Matches half of a surrogate pair, which the store's scripts cannot decode. */
export const unpairedSurrogate = /\p{Surrogate}/u;

/** A text that grows by chunks. Servers do not report the tokens of a chunk, or not all of them. */
export class GrowingText {
  readonly #total: number;
  readonly #maxUnits: number;
  /** 0 if log probabilities were not requested. */
  readonly #maxLogprobUnits: number;
  #text = '';
  #logprobUnits = 0;
  /** Time of the last progress event, by `performance.now()`. */
  #progressAtMs = -Infinity;
  #progressDone = 0;
  /** Number of tokens, if the server reports it; otherwise of chunks, which usually hold one token each. */
  done = 0;

  /** @param start the text and the number of tokens of an earlier run that continues. */
  constructor({ maxTokens, logprobs }: UpstreamTextInput, start = { text: '', done: 0 }) {
    this.#text = start.text;
    this.done = this.#progressDone = start.done;
    this.#total = maxTokens;
    this.#maxUnits = 65_536 + unitsPerToken * maxTokens;
    this.#maxLogprobUnits = logprobs === undefined ? 0 : 65_536 + logprobUnitsPerToken * maxTokens;
  }

  get text(): string {
    return this.#text;
  }

  /** Appends a chunk. `done`: tokens so far, if the server reports them. */
  *add(text: string, logprobs: readonly TokenLogprob[] = [], done = this.done + 1): Generator<CallEvent, void> {
    const requested = this.#maxLogprobUnits > 0 ? logprobs : [];
    if (text === '' && requested.length === 0) return yield undefined;
    if (unpairedSurrogate.test(text))
      throw unavailable('sent half a character, expected text that does not end within one');
    const lines = requested.map((each) => `${JSON.stringify(each)}\n`).join('');
    const offset = this.#text.length;
    if (offset + text.length > this.#maxUnits)
      throw unavailable(`sent a text of more than ${this.#maxUnits} characters, expected max_tokens to end it`);
    this.#logprobUnits += lines.length;
    if (this.#logprobUnits > this.#maxLogprobUnits)
      throw unavailable(`sent more log probabilities than ${this.#maxLogprobUnits} characters, expected less`);
    this.#text += text;
    yield { type: 'delta', offset, text, ...(lines !== '' && { facts: { logprobs: lines } }) };
    this.done = Math.max(this.done, done);
    if (performance.now() - this.#progressAtMs >= progressIntervalMs) yield* this.progress();
  }

  /** Yields a progress event if there was progress since the last one. */
  *progress(): Generator<RowEvent, void> {
    if (this.#progressDone === this.done) return;
    this.#progressAtMs = performance.now();
    this.#progressDone = this.done;
    yield { type: 'progress', done: this.done, total: this.#total };
  }

  output(facts: Pick<TextOutputFacts, 'finish_reason' | 'stop'> & Partial<TextOutputFacts>): RowOutput {
    const { completion_tokens = this.done, prompt_tokens = 0, cached_tokens = 0, ...others } = facts;
    if (facts.stop !== undefined && unpairedSurrogate.test(facts.stop))
      throw unavailable('sent half a character in its stop string, expected complete ones');
    return {
      data: new TextEncoder().encode(this.#text),
      contentType: 'text/plain; charset=utf-8',
      facts: { prompt_tokens, completion_tokens, cached_tokens, calls: completion_tokens, ...others },
    };
  }
}

/** Log probability of a token, as OpenAI's chat API and llama.cpp send it. */
interface UpstreamLogprob {
  token?: unknown;
  logprob?: unknown;
  bytes?: unknown;
  top_logprobs?: unknown;
}

/** Converts a log probability, with at most `alternatives` other tokens. */
export function toTokenLogprob(source: UpstreamLogprob, alternatives: number): TokenLogprob {
  const tops = Array.isArray(source.top_logprobs) ? (source.top_logprobs as UpstreamLogprob[]) : [];
  return { ...toLogprob(source), top: tops.slice(0, alternatives).map((top) => toLogprob(top)) };
}

function toLogprob({ token, logprob, bytes }: UpstreamLogprob): Omit<TokenLogprob, 'top'> {
  const text = typeof token === 'string' ? token : '';
  return {
    token: text,
    logprob: typeof logprob === 'number' ? logprob : -9999,
    bytes: Array.isArray(bytes) ? (bytes as number[]) : [...Buffer.from(text)],
  };
}
