import type { ModelCard } from '@darkroom/core';
import type { ImageSize } from '../../request/brought-images.ts';
import type { CallMarkup } from './call-markup.ts';
import type { TextForm } from './form-schema.ts';
import type { ImageTokens } from './image-tokens.ts';
import type { ConversationMessages } from './message-content.ts';

interface Tag {
  readonly type: 'tag';
  readonly begin: string;
  readonly content: TextConstraint;
  readonly end: string;
}

/** Constraint on the generated text. `isSlow`: takes long to compile, so engines compile it apart from others. */
export type TextConstraint = { readonly isSlow?: boolean } & (
  | { readonly type: 'json_schema'; readonly json_schema: unknown }
  /** Regular expression in JavaScript syntax; the full text must match. */
  | { readonly type: 'regex'; readonly pattern: string }
  /** GBNF whose start rule is `root`. */
  | { readonly type: 'grammar'; readonly grammar: string }
  | { readonly type: 'or'; readonly elements: readonly TextConstraint[] }
  | Tag
  /** One tag or more, without text between them. */
  | {
      readonly type: 'tags_with_separator';
      readonly tags: readonly Tag[];
      readonly separator: string;
      readonly stop_after_first: boolean;
    }
  /** Free text; after the trigger, the text must continue as a tag that begins with the trigger. */
  | {
      readonly type: 'triggered_tags';
      readonly trigger: string;
      readonly tags: readonly Tag[];
      readonly stop_after_first: boolean;
    }
);

/** Validated input of a text request with every default filled in: an engine reproduces the same bytes from it. */
export interface TextInput {
  /** Token ids, at least 1; of messages, the ids of the rendered chat template. */
  prompt: readonly number[];
  /** Sizes of the attachments `image-0`, `image-1`, …, in the order of their tokens; absent without images. */
  images?: readonly ImageSize[];
  /** The messages of a request with images, whose URLs are the names of the attachments; as private as the prompt. */
  messages?: ConversationMessages;
  /** Number of prompt tokens, if the prompt itself is no longer stored. */
  promptTokens?: number;
  /** Number of texts, 1–10. Text `i` has the seed `seed + i` (modulo 2³²). */
  n: number;
  /** Maximum tokens to generate, at least 1. Prompt and output together fit the context. */
  maxTokens: number;
  /** 0–2; 0 always takes the most probable token. */
  temperature: number;
  /** 0 < p ≤ 1; 1 disables the cut. */
  topP: number;
  /** Number of tokens; 0 disables the cut. */
  topK: number;
  /** 0–1, relative to the best token's probability; 0 disables the cut. */
  minP: number;
  /** −2 to 2, as defined by OpenAI: counted over the generated tokens, not the prompt. */
  presencePenalty: number;
  frequencyPenalty: number;
  /** Added to logits, by token id: −100 to 100. */
  logitBias: Readonly<Record<string, number>>;
  /** Number of alternatives reported for each token, 0–20; absent if no log probabilities are requested. */
  logprobs?: number;
  /** 0 to 2³²−1. */
  seed: number;
  /** Stop strings, at most 16; neither they nor parts of them are emitted. */
  stop: readonly string[];
  /** Continues generation after the end token, until `maxTokens`. */
  ignoreEos: boolean;
  /** Block diffusion only: maximum model calls, and the probability (0–1) from which a token is kept. */
  maxCalls?: number;
  confidenceThreshold?: number;
  /** Block diffusion only: number of tokens kept in each call, instead of those above the threshold. */
  tokensPerCall?: number;
  /** Constrains the text. Autoregressive models only; excludes `ignoreEos`. */
  constraint?: TextConstraint;
  /** The request's fields that `constraint` was built from; as private as the prompt. */
  form?: TextForm;
  /** Markup of tool calls in the text; absent if no tools may be called. */
  callMarkup?: CallMarkup;
  /** State of the API route, unused by engines: `shown` for responses, `said` for follow-ups (private like prompts). */
  shown?: Readonly<Record<string, unknown>>;
  said?: Readonly<Record<string, unknown>>;
}

/** Placeholder in a snapshot for a token that is still masked; its id there is the id of the model's mask token. */
export const maskText = '░';

/**
 * Fields of a text chunk: of a `delta`, or of a `snapshot`, which has the ids of its full block. Joining chunks appends
 * strings and keeps the later numbers. End tokens and tokens of stop strings are in no chunk: `done` of a final chunk
 * is the number of ids in all chunks up to it.
 */
export interface TextPieceFacts {
  /** Token ids, each followed by a comma: `12,7,`. */
  ids: string;
  /** Block diffusion only: model calls after the prompt, up to this chunk. */
  calls?: number;
  /** Block diffusion only: 1 in the last snapshot of a block, which no longer changes. */
  settled?: number;
  /** One line of JSON per token (`TokenLogprob`), each ended by a line feed. */
  logprobs?: string;
}

export interface TokenLogprob {
  token: string;
  /** Natural logarithm, after penalties and bias, before temperature and cuts, as in OpenAI's API. */
  logprob: number;
  /** UTF-8. */
  bytes: readonly number[];
  top: readonly { token: string; logprob: number; bytes: readonly number[] }[];
}

/** Metadata of a finished text. */
export interface TextOutputFacts {
  finish_reason: 'stop' | 'length';
  /** The stop string that ended the text; absent otherwise. */
  stop?: string;
  prompt_tokens: number;
  completion_tokens: number;
  /** Prompt tokens that were in the prefix cache. */
  cached_tokens: number;
  /** Model calls after the prompt. */
  calls: number;
}

/** Returns the cost in tokens through the model: the prompt once, and the maximum output of each text. */
export function textCost({ prompt, maxTokens, n }: Pick<TextInput, 'prompt' | 'maxTokens' | 'n'>): number {
  return prompt.length + n * maxTokens;
}

/** Generation mode: one token after the other, or a block of masked tokens that is denoised in place. */
export type TextMode = 'autoregressive' | 'block_diffusion';

/** Capabilities of a text model. */
export interface TextCard extends ModelCard {
  kind: 'text';
  mode: TextMode;
  /** Maximum tokens of prompt and output together: the context length, or less if the worker has not enough memory. */
  maxModelTokens: number;
  /** Token ids are below this. The codec may have more tokens that the model does not read, such as image tokens. */
  vocabularySize: number;
  /** Name of the tokenizer document in the store: the SHA-256 of its bytes, in hex. */
  codec: string;
  /** False if the model has no chat template and takes prompts only. */
  hasChatTemplate: boolean;
  /** True if the chat template supports tools. */
  hasTools: boolean;
  /** Defaults for fields that a request omits, from generation_config.json. */
  defaults: { maxTokens: number; temperature: number; topP: number; topK: number };
  /** How the model reads images; absent if it reads text only. */
  images?: ImageTokens;
  /** Block diffusion only: tokens per block, and the probability (0–1) from which a token is kept. */
  block?: { size: number; confidenceThreshold: number };
  deterministic: NonNullable<ModelCard['deterministic']>;
}

/**
 * Returns the number of tokens that fit the context after a prompt; for block diffusion, of full blocks. 0 or less: the
 * prompt is too long.
 */
export function remainingTokens(
  { maxModelTokens, block }: Pick<TextCard, 'maxModelTokens' | 'block'>,
  promptTokens: number,
) {
  const left = maxModelTokens - promptTokens;
  return block === undefined ? left : left - (left % block.size);
}
