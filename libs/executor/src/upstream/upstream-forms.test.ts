/** Tests structured output and tools: the bodies sent to servers, and the calls in their answers. */
import type { ServerResponse } from 'node:http';
import {
  readCalls,
  type UpstreamTextParams,
  type UpstreamTextCard,
  type UpstreamTextInput,
  writtenCalls,
} from '@darkroom/kinds';
import { toolTemplate } from '@darkroom/testing';
import { describe, expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ToyLlamaCpp } from '../testing/toy-llama-cpp.ts';
import { ToyOpenai } from '../testing/toy-openai.ts';
import type { ToyServer } from '../testing/toy-server.ts';
import { createLlamaCpp } from './llama-cpp.ts';
import { createOpenai } from './openai.ts';
import { UpstreamExecutor } from './upstream-executor.ts';
import type { CreateUpstreamProtocol } from './upstream-protocol.ts';

const messages = [{ role: 'user', content: 'what is the weather in Oslo?' }];
const schema = { type: 'object', properties: { city: { type: 'string' } } };
const tools: UpstreamTextParams['tools'] = [
  { type: 'function', function: { name: 'look', parameters: { ...schema, type: 'object' } } },
];
const format: UpstreamTextParams['response_format'] = { type: 'json_schema', json_schema: { name: 'x', schema } };

async function open(toy: ToyServer, createProtocol: CreateUpstreamProtocol) {
  const log = new EventLog();
  const url = await toy.start();
  const options = { url, createProtocol, model: 'toy_writer', maxSlots: 2, onEvents: log.listener };
  const executor = new UpstreamExecutor(options);
  onTestFinished(async () => {
    await executor.shutdown();
    await toy.stop();
  });
  const card = (await executor.start()) as UpstreamTextCard;
  let count = 0;
  const write = (params: UpstreamTextParams, changes: Partial<UpstreamTextInput> = {}) => {
    const id = `${count++}`;
    executor.submit([{ id, input: { params: { max_tokens: 2, ...params }, n: 1, seed: 1, maxTokens: 2, ...changes } }]);
    return log.end(id);
  };
  return { toy, log, card, write };
}

const openOpenai = (entry: object = {}) => {
  const toy = new ToyOpenai();
  toy.models = [{ id: 'toy_writer', object: 'model', created: 7, owned_by: 'toys', ...entry }];
  return open(toy, createOpenai);
};

const call = (index: number, name: string | undefined, args: string) => ({
  delta: {
    tool_calls: [{ index, ...(name && { id: `x${index}`, type: 'function' }), function: { name, arguments: args } }],
  },
  finish_reason: null,
});
const ended = (reason = 'tool_calls') => ({ delta: {}, finish_reason: reason });
const contentChunk = (content: string) => ({ delta: { content }, finish_reason: null });

function sendChoices(response: ServerResponse, choices: object[]): void {
  response.writeHead(200, { 'Content-Type': 'text/event-stream' });
  for (const choice of choices) response.write(`data: ${JSON.stringify({ choices: [{ index: 0, ...choice }] })}\n\n`);
  response.end('data: [DONE]\n\n');
}

/** Runs a chat whose answer consists of these chunks. */
async function answered(choices: object[]) {
  const { toy, log, write } = await openOpenai();
  toy.fault = (_request, response, body) => {
    if (body === undefined) return false;
    sendChoices(response, choices);
    return true;
  };
  const end = await write({ messages, tools }, { callMarkup: writtenCalls });
  const text = log.of('delta').reduce((grown, { offset, text: more }) => grown.slice(0, offset) + more, '');
  const [output] = log
    .of('output')
    .map(({ output: { data, facts } }) => ({ facts, text: new TextDecoder().decode(data) }));
  return { end, text, output, parsed: readCalls(writtenCalls, text) };
}

