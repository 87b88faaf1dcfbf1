/** Against what Python's tokenizers and transformers made of the same texts: tools/golden/record-text-codec.py. */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ChatMessage } from './chat-template.ts';
import { IncrementalDetokenizer } from './incremental-detokenizer.ts';
import { createTextCodec, encodeTextCodecFiles } from './text-codec.ts';

interface Case {
  text: string;
  ids: number[];
  decoded: string;
}
interface Chat {
  name: string;
  template: string;
  messages: ChatMessage[];
  tools: object[] | null;
  text?: string;
  error?: string;
}

const root = resolve(import.meta.dirname, '../../../../..');
const readJson = (file: string): unknown => JSON.parse(readFileSync(join(root, file), 'utf8'));
const recorded = readJson('tools/golden/vectors/text-codec.json') as {
  byteLevel: Case[];
  byteFallback: { tokenizer: object; cases: Case[] };
  chats: Chat[];
};
const files = {
  tokenizer: readJson('models/emoji-writer/tokenizer.json') as Record<string, unknown>,
  config: readJson('models/emoji-writer/tokenizer_config.json') as Record<string, unknown>,
};
const codecOf = (changes: object = {}) => createTextCodec(encodeTextCodecFiles({ ...files, ...changes }));
const codec = codecOf();
const withTemplate = (chat_template: unknown) => codecOf({ config: { ...files.config, chat_template } });
const withBytes = codecOf({ tokenizer: recorded.byteFallback.tokenizer, config: {} });

describe.each([
  ['of bytes', codec, recorded.byteLevel],
  ['of text that falls back to bytes', withBytes, recorded.byteFallback.cases],
])('a codec with a vocabulary %s', (_, codec, cases) => {
  it.each(cases)('encodes and decodes $text', ({ text, ids, decoded }) => {
    expect(codec.encode(text, { addSpecialTokens: false })).toEqual(ids);
    expect(codec.decode(ids)).toBe(decoded);
  });

  it.each(cases)('gives whole characters of $text, token by token', ({ ids, decoded }) => {
    const detokenizer = new IncrementalDetokenizer(codec);
    const pieces = ids.map((id) => detokenizer.push(id).text);
    expect(pieces.join('')).toBe(decoded);
    for (const piece of pieces) expect(piece).not.toMatch(/\uFFFD|\p{Surrogate}/u);
    expect(detokenizer.end()).toBe('');
  });
});

describe('a codec', () => {
  it('knows its ids, and which of them end a text and have none', () => {
    expect(codec).toMatchObject({ vocabularySize: 2048, endIds: [2], hasChatTemplate: true, hasTools: false });
    expect([0, 1, 2, 3, 4].map((id) => codec.isSpecial(id))).toEqual([true, true, true, true, false]);
    expect(codec.bytesOf(9000)).toEqual(new Uint8Array(0));
    expect(withBytes.bytesOf(3 + 0xf0)).toEqual(Uint8Array.of(0xf0));
  });

  it('is made again from the same bytes', () => {
    expect(encodeTextCodecFiles(files)).toEqual(encodeTextCodecFiles(structuredClone(files)));
  });

  it.each([
    [{ tokenizer: { model: { type: 'BPE' } } }, 'tokenizer.json: model.vocab: '],
    [
      { tokenizer: { ...files.tokenizer, decoder: { type: 'CTC' } } },
      'tokenizer.json: cannot be used: decoder: CTC is',
    ],
    [{ tokenizer: { ...files.tokenizer, normalizer: { type: 'Telepathy' } } }, 'tokenizer.json: cannot be used: '],
    [{ config: { eos_token: '<end>' } }, 'tokenizer_config.json: eos_token: "<end>" is not in the vocabulary'],
    [{ config: { chat_template: 7 } }, 'tokenizer_config.json: chat_template: '],
    [{ config: { chat_template: '{% if %}' } }, 'tokenizer_config.json: cannot be used: '],
    [{ chatTemplate: '{% for %}' }, 'chat_template.jinja: cannot be used: '],
  ])('names the file and the field of %j', (changes, message) => {
    expect(() => codecOf(changes)).toThrow(
      expect.objectContaining({ code: 'model_unsupported', message: expect.stringContaining(message) as string }),
    );
  });

  it('is not made of what is no JSON', () => {
    expect(() => createTextCodec(Uint8Array.of(0xff))).toThrow('codec: is not JSON');
  });
});

describe('messages', () => {
  const user = { role: 'user', content: 'make it blue' };
  const tool = { type: 'function', function: { name: 'draw', parameters: { type: 'object', properties: {} } } };

  it.each(recorded.chats.filter(({ text }) => text !== undefined))(
    'are rendered by the template $name as transformers does',
    ({ template, messages, tools, text }) => {
      const codec = withTemplate(template);
      expect(codec.renderChat(messages, tools === null ? {} : { tools })).toBe(text);
      expect(codec.hasTools).toBe(template.includes('tools'));
    },
  );

  it.each(recorded.chats.filter(({ error }) => error !== undefined))(
    'that a template throws at are refused in its words: $error',
    ({ template, messages, error }) => {
      expect(() => withTemplate(template).renderChat(messages)).toThrow(
        expect.objectContaining({
          code: 'invalid_request',
          message: `messages: the model's template does not take them: ${error}`,
        }),
      );
    },
  );

  it('of a role that the template passes over are refused', () => {
    const { template } = recorded.chats.find(({ name }) => name === 'silent')!;
    const messages = [{ role: 'system', content: 'Be brief.' }, user];
    expect(() => withTemplate(template).renderChat(messages)).toThrow(`the model's template has no role "system"`);
  });

  it('with arguments in a string are shown as those with an object', () => {
    const { template, messages, tools } = recorded.chats.find(
      ({ messages }) => messages.length === 3 && messages[1]!['tool_calls'],
    )!;
    const calls = structuredClone(messages[1]!['tool_calls']) as { function: { arguments: unknown } }[];
    for (const call of calls) call.function.arguments = JSON.stringify(call.function.arguments);
    const sent = messages.map((message, at) => (at === 1 ? { ...message, tool_calls: calls } : message));
    const codec = withTemplate(template);
    expect(codec.renderChat(sent, { tools: tools! })).toBe(codec.renderChat(messages, { tools: tools! }));
  });

  it('with tools take the template that is for them', () => {
    const { template } = recorded.chats.find(({ name }) => name === 'tools')!;
    const codec = withTemplate([
      { name: 'default', template: '{% for m in messages %}{{ m.content }}{% endfor %}' },
      { name: 'tool_use', template },
    ]);
    expect(codec.hasTools).toBe(true);
    expect(codec.renderChat([user])).toBe('make it blue');
    expect(codec.renderChat([user], { tools: [tool] })).toContain('# Tools');
  });

  it('are refused with tools that the template does not know, and without a template', () => {
    expect(() => codec.renderChat([user], { tools: [tool] })).toThrow("tools: the model's template has none");
    const { chat_template: _, ...config } = files.config;
    expect(() => codecOf({ config }).renderChat([user])).toThrow('messages: the model has no template for them');
  });

  it('take the template of a file of its own before that of tokenizer_config.json', () => {
    expect(codecOf({ chatTemplate: '{{ bos_token }}{{ messages[0].content }}' }).renderChat([user])).toBe(
      '<|im_start|>make it blue',
    );
  });

  it('end with the answer of the model where it is not to begin a new one', () => {
    expect(codec.renderChat([user], { addGenerationPrompt: false })).toBe('<|im_start|>user\nmake it blue<|im_end|>\n');
  });
});
