/** What answers of other servers' models must be like: what goes to them, and what they cannot do. */
import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, it } from 'vitest';
import type { RequestOptions } from '../../request-fields.ts';
import { createTextCodec, encodeTextCodecFiles } from '../codec/text-codec.ts';
import { Grammars } from '../grammar/grammars.ts';
import type { CallMarkup } from '../form/call-markup.ts';
import { text } from '../text.ts';
import { type UpstreamTextCard, type UpstreamTextInput, writtenCalls } from './upstream-text.ts';

const card: UpstreamTextCard = {
  id: 'far-away',
  created: 1_700_000_000,
  ownedBy: 'others',
  kind: 'text',
  pipeline: 'openai',
  mode: 'autoregressive',
  hasChatTemplate: true,
  calls: { markup: writtenCalls },
  deterministic: { is: false, reason: 'another server runs it' },
};
const options: RequestOptions = {
  timeoutS: { default: 600, max: 3600 },
  webhooks: { allowPrivate: false, progressIntervalMs: 1000 },
  drawSeed: () => 42,
  readAsset: () => Promise.reject(new Error('such a model has none')),
};
const messages = [{ role: 'user', content: 'something cold' }];
const color = { type: 'object', properties: { color: { enum: ['red', 'blue'] } }, required: ['color'] };
const toolOf = (name: string, parameters?: object) => ({ type: 'function', function: { name, parameters } });
const tools = [toolOf('draw', color), toolOf('stop')];

const resolve = (body: object, of = card) => text.resolve({ messages, ...body }, of, options);

async function inputOf(body: object, of = card): Promise<UpstreamTextInput> {
  const result = await resolve(body, of);
  if (result.status === 'invalid') throw new Error(result.problems.map(({ message }) => message).join('; '));
  return result.request.input as UpstreamTextInput;
}

describe('goes to the server as it was sent', () => {
  it.each<[string, object]>([
    ['any JSON', { response_format: { type: 'json_object' } }],
    ['a schema', { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: color } } }],
    ['tools that must not be called', { tools, tool_choice: 'none' }],
  ])('%s', async (_name, body) => {
    const input = await inputOf(body);
    expect(input.asked).toEqual({ messages, ...body });
    expect(input).not.toHaveProperty('callMarkup');
  });

  it('tools, whose calls are looked for in the text', async () => {
    const body = { tools, tool_choice: 'required', parallel_tool_calls: false };
    expect(await inputOf(body)).toMatchObject({ asked: { messages, ...body }, callMarkup: writtenCalls });
    expect(await inputOf(body)).not.toHaveProperty('callGrammar');
  });

  it('grammars, and formats beside a prompt, where the server has them', async () => {
    const able = { ...card, takesGrammar: true, takesFormatOfPrompt: true };
    expect((await inputOf({ grammar: 'root ::= "a"' }, able)).asked).toMatchObject({ grammar: 'root ::= "a"' });
    const format = { prompt: 'a', messages: undefined, response_format: { type: 'json_object' } };
    expect((await inputOf(format, able)).asked).toEqual({ prompt: 'a', response_format: { type: 'json_object' } });
  });
});

it.each<[string, object, string, Partial<UpstreamTextCard>?]>([
  ['a grammar', { grammar: 'root ::= "a"' }, 'nothing: the server of far-away has no such field, send response_format'],
  [
    'a format beside a prompt',
    { prompt: 'a', messages: undefined, response_format: { type: 'json_object' } },
    'nothing beside prompt: the server of far-away takes it with messages',
  ],
  [
    'tools beside a prompt',
    { prompt: 'a', messages: undefined, tools },
    'nothing beside prompt: tools go with messages',
  ],
  [
    'tools',
    { tools },
    'nothing: far-away calls none, for its server says so',
    { calls: { reason: 'its server says so' } },
  ],
  [
    'calls that another model made',
    {
      messages: [
        ...messages,
        { role: 'assistant', content: '', tool_calls: [{ function: { name: 'a', arguments: '{}' } }] },
      ],
    },
    'nothing: far-away calls no tools, for it has no template',
    { calls: { reason: 'it has no template' } },
  ],
  ['two forms', { tools, response_format: { type: 'json_object' } }, 'nothing beside response_format'],
  ['a choice among none', { tool_choice: 'required' }, 'nothing without tools'],
  [
    'arguments that no grammar can be made of',
    { tools: [toolOf('draw', { type: 'object', properties: { n: { type: 'integer', multipleOf: 3 } } })] },
    'tools.0.function.parameters.properties.n.multipleOf',
    { callsByGrammar: true },
  ],
])('is refused with %s', async (_name, body, problem, changes = {}) => {
  await expect(inputOf(body, { ...card, ...changes })).rejects.toThrow(problem);
});

it('keeps none of it where prompts are not kept', async () => {
  const input = await inputOf({ tools }, { ...card, callsByGrammar: true });
  expect(input.callGrammar).toContain('root ::= ');
  expect(text.withoutPrivate(input)).toEqual({ asked: {}, n: 1, seed: 42, maxTokens: 4096, callMarkup: writtenCalls });
  expect(text.heaviestField(await inputOf({ tools, max_tokens: 5 }))).toBe('tools');
});

