/** Output formats and tools, from the request body to the engine's constraint. */
import { readFileSync } from 'node:fs';
import type { RequestSnapshot } from '@darkroom/core';
import { requestPolicy, textCard, toolTemplate } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import type { RequestPolicy } from '../../request/request-fields.ts';
import { encodeTextCodecFiles } from '../codec/text-codec.ts';
import type { TextCard, TextInput } from './text-input.ts';
import { text } from '../text.ts';

const model = new URL('../../../../../models/emoji-writer/', import.meta.url);
const read = (file: string): object => JSON.parse(readFileSync(new URL(file, model), 'utf8')) as object;
const files = { tokenizer: read('tokenizer.json'), config: read('tokenizer_config.json') };
const documents: Record<string, Uint8Array> = {
  'with tools': encodeTextCodecFiles({ ...files, chatTemplate: toolTemplate }),
  plain: encodeTextCodecFiles(files),
};

const card: TextCard = { ...textCard, id: 'caller', codec: 'with tools', hasTools: true };
const plain: TextCard = { ...card, id: 'plain', codec: 'plain', hasTools: false };
const blocks: TextCard = { ...card, mode: 'block_diffusion', block: { size: 8, confidenceThreshold: 0.9 } };

const options: RequestPolicy = {
  ...requestPolicy,
  readAsset: (_id, name) => Promise.resolve(documents[name]!),
};

const messages = [{ role: 'user', content: 'something cold' }];
const color = { type: 'object', properties: { color: { enum: ['red', 'blue'] } }, required: ['color'] };
const toolOf = (name: string, parameters: unknown = color) => ({ type: 'function', function: { name, parameters } });
const draw = toolOf('draw');
const sing = toolOf('sing', { type: 'object', properties: { loud: { type: 'boolean' } } });
const format = (schema: unknown) => ({ type: 'json_schema', json_schema: { name: 'x', schema } });

async function inputOf(body: object, of = card): Promise<TextInput> {
  const result = await text.resolve({ messages, ...body }, of, options);
  if (result.status === 'invalid') throw new Error(result.problems.map(({ message }) => message).join('; '));
  return result.request.input as TextInput;
}

async function problemsOf(body: object, of = card): Promise<string[]> {
  const result = await text.resolve({ messages, ...body }, of, options);
  return result.status === 'invalid' ? result.problems.map(({ message }) => message) : [];
}

/** Returns the expected tag of a call: its markers, and the schema of its arguments. */
const tagOf = (name: string) => ({
  type: 'tag',
  begin: `<tool_call>\n{"name": "${name}", "arguments": `,
  content: { type: 'json_schema', json_schema: expect.objectContaining({ type: 'object' }) as object },
  end: '}\n</tool_call>',
});

