/**
 * Converts text to token ids and back. API and engine build codecs from the same document: the model's tokenizer.json,
 * tokenizer_config.json and optional chat_template.jinja.
 */
import { DarkroomError } from '@darkroom/core';
import { Tokenizer } from '@huggingface/tokenizers';
import { z } from 'zod';
import type { ChatMessage } from '../form/chat-message.ts';
import { type ChatTemplate, createChatTemplate, type RenderChatOptions } from './chat-template.ts';
import { IncrementalDetokenizer, type TokenTexts } from './incremental-detokenizer.ts';
import { createTokenBytes, type DecoderConfig } from './token-bytes.ts';

export interface TextCodec extends TokenTexts {
  /** Token ids are below this. */
  readonly vocabularySize: number;
  /** Maximum UTF-16 units of one token. A text has at least its length divided by this many tokens. */
  readonly longestToken: number;
  /** Ids of end tokens from tokenizer_config.json; may be empty. */
  readonly endIds: readonly number[];
  readonly hasChatTemplate: boolean;
  /** Markup of the model's tool calls, or why it has none (a clause for error messages). */
  readonly calls: ChatTemplate['calls'];
  /**
   * Returns the token ids of a text. Texts of special tokens become these tokens.
   *
   * @param addSpecialTokens whether to add the model's start and end tokens; a rendered chat already has them.
   */
  encode(text: string, options: { addSpecialTokens: boolean }): number[];
  /**
   * Renders messages as one text, to be encoded with `addSpecialTokens: false`.
   *
   * @throws DarkroomError `invalid_request` if the model has no template, or its template rejects the messages.
   */
  renderChat(messages: readonly ChatMessage[], options?: RenderChatOptions): string;
  /** Returns the text of these tokens, without special tokens. */
  decode(ids: readonly number[]): string;
}

/** Contents of a model's tokenizer files. */
export interface TextCodecFiles {
  /** Content of tokenizer.json. */
  readonly tokenizer: unknown;
  /** Content of tokenizer_config.json. */
  readonly config: unknown;
  /** Content of chat_template.jinja; overrides the template in tokenizer_config.json. */
  readonly chatTemplate?: string | undefined;
}

const specialTokenSchema = z.union([
  z.string(),
  z.looseObject({ content: z.string() }).transform(({ content }) => content),
]);
const decoderSchema: z.ZodType<DecoderConfig> = z.looseObject({
  type: z.string(),
  get decoders() {
    return z.array(decoderSchema).optional();
  },
  pattern: z.looseObject({ String: z.string().optional() }).optional(),
  content: z.string().optional(),
  replacement: z.string().optional(),
});
const templateSchema = z.union([
  z.string().transform((template) => ({ default: template })),
  z
    .array(z.object({ name: z.string(), template: z.string() }))
    .min(1)
    .transform((named) => Object.fromEntries(named.map(({ name, template }) => [name, template]))),
]);
const documentSchema = z.object({
  tokenizer: z.looseObject({
    added_tokens: z
      .array(z.looseObject({ id: z.number().int(), content: z.string(), special: z.boolean() }))
      .default([]),
    decoder: decoderSchema.nullish(),
    model: z.looseObject({ vocab: z.union([z.record(z.string(), z.number()), z.array(z.unknown())]) }),
  }),
  config: z.looseObject({ chat_template: templateSchema.nullish() }),
  chatTemplate: z.string().optional(),
});

/** Returns the document that `createTextCodec` reads; deterministic. */
export function encodeTextCodecFiles({ tokenizer, config, chatTemplate }: TextCodecFiles): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ tokenizer, config, chatTemplate }));
}

/**
 * Creates a codec.
 *
 * @throws DarkroomError `model_unsupported` with the file and the problem.
 */
export function createTextCodec(document: Uint8Array): TextCodec {
  const files = parseDocument(document);
  const definition = files.tokenizer;
  const tokenizer = attempt('tokenizer.json', () => new Tokenizer(definition, files.config));
  const bytesOf = attempt('tokenizer.json', () => createTokenBytes(tokenizer, definition.decoder));
  const special = new Set(definition.added_tokens.flatMap((token) => (token.special ? [token.id] : [])));
  const template = readTemplate(files);
  let highest = -1;
  // At least 1, also for an empty vocabulary. Byte-level tokens have at least one letter per character of their text.
  let longestToken = 1;
  for (const [token, id] of tokenizer.get_vocab()) {
    highest = Math.max(highest, id);
    longestToken = Math.max(longestToken, token.length);
  }
  const endToken = specialTokenSchema.safeParse(files.config['eos_token']).data;
  const endId = endToken === undefined ? undefined : tokenizer.token_to_id(endToken);
  if (endToken !== undefined && endId === undefined)
    throw fileError('tokenizer_config.json', `eos_token: ${JSON.stringify(endToken)} is not in the vocabulary`);

  const codec: TextCodec = {
    vocabularySize: highest + 1,
    longestToken,
    endIds: endId === undefined ? [] : [endId],
    hasChatTemplate: template !== undefined,
    calls: template?.calls ?? { reason: 'it has no template for messages' },
    encode: (text, { addSpecialTokens }) => tokenizer.encode(text, { add_special_tokens: addSpecialTokens }).ids,
    renderChat(messages, options) {
      if (template !== undefined) return template.render(messages, options);
      const message = 'messages: the model has no template for them; it takes a prompt';
      throw new DarkroomError('invalid_request', 'text.render-chat', message);
    },
    decode(ids) {
      const detokenizer = new IncrementalDetokenizer(codec);
      return ids.map((id) => detokenizer.push(id).text).join('') + detokenizer.end();
    },
    bytesOf,
    isSpecial: (id) => special.has(id),
  };
  return codec;
}

type Files = z.infer<typeof documentSchema>;

function parseDocument(document: Uint8Array): Files {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(document));
  } catch (error) {
    throw fileError('codec', 'is not JSON', error);
  }
  const result = documentSchema.safeParse(json);
  if (result.success) return result.data;
  const [{ path, message }] = result.error.issues as [z.core.$ZodIssue];
  const [part, ...field] = path;
  const file = part === 'tokenizer' ? 'tokenizer.json' : 'tokenizer_config.json';
  throw fileError(file, field.length === 0 ? message : `${field.join('.')}: ${message}`, result.error);
}

function readTemplate({ tokenizer: definition, config, chatTemplate }: Files): ChatTemplate | undefined {
  const sources = chatTemplate === undefined ? config.chat_template : { default: chatTemplate };
  if (sources == null) return undefined;
  const file = chatTemplate === undefined ? 'tokenizer_config.json: chat_template' : 'chat_template.jinja';
  const specials = definition.added_tokens.flatMap(({ content, special }) => (special ? [content] : []));
  return attempt(file, () => createChatTemplate(sources, specialTexts(config), specials));
}

/** Returns the texts of special tokens by the names that templates use. */
function specialTexts(config: Readonly<Record<string, unknown>>): Record<string, string> {
  const entries = Object.entries(config).flatMap(([name, value]) => {
    const text = name.endsWith('_token') ? specialTokenSchema.safeParse(value).data : undefined;
    return text === undefined ? [] : [[name, text] as const];
  });
  return Object.fromEntries(entries);
}

function attempt<Value>(file: string, make: () => Value): Value {
  try {
    return make();
  } catch (error) {
    throw fileError(file, `cannot be used: ${(error as Error).message}`, error);
  }
}

function fileError(file: string, problem: string, cause?: unknown): DarkroomError {
  const message = `${file}: ${problem}`;
  return new DarkroomError('model_unsupported', 'text.create-codec', message, cause);
}