it('shows the calls in a text, and of a model whether it calls some', async () => {
  const input = await inputOf({ tools });
  const status = { id: 'r', state: 'running', done: 3, input, model: 'far-away', outputs: [] };
  const said = '<tool_call>\n{"name": "draw", "arguments": {"color": "red"}}\n</tool_call>';
  expect(text.requestView(status as never, [said])).toMatchObject({
    texts: [{ tool_calls: [{ id: 'call_r_0_0', function: { name: 'draw', arguments: '{"color": "red"}' } }] }],
    parameters: { tools },
  });
  expect(text.modelView(card)).not.toHaveProperty('has_tools');
  expect(text.modelView({ ...card, hasTools: false })).toMatchObject({ has_tools: false });
});

const listOf = (...calls: string[]) => `[CALLS] [${calls.join(', ')}]`;

describe('a grammar of calls', () => {
  const model = new URL('../../../../../models/emoji-writer/', import.meta.url);
  const read = (file: string): object => JSON.parse(readFileSync(new URL(file, model), 'utf8')) as object;
  const codecDocument = encodeTextCodecFiles({
    // The writer reads capitals as small letters: such a text would not be what is allowed or not.
    tokenizer: { ...read('tokenizer.json'), normalizer: null },
    config: read('tokenizer_config.json'),
  });
  const codec = createTextCodec(codecDocument);
  const end = codec.endIds[0]!;
  const grammars = new Grammars({ vocabulary: { codecDocument, endIds: codec.endIds } });
  afterAll(() => grammars.dispose());

  /** How much of a text a grammar allows, and whether it may end there. */
  async function allowed(grammar: string, said: string): Promise<{ text: string; mayEnd: boolean }> {
    const matcher = grammars.open({ type: 'grammar', grammar });
    let taken = '';
    const may = async (id: number): Promise<boolean> => {
      await matcher.whenKnown();
      const { next } = matcher;
      if (next?.type !== 'allowed') throw new Error(next?.problem);
      return (next.words[id >> 5]! >> (id & 31)) % 2 !== 0 || (id === end && next.isEnd);
    };
    for (const id of codec.encode(said, { addSpecialTokens: false })) {
      if (!(await may(id))) break;
      matcher.accept(id);
      taken += codec.decode([id]);
    }
    const mayEnd = await may(end);
    matcher.close();
    return { text: taken, mayEnd };
  }

  const listed = { ...writtenCalls, open: '[CALLS] [', begin: '{"name": "', end: '}', separator: ', ', close: ']' };
  const draw = '<tool_call>\n{"name": "draw", "arguments": {"color": "red"}}\n</tool_call>';
  const stop = '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>';
  const [drawn, stopped] = ['{"name": "draw", "arguments": {"color": "red"}}', '{"name": "stop", "arguments": {}}'];

  const ways: [name: string, body: object, markup: CallMarkup, whole: string[], cut: [string, string][]][] = [
    [
      'text and calls',
      {},
      writtenCalls,
      ['', 'so <tool', 'a < b <<tool_cal', draw, `so\n${draw}\n${stop} and`, `<tool_${draw}`],
      [
        [draw.slice(0, -30), draw.slice(0, -30)],
        ['<tool_call>\n{"name": "sing"', '<tool_call>\n{"name": "s'],
        ['<tool_call>\n{"name": "draw", "arguments": {"colour', '<tool_call>\n{"name": "draw", "arguments": {"colo'],
      ],
    ],
    ['one call at most', { parallel_tool_calls: false }, writtenCalls, ['so', `so ${draw}`], [[`${draw} and`, draw]]],
    ['calls and nothing else', { tool_choice: 'required' }, writtenCalls, [draw, `${stop}\n${draw}`], [['so', '']]],
    ['one call', { tool_choice: 'required', parallel_tool_calls: false }, writtenCalls, [stop], [[`${stop}\n`, stop]]],
    [
      'this call',
      { tool_choice: { type: 'function', function: { name: 'stop' } } },
      writtenCalls,
      [stop],
      [[draw, '<tool_call>\n{"name": "']],
    ],
    [
      'text and a list',
      {},
      listed,
      ['so', listOf(drawn, stopped), `so ${listOf(stopped)}`],
      [[`${listOf(drawn)} and`, listOf(drawn)]],
    ],
    ['a list', { tool_choice: 'required' }, listed, [listOf(drawn), listOf(stopped, drawn)], [['so', '']]],
  ];
  it.each(ways)('allows %s', async (_name, body, markup, whole, cut) => {
    const { callGrammar: grammar } = await inputOf(
      { tools, ...body },
      { ...card, callsByGrammar: true, calls: { markup } },
    );
    for (const said of whole) expect(await allowed(grammar!, said)).toEqual({ text: said, mayEnd: true });
    for (const [said, taken] of cut) {
      const { text: got } = await allowed(grammar!, said);
      // A token may have more than what is allowed of it.
      expect(taken.startsWith(got) && got.length > taken.length - 6, `${said} comes to ${got}`).toBe(true);
    }
  });
});
