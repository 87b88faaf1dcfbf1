import type { CallMarkup } from './form/call-markup.ts';
import type { TextForm } from './form/form-schema.ts';

/** What a text must be like, as xgrammar's structural tags say it. Who matches texts with it reads it, and nobody else. */
export type TextConstraint = Readonly<Record<string, unknown>>;

/** A text request after validation, with every default filled in: all that an engine needs to write the same bytes again. */
export interface TextInput {
  /** Ids of tokens, at least 1; with messages, as the model's template renders them. */
  prompt: readonly number[];
  /** Texts, 1–10. Text `i` has the seed `seed + i` (modulo 2³²). */
  n: number;
  /** Tokens that are written at most, at least 1. Prompt and these fit the model. */
  maxTokens: number;
  /** 0 takes the most probable token always; at most 2. */
  temperature: number;
  /** 0 < p ≤ 1; 1 takes all. */
  topP: number;
  /** Tokens; 0 takes all. */
  topK: number;
  /** 0–1 of the best token's probability; 0 takes all. */
  minP: number;
  /** −2 to 2, as OpenAI has them: counted over what was written, not the prompt. */
  presencePenalty: number;
  frequencyPenalty: number;
  /** Added to logits, by token id: −100 to 100. */
  logitBias: Readonly<Record<string, number>>;
  /** How many alternatives are said for each token, 0–20; absent when no probabilities are said. */
  logprobs?: number;
  /** 0 to 2³²−1. */
  seed: number;
  /** Texts that end it, at most 16; none of them is sent, nor a part of one. */
  stop: readonly string[];
  /** Writes on after the end token, until `maxTokens`. */
  ignoreEos: boolean;
  /** Of block diffusion: calls of the model at most, and the probability at which a token is kept (0–1). */
  maxCalls?: number;
  confidenceThreshold?: number;
  /** Tokens that are kept in each call, in place of those above the threshold. */
  tokensPerCall?: number;
  /** Only what it allows is written. Token by token only, and not beside `ignoreEos`. */
  constraint?: TextConstraint;
  /** What `constraint` was made of, as it was asked for; as private as the prompt. */
  form?: TextForm;
  /** Where tools may be called: how calls stand in the text. */
  callMarkup?: CallMarkup;
  /** What the route it came by shows of it again, and goes on with; no engine reads either. `said` is as private as the prompt. */
  shown?: Readonly<Record<string, unknown>>;
  said?: Readonly<Record<string, unknown>>;
}

/** What stands in a snapshot for a token that is not known yet; its id there is that of the model's mask. */
export const maskText = '░';

/**
 * The facts of a piece of text: of a `delta`, or of a `snapshot`, whose ids are those of its whole block. Joined pieces append
 * strings and keep the later numbers. The end token is in no piece, nor are tokens of a stop text: `done` of a piece that stays
 * is the number of ids in all pieces up to it.
 */
export interface TextPieceFacts {
  /** Ids of its tokens, each with a comma behind it: `12,7,`. */
  ids: string;
  /** Of block diffusion: calls of the model after the prompt, up to this piece. */
  calls?: number;
  /** Of block diffusion: 1 in the last snapshot of a block. What stands in it stays. */
  settled?: number;
  /** For each token one line of JSON, ended by a line feed: `TokenLogprob`. */
  logprobs?: string;
}

export interface TokenLogprob {
  token: string;
  /** Natural logarithm, after penalties and bias, before temperature and cuts: what OpenAI's says. */
  logprob: number;
  /** UTF-8. */
  bytes: readonly number[];
  top: readonly { token: string; logprob: number; bytes: readonly number[] }[];
}

/** The facts of a finished text. */
export interface TextOutputFacts {
  finish_reason: 'stop' | 'length';
  /** The stop text that ended it; absent otherwise. */
  stop?: string;
  prompt_tokens: number;
  completion_tokens: number;
  /** Of the prompt, those that an earlier request had left in the cache. */
  cached_tokens: number;
  /** Calls of the model after the prompt. */
  calls: number;
}

/** Prompt and answers, in tokens through the model: a written token takes a step of its own. */
export function textCost({ prompt, maxTokens, n }: Pick<TextInput, 'prompt' | 'maxTokens' | 'n'>): number {
  return prompt.length + n * maxTokens;
}
