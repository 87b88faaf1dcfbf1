/** What a response is made of: conversations that go on, and what is refused. */
import { cancelRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { anybody, type ApiKey, hashKey } from '../auth/api-keys.ts';
import { type Body, dataOf, finish, input, openResponse, path, problemOf, viewOf } from '../testing/open-response.ts';
import { ask, openTextApi, write, writer } from '../testing/open-text-api.ts';
import { readFrames } from '../testing/sse-reader.ts';
import type { TestApi } from '../testing/test-api.ts';
import type { ResponseView } from './response-view.ts';

const keyOf = (name: string): [string, ApiKey] => [hashKey(name), { ...anybody, name }];
const headersOf = (name: string) => ({ Authorization: `Bearer ${name}`, 'Content-Type': 'application/json' });

/** What a request's messages were. */
async function saidIn(test: TestApi, id: string): Promise<unknown> {
  const envelope = await test.store.redis.get(test.store.keysOf(writer.id).input(id.replace('resp_', '')));
  return (JSON.parse(envelope!) as { input: { said: { messages: unknown } } }).input.said.messages;
}

describe('a conversation', () => {
  it('goes on after a response, without its instructions', async () => {
    const { test, view, run } = await openResponse({ instructions: 'Be short.' });
    await write(run, ['a penguin']);
    await finish(run, 'a penguin');
    const next = await viewOf(
      await ask(test, path, { input: 'make it blue', background: true, previous_response_id: view.id }),
    );
    expect(next).toMatchObject({ previous_response_id: view.id, instructions: null });
    const messages = [
      { role: 'user', content: input },
      { role: 'assistant', content: 'a penguin' },
      { role: 'user', content: 'make it blue' },
    ];
    expect(await saidIn(test, next.id)).toEqual(messages);
    const direct = await viewOf(await ask(test, path, { input: messages, background: true }));
    const promptOf = async (id: string) => {
      const answer = await test.api.request(`/v1/predict/${id.replace('resp_', '')}`);
      return ((await answer.json()) as { parameters: { prompt: number[] } }).parameters.prompt;
    };
    expect(await promptOf(next.id)).toEqual(await promptOf(direct.id));
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    const referring = await viewOf(
      await ask(test, path, { input: [messages[0], reference, messages[2]], background: true }),
    );
    expect(await promptOf(referring.id)).toEqual(await promptOf(direct.id));
  });

  it('does not go on after what is not there, or or not over', async () => {
    const { test, view } = await openResponse();
    const problem = (previous_response_id: string) => problemOf(test, { input, previous_response_id });
    expect(await problem('resp_42')).toEqual([
      400,
      'previous_response_id',
      'previous_response_id is "resp_42", expected the id of a response',
    ]);
    const nobody = `${view.id.slice(0, -1)}${view.id.endsWith('0') ? '1' : '0'}`;
    expect((await problem(nobody))[2]).toContain('there is none of this id');
    expect((await problem(view.id))[2]).toContain('this one is in_progress');
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    expect((await problemOf(test, { input: [reference] }))[1]).toBe('input.0.id');
    expect((await problemOf(test, { input: [{ ...reference, id: 'rs_1' }] }))[1]).toBe('input.0.id');
  });

  it.each(['failed', 'canceled'] as const)('does not go on after what %s', async (state) => {
    const { test, view, run } = await openResponse();
    if (state === 'canceled') await cancelRequest(test.store, view.id.replace('resp_', ''));
    const error = { code: 'engine_failed', message: 'Nothing came of it.' } as const;
    await run.finish(state === 'canceled' ? { state } : { state, error });
    const shown = state === 'canceled' ? 'cancelled' : state;
    for (const body of [
      { input, previous_response_id: view.id },
      { input: [{ type: 'item_reference', id: view.id.replace('resp_', 'msg_') }] },
    ])
      expect((await problemOf(test, body))[2]).toContain(`come to its end, and this one is ${shown}`);
  });

  it('refers to a hundred messages at most', async () => {
    const { test, view, run } = await openResponse();
    await write(run, ['a']);
    await finish(run, 'a');
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    const many = Array.from({ length: 101 }, () => reference);
    expect(await problemOf(test, { input: many })).toEqual([
      400,
      'input',
      'input is "101 references", expected at most 100 of them',
    ]);
  });

  it('is of its owner alone', async () => {
    const test = await openTextApi({ apiKeys: new Map([keyOf('alice'), keyOf('bob')]) });
    const asked = await ask(test, path, { input, background: true }, { headers: headersOf('alice') });
    const { id } = await viewOf(asked);
    const cancel = { method: 'POST', headers: headersOf('bob') };
    for (const [url, init] of [
      [`${path}/${id}`, { headers: headersOf('bob') }],
      [`${path}/${id}?stream=true`, { headers: headersOf('bob') }],
      [`${path}/${id}/cancel`, cancel],
      [`${path}/${id}`, { ...cancel, method: 'DELETE' }],
    ] as const)
      expect((await test.api.request(url, init)).status).toBe(404);
    const stolen = await ask(test, path, { input, previous_response_id: id }, { headers: headersOf('bob') });
    expect([stolen.status, await stolen.text()]).toEqual([400, expect.stringContaining('there is none of this id')]);
    expect((await test.api.request(`${path}/${id}`, { headers: headersOf('alice') })).status).toBe(200);
  });

  it('is not kept where prompts are not', async () => {
    const { test, view, url, run } = await openResponse(
      { instructions: 'Be short.', metadata: { purpose: 'a test' } },
      { config: { storePrompts: false } },
    );
    await write(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await viewOf(await test.api.request(url))).toMatchObject({
      instructions: null,
      metadata: { purpose: 'a test' },
      output: [{ content: [{ text: 'a penguin' }] }],
    });
    const kept = await test.store.redis.get(test.store.keysOf(writer.id).input(view.id.replace('resp_', '')));
    expect(kept).not.toContain('cold');
    expect((await problemOf(test, { input, previous_response_id: view.id }))[2]).toContain('keeps none after the end');
  });
});

describe('what is refused', () => {
  it.each<[Body, string, string]>([
    [{}, 'input', 'input is missing, expected text, or a list of at least one message'],
    [{ input: '' }, 'input', 'input is "", expected text'],
    [{ input: [] }, 'input', 'input is [], expected text'],
    [{ input: [5] }, 'input.0', 'input.0 is 5, expected a message'],
    [
      { input: [{ role: 'robot', content: 'x' }] },
      'input.0.role',
      'expected one of user, assistant, system, developer',
    ],
    [{ input: [{ role: 'user', content: [] }] }, 'input.0.content', 'input.0.content is [], expected text, or a list'],
    [{ input: [{ role: 'user' }] }, 'input.0.content', 'input.0.content is missing, expected text'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'x' }] }] },
      'input.0.content.0.type',
      'input.0.content.0.type is "input_image", expected input_text or output_text',
    ],
    [{ input: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input.0.content.0.text', 'is missing'],
    [{ input: [{ type: 'reasoning' }] }, 'input.0.type', 'expected message, function_call, function_call_output or'],
    [{ input: [{ type: 'function_call_output', output: 'x' }] }, 'input.0.call_id', 'input.0.call_id is missing'],
    [{ input: [{ type: 'function_call_output', call_id: 'c', output: 7 }] }, 'input.0.output', 'input.0.output is 7'],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f' }] }, 'input.0.arguments', 'is missing, expected text'],
    [
      { input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }] },
      'input',
      'writer calls no tools, for its template shows no tools',
    ],
    [{ input, tools: [{ type: 'function', name: 'f' }] }, 'tools', 'expected nothing: writer calls none, for its'],
    [{ input, tools: [{ type: 'web_search' }] }, 'tools.0.type', 'expected "function": there are no other tools here'],
    [{ input, tools: [{ type: 'function', name: 'a b' }] }, 'tools.0.name', 'tools.0.name is "a b", expected 1 to 64'],
    [
      { input, tools: [{ type: 'function', name: 'f', parameters: { type: 'array' } }] },
      'tools.0.parameters.type',
      'tools.0.parameters.type is "array", expected "object"',
    ],
    [
      { input, tool_choice: 'required' },
      'tool_choice',
      'tool_choice is "required", expected auto or none without tools',
    ],
    [{ input, tool_choice: 'any' }, 'tool_choice', 'expected auto, none, required, or {"type": "function", "name"}'],
    [{ input, text: { format: { type: 'xml' } } }, 'text.format.type', 'text.format.type is "xml", expected one of'],
    [
      { input, text: { format: { type: 'json_schema', name: 'x' } } },
      'text.format.schema',
      'text.format.schema is missing, expected a JSON Schema',
    ],
    [
      { input, text: { format: { type: 'json_schema', name: 'x', schema: { type: 'number', multipleOf: 2 } } } },
      'text.format.schema',
      'text.format.schema.multipleOf: is not supported',
    ],
    [{ input, include: ['message.output_text.logprobs'] }, 'include.0', 'message.output_text.logprobs'],
    [{ input, top_logprobs: 2 }, 'top_logprobs', 'top_logprobs is 2, expected 0'],
    [{ input, logprobs: true }, 'logprobs', 'logprobs is true, expected false: probabilities of tokens are at'],
    [{ input, n: 2 }, 'n', 'n is 2, expected 1: a response is one text'],
    [{ input, n: 0 }, 'n', 'n is 0, expected 1'],
    [{ input, max_tokens: 2 }, 'max_tokens', 'max_tokens is 2, expected null: send max_output_tokens instead'],
    [{ input, truncation: 'auto' }, 'truncation', 'truncation is "auto", expected "disabled"'],
    [{ input, conversation: 'conv_1' }, 'conversation', 'previous_response_id'],
    [{ input, prompt: { id: 'p' } }, 'prompt', 'send input instead'],
    [{ input, metadata: { a: 5 } }, 'metadata.a', 'metadata.a is 5, expected text of at most 512 characters'],
    [{ input, stream_options: {} }, 'stream_options', 'none without stream: true'],
    [{ input, background: true, store: false }, 'background', 'false with store: false'],
    [{ input, stream: 'yes' }, 'stream', 'stream is "yes", expected true or false'],
    [{ input, temperature: -1 }, 'temperature', 'temperature is -1, expected a number from 0 to 2'],
    [{ input, max_output_tokens: 0 }, 'max_output_tokens', 'max_output_tokens is 0'],
    [{ input, max_output_tokens: 300 }, 'max_output_tokens', 'max_output_tokens is 300, expected at most'],
    [{ input: 'cold '.repeat(300) }, 'input', 'input has 308 tokens, expected at most 255: writer reads '],
    [{ input: [{ role: 'constructor', content: 'x' }] }, 'input.0.role', 'input.0.role is "constructor", expected one'],
    [{ input: [{ role: '__proto__', content: 'x' }] }, 'input.0.role', 'input.0.role is "__proto__", expected one of'],
    [{ input, seed: -1 }, 'seed', 'seed is -1'],
  ])('%j', async (body, param, message) => {
    const test = await openTextApi();
    expect(await problemOf(test, body)).toEqual([400, param, expect.stringContaining(message)]);
    expect(await test.store.redis.zcard(test.store.keysOf(writer.id).waiting)).toBe(0);
  });

  it.each([
    ['?stream=maybe', 'stream'],
    ['?stream=true&starting_after=x', 'starting_after'],
    ['?starting_after=3', 'starting_after'],
  ])('%s', async (query, param) => {
    const { test, url } = await openResponse();
    const response = await test.api.request(`${url}${query}`);
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }]);
  });

  it('what is no response, or was not to be kept as one', async () => {
    const test = await openTextApi();
    const id = await test.submit({ model: writer.id, prompt: input });
    for (const url of [`${path}/${id}`, `${path}/resp_${id}`, `${path}/resp_x`, `${path}/resp_${id}?stream=true`])
      expect((await test.api.request(url)).status).toBe(404);
    expect((await ask(test, `${path}/resp_${id}/cancel`, undefined)).status).toBe(404);
    const reader = readFrames(await ask(test, path, { input, stream: true, store: false }));
    const { response } = dataOf(await reader.next()) as { response: ResponseView };
    expect(response.store).toBe(false);
    expect((await test.api.request(`${path}/${response.id}`)).status).toBe(404);
    await reader.cancel();
  });

  it('what is over', async () => {
    const { test, view, url } = await openResponse();
    const keys = test.store.keysOf(writer.id);
    const id = view.id.replace('resp_', '');
    await test.store.redis.del(keys.request(id), keys.input(id), keys.events(id));
    for (const query of ['', '?stream=true']) expect((await test.api.request(`${url}${query}`)).status).toBe(410);
    expect((await problemOf(test, { input, previous_response_id: view.id }))[0]).toBe(400);
  });
});

it('takes null for whatever has a default, and what nobody knows', async () => {
  const test = await openTextApi();
  const nulls = [
    'instructions',
    'max_output_tokens',
    'metadata',
    'previous_response_id',
    'temperature',
    'tools',
    'user',
  ];
  const body = {
    ...Object.fromEntries(nulls.map((name) => [name, null])),
    input,
    service_tier: 'auto',
    novel: {},
    n: 1,
    logprobs: false,
  };
  expect(await viewOf(await ask(test, path, { ...body, background: true }))).toMatchObject({ status: 'queued' });
});
