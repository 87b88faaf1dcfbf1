/** Compares with recorded results of Python's tokenizers and transformers (tools/golden/record-text-codec.py). */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { ChatMessage } from '../form/chat-message.ts';
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

  it.each(cases)('detokenizes $text token by token to complete characters', ({ ids, decoded }) => {
    const detokenizer = new IncrementalDetokenizer(codec);
    const pieces = ids.map((id) => detokenizer.push(id).text);
    expect(pieces.join('')).toBe(decoded);
    for (const piece of pieces) expect(piece).not.toMatch(/\uFFFD|\p{Surrogate}/u);
    expect(detokenizer.end()).toBe('');
  });
});

describe('a codec', () => {
  it('has the vocabulary size, end ids and special ids of its files', () => {
    expect(codec).toMatchObject({ vocabularySize: 6144, endIds: [2], hasChatTemplate: true });
    expect(codec.calls).toEqual({ reason: 'its template shows no tools' });
    expect([0, 1, 2, 3, 4].map((id) => codec.isSpecial(id))).toEqual([true, true, true, true, false]);
    expect(codec.bytesOf(9000)).toEqual(new Uint8Array(0));
    expect(withBytes.bytesOf(3 + 0xf0)).toEqual(Uint8Array.of(0xf0));
  });

  it('decodes the space character of a Metaspace decoder', () => {
    const { tokenizer } = recorded.byteFallback as { tokenizer: { model: { vocab: Record<string, number> } } };
    const ids = Object.entries(tokenizer.model.vocab).flatMap(([token, id]) => (token.includes('▁') ? [id] : []));
    const texts = (decoder: object) => {
      const codec = codecOf({ tokenizer: { ...tokenizer, decoder }, config: {} });
      return ids.map((id) => codec.decode([id]));
    };
    expect(ids.length).toBeGreaterThan(0);
    const spaces = texts({ type: 'Metaspace', replacement: '▁', prepend_scheme: 'always' });
    expect(spaces).toEqual(texts({ type: 'Replace', pattern: { String: '▁' }, content: ' ' }));
    expect(spaces.join('')).not.toContain('▁');
  });

  it('has the same document for equal files', () => {
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
    [{ config: { chat_template: '{% if %}' } }, 'tokenizer_config.json: chat_template: cannot be used: '],
    [{ chatTemplate: '{% for %}' }, 'chat_template.jinja: cannot be used: '],
  ])('names the file and the field when it rejects %j', (changes, message) => {
    expect(() => codecOf(changes)).toThrow(
      expect.objectContaining({ code: 'model_unsupported', message: expect.stringContaining(message) as string }),
    );
  });

  it('rejects a document that is not JSON', () => {
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
      expect('markup' in codec.calls).toBe(template.includes('tools'));
    },
  );

  it.each(recorded.chats.filter(({ error }) => error !== undefined))(
    'are rejected with the message that the template raises: $error',
    ({ template, messages, error }) => {
      expect(() => withTemplate(template).renderChat(messages)).toThrow(
        expect.objectContaining({
          code: 'invalid_request',
          message: `messages: the model's template does not take them: ${error}`,
        }),
      );
    },
  );

  it('of a role that the template omits are rejected', () => {
    const { template } = recorded.chats.find(({ name }) => name === 'silent')!;
    const messages = [{ role: 'system', content: 'Be brief.' }, user];
    expect(() => withTemplate(template).renderChat(messages)).toThrow(
      `messages.0: the model's template shows no message of the role "system" at this place`,
    );
    expect(() => withTemplate(template).renderChat([user, { role: 'system', content: '' }])).toThrow('messages.1: ');
  });

  it('at a position that the template omits are rejected, however it transforms the others', () => {
    const codec = withTemplate(
      "{% if messages[0].role == 'system' %}<<SYS>>{{ messages[0].content | upper }}{% endif %}" +
        "{% for m in messages %}{% if m.role != 'system' %}[{{ m.content | upper | trim }}]{% endif %}{% endfor %}",
    );
    const system = { role: 'system', content: 'one' };
    expect(codec.renderChat([system, user, user])).toBe('<<SYS>>ONE[MAKE IT BLUE][MAKE IT BLUE]');
    expect(() => codec.renderChat([system, { ...system, content: 'two' }, user])).toThrow(
      `messages.1: the model's template shows no message of the role "system" at this place`,
    );
  });

  it('with tool calls may be rendered without their content', () => {
    const codec = withTemplate(
      '{{ tools | tojson }}{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{% else %}[{{ m.content }}]{% endif %}{% endfor %}',
    );
    const call = { function: { name: 'draw', arguments: '{}' } };
    const called = { role: 'assistant', content: 'I draw.', tool_calls: [call] };
    expect(codec.renderChat([user, called, user])).toBe(
      'null[make it blue]<tool_call>{"name": "draw", "arguments": {}}</tool_call>[make it blue]',
    );
  });

  it('with tool arguments as a JSON string are rendered like those with an object', () => {
    const { template, messages, tools } = recorded.chats.find(
      ({ messages }) => messages.length === 3 && messages[1]!['tool_calls'],
    )!;
    const calls = structuredClone(messages[1]!['tool_calls']) as { function: { arguments: unknown } }[];
    for (const call of calls) call.function.arguments = JSON.stringify(call.function.arguments);
    const sent = messages.map((message, at) => (at === 1 ? { ...message, tool_calls: calls } : message));
    const codec = withTemplate(template);
    expect(codec.renderChat(sent, { tools: tools! })).toBe(codec.renderChat(messages, { tools: tools! }));
  });

  it('with tool results get the name of the tool', () => {
    const { template } = recorded.chats.find(({ name }) => name === 'tools')!;
    const named = template.replace('message.role }}', "message.role + ' ' + (message.name or '') }}");
    const calls = ['draw', 'sing'].map((name) => ({ id: `call of ${name}`, function: { name, arguments: '{}' } }));
    const messages = [
      user,
      { role: 'assistant', content: '', tool_calls: calls },
      { role: 'tool', content: 'done', tool_call_id: 'call of sing' },
      { role: 'tool', content: 'done too', tool_call_id: 'call of draw', name: 'painter' },
    ];
    expect(withTemplate(named).renderChat(messages, { tools: [tool] })).toMatch(
      /<\|im_start\|>tool sing\ndone<.*<\|im_start\|>tool painter\ndone too</s,
    );
  });

  it('with tools are rendered by the template tool_use', () => {
    const { template } = recorded.chats.find(({ name }) => name === 'tools')!;
    const codec = withTemplate([
      { name: 'default', template: '{% for m in messages %}{{ m.content }}{% endfor %}' },
      { name: 'tool_use', template },
    ]);
    expect(codec.calls).toHaveProperty('markup');
    expect(codec.renderChat([user])).toBe('make it blue');
    expect(codec.renderChat([user], { tools: [tool] })).toContain('# Tools');
  });

  it('are rejected with tools if the template has none, and without a template', () => {
    expect(() => codec.renderChat([user], { tools: [tool] })).toThrow(
      'tools: the model calls none: its template shows no tools',
    );
    const called = { role: 'assistant', content: '', tool_calls: [{ function: { name: 'draw', arguments: '{}' } }] };
    expect(() => codec.renderChat([user, called])).toThrow('tools: the model calls none: its template shows no tools');
    const { chat_template: _, ...config } = files.config;
    expect(() => codecOf({ config }).renderChat([user])).toThrow('messages: the model has no template for them');
  });

  it('are rendered by chat_template.jinja rather than the template in tokenizer_config.json', () => {
    expect(codecOf({ chatTemplate: '{{ bos_token }}{{ messages[0].content }}' }).renderChat([user])).toBe(
      '<|im_start|>make it blue',
    );
  });

  it('are rendered without the start of an answer if addGenerationPrompt is false', () => {
    expect(codec.renderChat([user], { addGenerationPrompt: false })).toBe(
      '<|im_start|>user\n make it blue<|im_end|>\n',
    );
  });

  it('are rendered in linear time in the number of tool calls', () => {
    const codec = withTemplate(withNames);
    let reads = 0;
    const count = 2000;
    const messages = Array.from({ length: count }, (_, index): ChatMessage[] => {
      const call = {
        get id() {
          reads += 1;
          return `c${index}`;
        },
        function: { name: `f${index}`, arguments: {} },
      };
      const answer = { role: 'tool', tool_call_id: `c${index}`, content: 'ok' };
      return [{ role: 'assistant', content: '', tool_calls: [call] }, answer];
    }).flat();
    expect(codec.renderChat(messages)).toContain(`f${count - 1}: ok`);
    expect(reads).toBeLessThan(20 * count);
  });

  it('with a repeated call id get the name of the latest call', () => {
    const codec = withTemplate(withNames);
    expect(codec.renderChat([...turn('first'), ...turn('second')])).toMatch(/first: ok.*second: ok/s);
  });
});

function turn(name: string): ChatMessage[] {
  return [
    { role: 'assistant', content: '', tool_calls: [{ id: 'call_0', function: { name, arguments: {} } }] },
    { role: 'tool', tool_call_id: 'call_0', content: 'ok' },
  ];
}

/** Template that shows tool results with the name of the tool. */
const withNames =
  '{{ tools | tojson }}{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}<tool_call>{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}</tool_call>{% endfor %}{% else %}[{{ m.name }}: {{ m.content }}]{% endif %}{% endfor %}';