describe('constrains an answer to', () => {
  it('JSON, of any object or of a schema', async () => {
    const { constraint, form } = await inputOf({ response_format: { type: 'json_object' } });
    expect(constraint).toMatchObject({ type: 'json_schema', json_schema: { type: 'object' } });
    expect(form).toEqual({ response_format: { type: 'json_object' } });
    const ofSchema = await inputOf({ response_format: format(color) });
    expect(ofSchema.constraint).toMatchObject({ type: 'json_schema', json_schema: color });
  });

  it('a grammar', async () => {
    const grammar = 'root ::= "a " ("red" | "blue") " fox"';
    expect((await inputOf({ grammar })).constraint).toMatchObject({ type: 'grammar', grammar });
  });

  it('nothing if only text is requested', async () => {
    const noTools = [
      { tools: [] },
      { tools: [], tool_choice: 'auto', parallel_tool_calls: false },
      { tools: [], tool_choice: 'none' },
      { tool_choice: 'auto' },
      { parallel_tool_calls: false },
    ];
    const texts = [{}, { response_format: { type: 'text' } }, { tools: [draw], tool_choice: 'none' }, ...noTools];
    for (const body of texts) {
      const input = await inputOf(body);
      expect(input).not.toHaveProperty('constraint');
      expect(input).not.toHaveProperty('callMarkup');
      expect(input.prompt).toEqual((await inputOf({})).prompt);
    }
  });

  it('text with optional calls, and shows the tools to the model', async () => {
    const { constraint, callMarkup, prompt } = await inputOf({ tools: [draw, sing] });
    expect(constraint).toMatchObject({
      type: 'triggered_tags',
      trigger: '<tool_call>',
      tags: [tagOf('draw'), tagOf('sing')],
      stop_after_first: false,
    });
    expect(callMarkup).toMatchObject({ begin: '<tool_call>\n{"name": "', separator: '\n' });
    expect(prompt.length).toBeGreaterThan((await inputOf({})).prompt.length);
  });

  it.each<[string, object, object]>([
    [
      'at most one call',
      { parallel_tool_calls: false },
      { type: 'triggered_tags', tags: [tagOf('draw'), tagOf('sing')], stop_after_first: true },
    ],
    [
      'at least one call',
      { tool_choice: 'required' },
      {
        type: 'tags_with_separator',
        tags: [tagOf('draw'), tagOf('sing')],
        separator: '\n',
        stop_after_first: false,
      },
    ],
    [
      'one call',
      { tool_choice: 'required', parallel_tool_calls: false },
      { type: 'tags_with_separator', stop_after_first: true },
    ],
    [
      'a call of this tool',
      { tool_choice: { type: 'function', function: { name: 'sing' } } },
      { type: 'tags_with_separator', tags: [tagOf('sing')], stop_after_first: true },
    ],
  ])('%s', async (_name, body, constraint) =>
    expect((await inputOf({ tools: [draw, sing], ...body })).constraint).toMatchObject(constraint),
  );

  it('tool calls or a form, if both are requested', async () => {
    const both = { tools: [draw, sing], response_format: format(color) };
    const { constraint: form } = await inputOf({ response_format: format(color) });
    const calls = { type: 'tags_with_separator', tags: [tagOf('draw'), tagOf('sing')], stop_after_first: false };
    expect((await inputOf(both)).constraint).toMatchObject({
      type: 'or',
      elements: [calls, { type: 'json_schema', json_schema: color }],
    });
    expect((await inputOf({ ...both, parallel_tool_calls: false })).constraint).toMatchObject({
      elements: [{ ...calls, stop_after_first: true }, {}],
    });
    const required = await inputOf({ ...both, tool_choice: 'required' });
    expect(required.constraint).toMatchObject({ type: 'tags_with_separator', tags: [tagOf('draw'), tagOf('sing')] });
    expect((await inputOf({ ...both, tool_choice: 'none' })).constraint).toEqual(form);
    expect((await inputOf({ ...both, tools: [] })).constraint).toEqual(form);
    const grammar = 'root ::= "root " my-fox # my fox\nmy-fox ::= [a-z]';
    expect((await inputOf({ tools: [draw], grammar })).constraint).toMatchObject({
      type: 'or',
      elements: [{ tags: [tagOf('draw')] }, { type: 'grammar', grammar }],
    });
  });

  it('a regular expression', async () => {
    expect((await inputOf({ regex: '(red|blue) fox' })).constraint).toMatchObject({
      type: 'regex',
      pattern: '(red|blue) fox',
    });
  });

  it('tools without parameters', async () => {
    const { constraint } = await inputOf({ tools: [{ type: 'function', function: { name: 'stop' } }] });
    expect(constraint).toMatchObject({ tags: [{ begin: expect.stringContaining('stop') as string }] });
  });
});

