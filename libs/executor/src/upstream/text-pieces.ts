/** What texts of all protocols have in common. */
import type { RowEvent, RowOutput } from '@darkroom/core';
import type { TextAsk, TextOutputFacts, TokenLogprob, UpstreamTextInput } from '@darkroom/kinds';
import type { Said } from '../calls/caller.ts';
import { unavailable } from './upstream-error.ts';

/** Bytes of an event: a token, and what is said of twenty others. */
export const mostTextEventBytes = 1024 * 1024;

/** UTF-16 units of a token, far above what texts are made of: who sends more does not stop. */
const unitsPerToken = 64;
/** The same of what is said of a token: of twenty others, too, it is a quarter of this. */
const factUnitsPerToken = 8192;
/** Nobody is told oftener how far a text is. */
const progressIntervalMs = 50;

/** What must not come back in an error: whatever holds words of who sent it. Objects are told by their JSON. */
export function secretsOf({ asked, callGrammar }: UpstreamTextInput): string[] {
  const { prompt, messages = [], tools = [], grammar, response_format: format, stop } = asked;
  const calls = messages.flatMap((message) => message.tool_calls ?? []);
  const words = [
    ...[prompt, grammar, callGrammar, stop].flat(),
    format?.type === 'json_schema' ? format.json_schema : undefined,
    ...messages.map(({ content }) => content),
    ...[...calls, ...tools].flatMap((each) => Object.values(each.function)),
  ];
  return words.flatMap((each) => {
    if (typeof each === 'string') return [each];
    return typeof each === 'object' && each !== null ? [JSON.stringify(each)] : [];
  });
}

/** What llama.cpp's server calls a `response_format`: the schema alone. */
export function bareSchema(format: TextAsk['response_format']): { json_schema?: object } {
  if (format?.type === 'json_object') return { json_schema: { type: 'object' } };
  return format?.type === 'json_schema' ? { json_schema: format.json_schema.schema } : {};
}

/** Text `index` of a request has the next seed. */
export function seedOf({ seed }: UpstreamTextInput, index: number): number {
  return (seed + index) % 2 ** 32;
}

/** Of a pair of code units only one: the store's scripts cannot read it. */
export const halfCharacter = /\p{Surrogate}/u;

/** A text as its pieces come. Servers do not say which tokens a piece is made of, or not all of them. */
export class GrowingText {
  readonly #total: number;
  readonly #mostUnits: number;
  /** 0 where nobody asked what is said of tokens. */
  readonly #mostFactUnits: number;
  #text = '';
  #factUnits = 0;
  /** By `performance.now()`. */
  #saidAtMs = -Infinity;
  #saidDone = 0;
  /** Tokens, as far as the server says; else pieces, of which each has one as a rule. */
  done = 0;

  constructor({ maxTokens, logprobs }: UpstreamTextInput) {
    this.#total = maxTokens;
    this.#mostUnits = 65_536 + unitsPerToken * maxTokens;
    this.#mostFactUnits = logprobs === undefined ? 0 : 65_536 + factUnitsPerToken * maxTokens;
  }

  /** `done`: tokens by now, where the server says. */
  *add(text: string, logprobs: readonly TokenLogprob[] = [], done = this.done + 1): Generator<Said, void> {
    const said = this.#mostFactUnits > 0 ? logprobs : [];
    if (text === '' && said.length === 0) return yield undefined;
    if (halfCharacter.test(text))
      throw unavailable('sent half a character, expected text that does not end within one');
    const lines = said.map((each) => `${JSON.stringify(each)}\n`).join('');
    const offset = this.#text.length;
    if (offset + text.length > this.#mostUnits)
      throw unavailable(`sent a text of more than ${this.#mostUnits} characters, expected max_tokens to end it`);
    this.#factUnits += lines.length;
    if (this.#factUnits > this.#mostFactUnits)
      throw unavailable(`said more of its tokens than ${this.#mostFactUnits} characters, expected less`);
    this.#text += text;
    yield { type: 'delta', offset, text, ...(lines !== '' && { facts: { logprobs: lines } }) };
    this.done = Math.max(this.done, done);
    if (performance.now() - this.#saidAtMs >= progressIntervalMs) yield* this.progress();
  }

  /** How far it is, if that was not said. */
  *progress(): Generator<RowEvent, void> {
    if (this.#saidDone === this.done) return;
    this.#saidAtMs = performance.now();
    this.#saidDone = this.done;
    yield { type: 'progress', done: this.done, total: this.#total };
  }

  output(facts: Pick<TextOutputFacts, 'finish_reason' | 'stop'> & Partial<TextOutputFacts>): RowOutput {
    const { completion_tokens = this.done, prompt_tokens = 0, cached_tokens = 0, ...others } = facts;
    if (facts.stop !== undefined && halfCharacter.test(facts.stop))
      throw unavailable('sent half a character as what it stopped at, expected whole ones');
    return {
      data: new TextEncoder().encode(this.#text),
      contentType: 'text/plain; charset=utf-8',
      facts: { prompt_tokens, completion_tokens, cached_tokens, calls: completion_tokens, ...others },
    };
  }
}

/** What is said of a token, as OpenAI's chats and llama.cpp have it. */
interface ForeignLogprob {
  token?: unknown;
  logprob?: unknown;
  bytes?: unknown;
  top_logprobs?: unknown;
}

/** `alternatives`: how many were asked for. */
export function tokenLogprob(said: ForeignLogprob, alternatives: number): TokenLogprob {
  const tops = Array.isArray(said.top_logprobs) ? (said.top_logprobs as ForeignLogprob[]) : [];
  return { ...probable(said), top: tops.slice(0, alternatives).map((top) => probable(top)) };
}

function probable({ token, logprob, bytes }: ForeignLogprob): Omit<TokenLogprob, 'top'> {
  const text = typeof token === 'string' ? token : '';
  return {
    token: text,
    logprob: typeof logprob === 'number' ? logprob : -9999,
    bytes: Array.isArray(bytes) ? (bytes as number[]) : [...Buffer.from(text)],
  };
}