describe("OpenAI's API", () => {
  it('receives response formats and tools unchanged', async () => {
    const { toy, write } = await openOpenai();
    const made = [{ id: 'x', type: 'function', function: { name: 'look', arguments: { city: 'Oslo' } } }];
    const all = [
      ...messages,
      { role: 'assistant', content: '', tool_calls: made },
      { role: 'tool', content: 'rain', tool_call_id: 'x' },
    ];
    const params = { messages: all, tools, tool_choice: 'auto', parallel_tool_calls: false } as const;
    await write(params, { callMarkup: writtenCalls });
    await write({ messages, response_format: format });
    const [first, second] = toy.bodies;
    // OpenAI's API takes arguments as a JSON string.
    const madeThere = [{ ...made[0]!, function: { name: 'look', arguments: '{"city":"Oslo"}' } }];
    expect(first).toMatchObject({
      ...params,
      messages: [all[0], { role: 'assistant', tool_calls: madeThere }, all[2]],
    });
    expect(second).toMatchObject({ response_format: format });
  });

  it('sends a schema with a prompt in the format of its server', async () => {
    const entries = [{ owned_by: 'llamacpp' }, { owned_by: 'vllm' }, { kind: 'text' }, {}];
    const found = await Promise.all(
      entries.map(async (entry) => {
        const { toy, write, card } = await openOpenai(entry);
        await write({ prompt: 'a', response_format: format });
        const { response_format, json_schema } = toy.bodies[0]!;
        return { response_format, json_schema, takes: [card.takesGrammar, card.takesFormatOfPrompt] };
      }),
    );
    expect(found).toEqual([
      { json_schema: schema, takes: [true, true] },
      { response_format: format, takes: [false, true] },
      { response_format: format, takes: [true, true] },
      { response_format: format, takes: [false, false] },
    ]);
  });

  it('reports tool support on the card', async () => {
    const cards = await Promise.all(
      [{}, { has_tools: true }, { has_tools: false }].map(async (entry) => (await openOpenai(entry)).card),
    );
    expect(cards.map(({ hasTools, calls }) => [hasTools, calls])).toEqual([
      [undefined, { markup: writtenCalls }],
      [true, { markup: writtenCalls }],
      [false, { reason: 'its server says so' }],
    ]);
  });

  it('adopts the limits that the server reports', async () => {
    const { card } = await openOpenai({ owned_by: 'llamacpp', meta: { n_ctx: 512, n_vocab: 49_152 } });
    expect(card).toMatchObject({ maxModelTokens: 512, vocabularySize: 49_152 });
  });

  it('writes chunked and parallel tool calls into the text', async () => {
    const { end, text, output, parsed } = await answered([
      contentChunk('I look.'),
      call(0, 'look', ''),
      call(0, undefined, ' {"city": '),
      call(0, undefined, '"Oslo"} \n'),
      call(1, 'stop', ''),
      call(2, 'look', '{"city": "Rome"}'),
      ended(),
    ]);
    expect(end).toMatchObject({ type: 'request-done' });
    expect(parsed).toEqual({
      text: 'I look.',
      calls: [
        { name: 'look', arguments: '{"city": "Oslo"}' },
        { name: 'stop', arguments: '{}' },
        { name: 'look', arguments: '{"city": "Rome"}' },
      ],
    });
    expect(output).toMatchObject({ text, facts: { finish_reason: 'stop' } });
    const calls = parsed.calls.map(
      (each) => `<tool_call>\n{"name": "${each.name}", "arguments": ${each.arguments}}\n</tool_call>`,
    );
    expect(text).toBe(`I look.${calls.join('\n')}`);
  });

  it('keeps the received part of a truncated call', async () => {
    const { parsed, output } = await answered([call(0, 'look', '{"city": "Os'), ended('length')]);
    expect(parsed.calls).toEqual([{ name: 'look', arguments: '{"city": "Os' }]);
    expect(output).toMatchObject({ facts: { finish_reason: 'length' } });
  });

  it('loses a text whose calls cannot be separated', async () => {
    const { end } = await answered([call(0, 'look', '{"city": '), call(1, 'look', '{}'), ended()]);
    expect(end).toMatchObject({
      type: 'request-lost',
      message: expect.stringMatching(/^http:.* sent a call whose arguments are not a JSON object/) as string,
    });
  });
});

const openLlama = (template?: string) => {
  const toy = new ToyLlamaCpp();
  if (template !== undefined) toy.template = template;
  return open(toy, createLlamaCpp);
};

