/** Texts of a model that another server runs: it has the tokenizer and the defaults, so a request goes to it as it was sent. */
import type { ModelCard } from '@darkroom/core';
import type { RequestFields } from '../../request-fields.ts';
import type { CallMarkup } from '../form/call-markup.ts';
import type { TextRequest } from '../text-schema.ts';

/** What is known of such a model: it has no codec, and limits that are not said here are the server's to check. */
export interface UpstreamTextCard extends ModelCard {
  kind: 'text';
  mode: 'autoregressive';
  codec?: undefined;
  block?: undefined;
  /** Tokens that it reads and writes together at most. */
  maxModelTokens?: number;
  /** Ids of tokens are below this. */
  vocabularySize?: number;
  hasChatTemplate: boolean;
  /** Absent where only its server knows: what has tools goes there, and is refused if it has none. */
  hasTools?: boolean;
  /** How calls of tools stand in its texts; or why there are none, in words that go on after its name. Absent: it calls none. */
  calls?: { readonly markup: CallMarkup } | { readonly reason: string };
  /** Its server knows no tools: a grammar made at the door keeps its texts to calls of them. */
  callsByGrammar?: boolean;
  /** Whether its server keeps answers to a `grammar`, and those to a `prompt` to a `response_format`; absent: not. */
  takesGrammar?: boolean;
  takesFormatOfPrompt?: boolean;
  deterministic: { is: false; reason: string };
}

/** The fields of a body that say what to write, by the names of the schema; what was not sent is the server's default. */
export type TextAsk = Omit<TextRequest, keyof RequestFields | 'n' | 'seed'>;

export interface UpstreamTextInput {
  asked: TextAsk;
  /** Texts, 1–10; each is a request upstream. Text `i` has the seed `seed + i` (modulo 2³²). */
  n: number;
  /** 0 to 2³²−1. */
  seed: number;
  /** Tokens of a text at most: as asked, or what is counted where nobody said. */
  maxTokens: number;
  /** As in `TextInput`. */
  logprobs?: number;
  callMarkup?: CallMarkup;
  /** GBNF that keeps the text to calls of its tools; as private as they are. */
  callGrammar?: string;
  shown?: Readonly<Record<string, unknown>>;
  said?: Readonly<Record<string, unknown>>;
}

/** Counted for a text that may get as long as the server lets it. */
export const countedTokens = 4096;

/** Of servers that tell calls of tools beside the text: so they are written into it, for views to take them out again. */
export const writtenCalls: CallMarkup = {
  open: '',
  begin: '<tool_call>\n{"name": "',
  middle: '", "arguments": ',
  end: '}\n</tool_call>',
  separator: '\n',
  close: '',
};

export function isForUpstream(input: object): input is UpstreamTextInput {
  return 'asked' in input;
}

/** Whatever holds words of whoever sent it is an object or a text; numbers and switches do not. */
export function publicAsk(asked: TextAsk): TextAsk {
  return Object.fromEntries(Object.entries(asked).filter(([, value]) => ['number', 'boolean'].includes(typeof value)));
}