it('renders earlier tool calls and their results, and rejects them if the model has no tools', async () => {
  const calls = [{ id: 'call_1', type: 'function', function: { name: 'draw', arguments: '{"color": "red"}' } }];
  const body = {
    messages: [
      ...messages,
      { role: 'assistant', content: '', tool_calls: calls },
      { role: 'tool', content: 'done', tool_call_id: 'call_1' },
    ],
    tools: [draw],
  };
  const { prompt } = await inputOf(body);
  expect(await problemsOf({ ...body, messages }, plain)).toEqual([
    expect.stringMatching(/^tools is .*, expected nothing: plain calls none, for its template shows no tools$/),
  ]);
  expect(await problemsOf({ messages: body.messages }, plain)).toEqual([
    expect.stringMatching(
      /^messages\.1\.tool_calls is \[.*, expected nothing: plain calls no tools, for its template shows no tools$/,
    ),
  ]);
  const others = {
    ...body,
    messages: [body.messages[0]!, { ...body.messages[1]!, tool_calls: null }, body.messages[2]!],
  };
  expect((await inputOf(others)).prompt.length).toBeLessThan(prompt.length);
});

describe('rejects with the field, the value received and what was expected:', () => {
  const tooMany = Array.from({ length: 129 }, (_, at) => toolOf(`tool${at}`));
  const used = { response_format: { type: 'json_object' }, grammar: 'root ::= "a"' };
  it.each<[object, string | RegExp, TextCard?]>([
    [{ response_format: 'json' }, 'response_format is "json", expected an object such as {"type": "json_object"}'],
    [
      { response_format: { type: 'xml' } },
      'response_format.type is "xml", expected one of text, json_object, json_schema',
    ],
    [
      { response_format: { type: 'json_schema' } },
      'response_format.json_schema is missing, expected an object {"name", "schema"}',
    ],
    [
      { response_format: { type: 'json_schema', json_schema: { name: 'x' } } },
      'response_format.json_schema.schema is missing, expected a JSON Schema, as an object',
    ],
    [
      { response_format: format({ type: 'object', properties: { a: { type: 'integer', contains: {} } } }) },
      /^response_format\.json_schema\.schema\.properties\.a\.contains: is not supported/,
    ],
    [{ grammar: 'root = 7' }, /^grammar: /],
    [{ grammar: '' }, 'grammar is "", expected text of 1 to 100000 characters'],
    [used, 'grammar is "root ::= \\"a\\"", expected nothing beside response_format'],
    [
      { response_format: { type: 'json_object' }, ignore_eos: true },
      'ignore_eos is true, expected false beside response_format: an answer in a form ends where the form does',
    ],
    [
      { response_format: { type: 'json_object' } },
      'response_format is {"type":"json_object"}, expected nothing: caller writes several tokens at once, and keeps to no form',
      blocks,
    ],
    [{ tools: [draw] }, /^tools is .*, expected nothing: caller writes several tokens at once/, blocks],
    [{ tools: [draw] }, /^tools is .*, expected nothing: plain calls none, for its template shows no tools$/, plain],
    [{ tools: [], tool_choice: 'required' }, 'tool_choice is "required", expected auto or none without tools'],
    [{ tools: tooMany }, 'tools has 129 tools, expected at most 128'],
    [{ tools: [7] }, 'tools.0 is 7, expected a tool {"type": "function", "function": {"name", "parameters"}}'],
    [{ tools: [{ ...draw, type: 'code' }] }, 'tools.0.type is "code", expected "function"'],
    [
      { tools: [toolOf('two words')] },
      'tools.0.function.name is "two words", expected 1 to 64 of the letters a to z and A to Z, digits, _ and -',
    ],
    [{ tools: [toolOf('n'.repeat(65))] }, /^tools\.0\.function\.name is "n+… \(65 characters\), expected 1 to 64 /],
    [{ tools: [draw, draw] }, 'tools.1.function.name is "draw", expected a name that no other tool has'],
    [
      { tools: [toolOf('draw', { type: 'array' })] },
      'tools.0.function.parameters.type is "array", expected "object": tools take an object',
    ],
    [
      { tools: [toolOf('draw', 'color')] },
      /^tools\.0\.function\.parameters is "color", expected a JSON Schema of an object: /,
    ],
    [
      { tools: [draw, toolOf('sing', { type: 'object', not: {} })] },
      /^tools\.1\.function\.parameters\.not: is not supported/,
    ],
    [
      { tool_choice: { type: 'function', function: { name: 'draw' } } },
      /^tool_choice is .*, expected auto or none without tools$/,
    ],
    [{ regex: '(' }, /^regex: /],
    [{ regex: 'a', grammar: 'root ::= "a"' }, 'regex is "a", expected nothing beside grammar'],
    [
      { tools: [draw], tool_choice: 'any' },
      'tool_choice is "any", expected auto, none, required, or {"type": "function", "function": {"name"}}',
    ],
    [
      { tools: [draw, sing], tool_choice: { type: 'function', function: { name: 'dance' } } },
      'tool_choice.function.name is "dance", expected the name of one of tools: draw, sing',
    ],
    [
      { messages: [{ role: 'assistant', content: '', tool_calls: [{ id: 'x' }] }] },
      'messages.0.tool_calls.0.function is missing, expected an object {"name", "arguments"}',
    ],
  ])('%j', async (body, problem, of?) => {
    const problems = await problemsOf(body, of);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(problem);
  });
});

const call = (json: string) => `<tool_call>\n{"name": "draw", "arguments": ${json}}\n</tool_call>`;
const requestOf = (input: unknown): RequestSnapshot =>
  ({ id: 'caller-1', model: 'caller', state: 'running', done: 3, input, outputs: [] }) as unknown as RequestSnapshot;

describe('views', () => {
  it('have the calls in a text, also if prompts are not retained', async () => {
    const input = await inputOf({ tools: [draw] });
    const answer = `See.\n${call('{"color": "red"}')}`;
    for (const kept of [input, text.withoutPrivate(input)])
      expect(text.requestView(requestOf(kept), [answer, 'no call'])).toMatchObject({
        texts: [
          {
            index: 0,
            text: answer,
            tool_calls: [
              {
                id: 'call_caller-1_0_0',
                type: 'function',
                function: { name: 'draw', arguments: '{"color": "red"}' },
              },
            ],
          },
          { index: 1, text: 'no call' },
        ],
      });
  });

  it('have a body that reproduces the same texts', async () => {
    const body = { tools: [draw, sing], tool_choice: 'required', parallel_tool_calls: false };
    const input = await inputOf(body);
    const { parameters } = text.requestView(requestOf(input), []) as { parameters: object };
    expect(parameters).toMatchObject(body);
    const { prompt: _prompt, model: _model, ...again } = parameters as { prompt: unknown; model: unknown };
    expect(await inputOf({ ...again, messages: undefined, prompt: input.prompt })).toEqual(input);
  });

  it('have no form after the end if prompts are not retained', async () => {
    const kept = text.withoutPrivate(await inputOf({ response_format: format(color) }));
    expect(JSON.stringify(kept)).not.toContain('red');
  });
});
