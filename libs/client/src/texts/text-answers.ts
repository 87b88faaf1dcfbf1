/** What the API answers about texts. */
import type { ModelBase, RequestViewBase } from '../base-answers.ts';
import type { ToolCall } from './text-form.ts';
import type { RequestOptions } from '../request-options.ts';
import type { TextRequest } from './text-request.ts';

/** A text by now, or in the end. */
export interface WrittenText {
  /** From 0. */
  index: number;
  /** Where a block is being written, `░` stands for a token that is not known yet. */
  text: string;
  /** Calls of tools in it, if there are any. */
  tool_calls?: ToolCall[];
}

/** Why a text ended: it came to its end (or a stop text), or `max_tokens` (or `max_nfe`) did. */
export type FinishReason = 'stop' | 'length';

/** Of all texts of a request that are done, in tokens. */
export interface TextUsage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
  /** Of the prompt, what an earlier request had left in the cache. */
  cached_tokens: number;
  /** Calls of the model after the prompt. */
  nfe: number;
}

/**
 * All that made the texts: submitted again, it makes the same ones. Messages stand as the prompt that became of them, and every
 * default is filled in; but of a model that another server runs there is what was asked for.
 */
export interface TextParameters extends Omit<TextRequest, 'prompt' | keyof RequestOptions> {
  model: string;
  /** Ids of tokens, or what was sent. Null once the request has ended, on a server that does not keep prompts. */
  prompt: string | number[] | null;
  n: number;
  seed: number;
}

/** A request of texts as `get` sees it. */
export interface TextView extends RequestViewBase {
  kind: 'text';
  /** Written so far, over all texts of the request. */
  tokens: number;
  /** One for each that was asked for: what stands of it. */
  texts: WrittenText[];
  parameters: TextParameters;
  usage: TextUsage;
  /** One for each text that is done. */
  finish_reasons: FinishReason[];
  images?: undefined;
}

/** A model of text, and what it can do. */
export interface TextModel extends ModelBase {
  kind: 'text';
  /** One token after the other, or a block of tokens in place. */
  mode: 'autoregressive' | 'block_diffusion';
  /** Tokens that it reads and writes together; absent where another server runs it, and does not say. */
  max_model_len?: number;
  /** Ids of tokens are below this; absent as above. */
  vocabulary_size?: number;
  /** Whether it takes `messages`. */
  has_chat_template: boolean;
  /** Whether it calls tools; absent where only the server that runs it knows. */
  has_tools?: boolean;
  /** Whether a text has the same bytes whoever shares its steps; if not, why. */
  deterministic: boolean;
  deterministic_reason?: string;
  /** Of block diffusion. */
  block_size?: number;
  /** Absent where another server runs it: they are that server's. */
  defaults?: {
    max_tokens: number;
    temperature: number;
    top_p: number;
    top_k: number;
    /** Of block diffusion. */
    confidence_threshold?: number;
  };
}