describe("llama.cpp's API", () => {
  it('receives schemas and grammars in its own fields', async () => {
    const { toy, write } = await openLlama();
    await write({ prompt: 'a', response_format: format });
    await write({ prompt: 'a', response_format: { type: 'json_object' } });
    await write({ prompt: 'a', grammar: 'root ::= "a"' });
    await write({ prompt: 'a', response_format: { type: 'text' } });
    expect(toy.bodies.map(({ json_schema, grammar }) => ({ json_schema, grammar }))).toEqual([
      { json_schema: schema },
      { json_schema: { type: 'object' } },
      { grammar: 'root ::= "a"' },
      {},
    ]);
    for (const body of toy.bodies) expect(body).not.toHaveProperty('response_format');
  });

  it('receives other parameters in its own fields', async () => {
    const { toy, write } = await openLlama();
    const same = { temperature: 0.5, top_k: 5, min_p: 0.1, presence_penalty: 1, ignore_eos: true };
    const ours = { max_tokens: 2, stop: 'x', logit_bias: { 5: -1 }, logprobs: true, top_logprobs: 3 };
    await write({ prompt: 'a', ...same, ...ours }, { logprobs: 3 });
    await write({ prompt: 'b', max_tokens: 2, stop: ['x', 'y'], logprobs: true }, { logprobs: 0 });
    const [first, second] = toy.bodies;
    const theirs = { n_predict: 2, stop: ['x'], logit_bias: [[5, -1]], n_probs: 3 };
    expect(first).toEqual({ prompt: 'a', seed: 1, stream: true, ...same, ...theirs });
    // With n_probs 0 the server omits the log probability of the chosen token.
    expect(second).toEqual({ prompt: 'b', seed: 1, stream: true, n_predict: 2, stop: ['x', 'y'], n_probs: 1 });
  });

  it('reports the stop string', async () => {
    const { toy, log, write } = await openLlama();
    toy.fault = (_request, response, body) => {
      if (body === undefined) return false;
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      const last = { content: '', stop: true, stop_type: 'word', stopping_word: 'x', tokens_predicted: 9 };
      response.write(`data: ${JSON.stringify({ content: 'one', stop: false })}\n\n`);
      return Boolean(response.end(`data: ${JSON.stringify(last)}\n\n`));
    };
    await write({ prompt: 'a', stop: 'x' });
    const facts = { finish_reason: 'stop', stop: 'x', completion_tokens: 9, prompt_tokens: 0 };
    expect(log.of('output')[0]!.output.facts).toMatchObject(facts);
  });

  it('receives tools, and chats with them, at its route for chats', async () => {
    const { toy, log, write, card } = await openLlama(toolTemplate);
    expect(card).toMatchObject({ hasTools: true, calls: { markup: writtenCalls } });
    const chats: unknown[] = [];
    toy.fault = ({ url }, response, body) => {
      if (url !== '/v1/chat/completions') return false;
      chats.push(body);
      sendChoices(response, [call(0, 'look', '{}'), ended()]);
      return true;
    };
    const made = [{ id: 'x', type: 'function', function: { name: 'look', arguments: '{"city": "Oslo"}' } }];
    const all = [...messages, { role: 'assistant', content: '', tool_calls: made }, { role: 'tool', content: 'rain' }];
    const params = { messages: all, tools, tool_choice: 'required', response_format: format } as const;
    // llama.cpp draws a random seed for the highest one.
    await write(params, { callMarkup: writtenCalls, seed: 2 ** 32 - 1 });
    expect(chats).toEqual([expect.objectContaining({ ...params, parallel_tool_calls: true, max_tokens: 2, seed: 0 })]);
    const [written] = log.of('output');
    expect(readCalls(writtenCalls, new TextDecoder().decode(written!.output.data)).calls).toEqual([
      { name: 'look', arguments: '{}' },
    ]);
    // llama.cpp ignores a `tool_choice` that is not a string.
    const other = { type: 'function', function: { name: 'other' } } as const;
    const choice = { type: 'function', function: { name: 'look' } } as const;
    await write({ messages: all, tools: [other, ...tools], tool_choice: choice }, { callMarkup: writtenCalls });
    const named = { tools, tool_choice: 'required', parallel_tool_calls: false };
    expect(chats.slice(1)).toEqual([expect.objectContaining(named)]);
    await write({ messages: all, tools, tool_choice: 'none' });
    expect(chats).toHaveLength(2);
    const [{ prompt } = { prompt: '' }] = toy.bodies as { prompt: string }[];
    expect(prompt).toContain('<tool_call>\n{"name": "look", "arguments": {"city": "Oslo"}}\n</tool_call>');
    expect(prompt).not.toContain('system');
    expect(toy.bodies[0]).not.toHaveProperty('tools');
  });

  it('reports no tool support if the template has none', async () => {
    const { toy, card, write } = await openLlama();
    await write({ messages });
    // The server adds the BOS token itself.
    expect(toy.bodies).toMatchObject([{ prompt: '[user] what is the weather in Oslo? [assistant]' }]);
    expect(card).toMatchObject({ hasTools: false, calls: { reason: 'its template shows no tools' } });
  });
});
