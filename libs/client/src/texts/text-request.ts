import type { RequestOptions } from '../request-options.ts';
import type { ResponseFormat, SentToolCall, Tool, ToolChoice } from './text-form.ts';

/** A turn of a conversation. What else it has is for the model's template. */
export interface TextMessage {
  /** As the model's template knows them: `system`, `user`, `assistant`, as a rule. */
  role: string;
  content: string;
  /** Calls of tools, of an answer that had some; what they gave are messages of the role `tool`. */
  tool_calls?: SentToolCall[] | null;
  [field: string]: unknown;
}

/** The body of `POST /v1/predict` for texts: with `prompt` or with `messages`. Limits named "the model's" are in `/v1/models`. */
export interface TextRequest extends RequestOptions {
  /** What to continue, as text or as ids of tokens. */
  prompt?: string | number[];
  /** What to answer, by the model's template; at most 1000. */
  messages?: TextMessage[];
  /** Tokens to write at most. Default: the model's, or what it has room for. */
  max_tokens?: number;
  /** 0 to 2; 0 takes the most probable token always. Default: the model's. */
  temperature?: number;
  /** Above 0, at most 1: the most probable tokens that have this much together. Default: the model's. */
  top_p?: number;
  /** So many of the most probable tokens; 0 is all. Default: the model's. */
  top_k?: number;
  /** 0 to 1: tokens at least so probable, in parts of the most probable one. Default: 0. */
  min_p?: number;
  /** −2 to 2: against tokens that were written before. Default: 0. */
  presence_penalty?: number;
  /** −2 to 2: the same, for each time they were. Default: 0. */
  frequency_penalty?: number;
  /** −100 to 100, added to logits, by ids of tokens. Default: none. */
  logit_bias?: Record<string, number>;
  /** Whether to say how probable each token was; not of block diffusion. Default: false. */
  logprobs?: boolean;
  /** 0 to 20 other tokens too, with `logprobs`. Default: 0. */
  top_logprobs?: number;
  /** Texts, 1 to 10; text `i` has the seed `seed + i`. Default: 1. */
  n?: number;
  /** 0 to 2³²−1; the same seed and parameters give the same text (on CPU). Default: drawn, and in the result. */
  seed?: number;
  /** Texts that end it, and are no part of it: at most 16, of 1 to 256 characters. Default: none. */
  stop?: string | string[];
  /** Write on to `max_tokens`. Default: false. */
  ignore_eos?: boolean;
  /** What every answer keeps to: an object of JSON, or JSON of a schema. Not of block diffusion. Default: text. */
  response_format?: ResponseFormat;
  /** What every answer keeps to, as a grammar in EBNF whose first rule is `root`. Not of block diffusion. Default: none. */
  grammar?: string;
  /** 1 to 128 tools that the model may call; for models with `has_tools`. Default: none. */
  tools?: Tool[];
  /** Whether it may call tools, must not, must, or must call this one. Default: auto. */
  tool_choice?: ToolChoice;
  /** Whether one answer may have several calls. Default: true. */
  parallel_tool_calls?: boolean;
  /** Of block diffusion: calls of the model at most. Default: as many as it takes. */
  max_nfe?: number;
  /** Of block diffusion, 0 to 1: how probable a token must be to stay. Default: the model's. */
  confidence_threshold?: number;
  /** Of block diffusion, 1 to 1024: so many tokens stay in each call, in place of those above the threshold. */
  tokens_per_step?: number;
}
