/** Text models of upstream servers. The server has the tokenizer and the defaults: requests are forwarded as sent. */
import type { ModelCard } from '@darkroom/core';
import type { ImageSize } from '../request/brought-images.ts';
import type { RequestFields } from '../request/request-fields.ts';
import type { CallMarkup } from './form/call-markup.ts';
import type { TextBody } from './text-schema.ts';

/** Capabilities of an upstream model. It has no codec; the server checks limits that are absent here. */
export interface UpstreamTextCard extends ModelCard {
  kind: 'text';
  mode: 'autoregressive';
  codec?: undefined;
  block?: undefined;
  /** Maximum tokens of prompt and output together. */
  maxModelTokens?: number;
  /** Token ids are below this. */
  vocabularySize?: number;
  hasChatTemplate: boolean;
  /** Absent if only the server knows: it rejects requests with tools if the model has none. */
  hasTools?: boolean;
  /** Markup of tool calls in its texts, or why it has none (a clause for error messages). Absent: it calls no tools. */
  calls?: { readonly markup: CallMarkup } | { readonly reason: string };
  /** Has `image` if messages may have images. Absent if only the server knows: it rejects images it cannot read. */
  takes?: readonly 'image'[];
  /** Support of `grammar` by the server; false by default. */
  takesGrammar?: boolean;
  /** Support of `response_format` with `prompt` by the server; false by default. */
  takesFormatOfPrompt?: boolean;
  deterministic: { is: false; reason: string };
}

/**
 * Body fields that are forwarded upstream, by the names of the schema; the server has defaults for absent ones. The URL
 * of an image in messages is the name of its attachment, such as `image-0`.
 */
export type UpstreamTextParams = Omit<TextBody, keyof RequestFields | 'n' | 'seed' | 'image'>;

export interface UpstreamTextInput {
  params: UpstreamTextParams;
  /** Sizes of the attachments `image-0`, `image-1`, …; absent without images. */
  images?: readonly ImageSize[];
  /** Number of texts, 1–10; each is one upstream request. Text `i` has the seed `seed + i` (modulo 2³²). */
  n: number;
  /** 0 to 2³²−1. */
  seed: number;
  /** Maximum tokens per text: as requested, or the estimate for the cost. */
  maxTokens: number;
  /** See `TextInput`. */
  logprobs?: number;
  callMarkup?: CallMarkup;
  shown?: Readonly<Record<string, unknown>>;
  said?: Readonly<Record<string, unknown>>;
}

/** Estimated tokens of a text without `max_tokens`, whose length only the server limits. */
export const estimatedTokens = 4096;

/** Markup for servers that return tool calls in a field: the executor writes them into the text, views parse them. */
export const writtenCalls: CallMarkup = {
  open: '',
  begin: '<tool_call>\n{"name": "',
  middle: '", "arguments": ',
  end: '}\n</tool_call>',
  separator: '\n',
  close: '',
};

export function isForUpstream(input: object): input is UpstreamTextInput {
  return 'params' in input;
}

/** Removes the client's words: keeps only numbers and booleans. */
export function removePrivateFields(params: UpstreamTextParams): UpstreamTextParams {
  return Object.fromEntries(Object.entries(params).filter(([, value]) => ['number', 'boolean'].includes(typeof value)));
}
