/** Output formats and tools for models of upstream servers: what is forwarded and what is rejected. */
import { requestPolicy, upstreamTextCard } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { text } from './text.ts';
import { type UpstreamTextCard, type UpstreamTextInput, writtenCalls } from './upstream-text.ts';

const card: UpstreamTextCard = { ...upstreamTextCard, calls: { markup: writtenCalls } };
const options = requestPolicy;
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

describe('forwards unchanged to the server', () => {
  it.each<[string, object]>([
    ['any JSON', { response_format: { type: 'json_object' } }],
    ['a schema', { response_format: { type: 'json_schema', json_schema: { name: 'x', schema: color } } }],
    ['tools that must not be called', { tools, tool_choice: 'none' }],
  ])('%s', async (_name, body) => {
    const input = await inputOf(body);
    expect(input.params).toEqual({ messages, ...body });
    expect(input).not.toHaveProperty('callMarkup');
  });

  it('tools, and parses their calls in the text', async () => {
    const body = { tools, tool_choice: 'required', parallel_tool_calls: false };
    expect(await inputOf(body)).toMatchObject({ params: { messages, ...body }, callMarkup: writtenCalls });
  });

  it('grammars, and response_format with a prompt, if the server supports them', async () => {
    const able = { ...card, takesGrammar: true, takesFormatOfPrompt: true };
    expect((await inputOf({ grammar: 'root ::= "a"' }, able)).params).toMatchObject({ grammar: 'root ::= "a"' });
    const format = { prompt: 'a', messages: undefined, response_format: { type: 'json_object' } };
    expect((await inputOf(format, able)).params).toEqual({ prompt: 'a', response_format: { type: 'json_object' } });
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
    'calls of another model in the messages',
    {
      messages: [
        ...messages,
        { role: 'assistant', content: '', tool_calls: [{ function: { name: 'a', arguments: '{}' } }] },
      ],
    },
    'nothing: far-away calls no tools, for it has no template',
    { calls: { reason: 'it has no template' } },
  ],
  [
    'two forms',
    { grammar: 'root ::= "a"', response_format: { type: 'json_object' } },
    'nothing beside response_format',
  ],
  ['a regular expression', { regex: 'a' }, 'nothing: the server of far-away has no such field'],
  ['a required tool without tools', { tool_choice: 'required' }, 'auto or none without tools'],
])('rejects %s', async (_name, body, problem, changes = {}) => {
  await expect(inputOf(body, { ...card, ...changes })).rejects.toThrow(problem);
});

it('removes tools from the input if prompts are not retained', async () => {
  const input = await inputOf({ tools });
  expect(text.withoutPrivate(input)).toEqual({ params: {}, n: 1, seed: 42, maxTokens: 4096, callMarkup: writtenCalls });
});

it('shows the tool calls in a text, and has_tools of a model if known', async () => {
  const input = await inputOf({ tools });
  const status = { id: 'r', state: 'running', done: 3, input, model: 'far-away', outputs: [] };
  const answer = '<tool_call>\n{"name": "draw", "arguments": {"color": "red"}}\n</tool_call>';
  expect(text.requestView(status as never, [answer])).toMatchObject({
    texts: [{ tool_calls: [{ id: 'call_r_0_0', function: { name: 'draw', arguments: '{"color": "red"}' } }] }],
    parameters: { tools },
  });
  expect(text.modelView(card)).not.toHaveProperty('has_tools');
  expect(text.modelView({ ...card, hasTools: false })).toMatchObject({ has_tools: false });
});
