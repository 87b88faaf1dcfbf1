/** Input of responses: conversations that continue, and rejected fields. */
import { cancelRequest } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { anonymousKey, hashKey } from '../auth/api-keys.ts';
import {
  type Body,
  dataOf,
  finish,
  input,
  openResponse,
  responsesPath,
  problemOf,
  viewOf,
} from '../testing/open-response.ts';
import { postJson, openTextApi, writeTokens, writer } from '../testing/open-text-api.ts';
import { readFrames } from '../testing/sse-reader.ts';
import type { TestApi } from '../testing/test-api.ts';
import type { ResponseView } from './response-view.ts';
import type { ApiKey } from '../http/api-env.ts';

const keyOf = (name: string): [string, ApiKey] => [hashKey(name), { ...anonymousKey, name }];
const headersOf = (name: string) => ({ Authorization: `Bearer ${name}`, 'Content-Type': 'application/json' });

/** Returns the stored messages of a request. */
async function storedMessagesOf(test: TestApi, id: string): Promise<unknown> {
  const envelope = await test.store.redis.get(test.store.keysOf(writer.id).input(id.replace('resp_', '')));
  return (JSON.parse(envelope!) as { input: { said: { messages: unknown } } }).input.said.messages;
}

describe('a conversation', () => {
  it('continues after a response, without its instructions', async () => {
    const { test, view, run } = await openResponse({ instructions: 'Be short.' });
    await writeTokens(run, ['a penguin']);
    await finish(run, 'a penguin');
    const next = await viewOf(
      await postJson(test, responsesPath, { input: 'make it blue', background: true, previous_response_id: view.id }),
    );
    expect(next).toMatchObject({ previous_response_id: view.id, instructions: null });
    const messages = [
      { role: 'user', content: input },
      { role: 'assistant', content: 'a penguin' },
      { role: 'user', content: 'make it blue' },
    ];
    expect(await storedMessagesOf(test, next.id)).toEqual(messages);
    const direct = await viewOf(await postJson(test, responsesPath, { input: messages, background: true }));
    const promptOf = async (id: string) => {
      const answer = await test.api.request(`/v1/predict/${id.replace('resp_', '')}`);
      return ((await answer.json()) as { parameters: { prompt: number[] } }).parameters.prompt;
    };
    expect(await promptOf(next.id)).toEqual(await promptOf(direct.id));
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    const referring = await viewOf(
      await postJson(test, responsesPath, { input: [messages[0], reference, messages[2]], background: true }),
    );
    expect(await promptOf(referring.id)).toEqual(await promptOf(direct.id));
  });

  it('does not continue after a response that does not exist or has not ended', async () => {
    const { test, view } = await openResponse();
    const problem = (previous_response_id: string) => problemOf(test, { input, previous_response_id });
    expect(await problem('resp_42')).toEqual([
      400,
      'previous_response_id',
      'previous_response_id is "resp_42", expected the id of a response',
    ]);
    const unknown = `${view.id.slice(0, -1)}${view.id.endsWith('0') ? '1' : '0'}`;
    expect((await problem(unknown))[2]).toContain('this one does not exist');
    expect((await problem(view.id))[2]).toContain('this one is in_progress');
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    expect((await problemOf(test, { input: [reference] }))[1]).toBe('input.0.id');
    expect((await problemOf(test, { input: [{ ...reference, id: 'rs_1' }] }))[1]).toBe('input.0.id');
  });

  it.each(['failed', 'canceled'] as const)('does not continue after a response that was %s', async (state) => {
    const { test, view, run } = await openResponse();
    if (state === 'canceled') await cancelRequest(test.store, view.id.replace('resp_', ''));
    const error = { code: 'engine_failed', message: 'Nothing came of it.' } as const;
    await run.finish(state === 'canceled' ? { state } : { state, error });
    const shown = state === 'canceled' ? 'cancelled' : state;
    for (const body of [
      { input, previous_response_id: view.id },
      { input: [{ type: 'item_reference', id: view.id.replace('resp_', 'msg_') }] },
    ])
      expect((await problemOf(test, body))[2]).toContain(`a response that has ended, this one is ${shown}`);
  });

  it('contains at most 100 references', async () => {
    const { test, view, run } = await openResponse();
    await writeTokens(run, ['a']);
    await finish(run, 'a');
    const reference = { type: 'item_reference', id: view.id.replace('resp_', 'msg_') };
    const many = Array.from({ length: 101 }, () => reference);
    expect(await problemOf(test, { input: many })).toEqual([
      400,
      'input',
      'input is "101 references", expected at most 100 references',
    ]);
  });

  it('is visible to its owner only', async () => {
    const test = await openTextApi({ apiKeys: new Map([keyOf('alice'), keyOf('bob')]) });
    const created = await postJson(test, responsesPath, { input, background: true }, { headers: headersOf('alice') });
    const { id } = await viewOf(created);
    const cancel = { method: 'POST', headers: headersOf('bob') };
    for (const [url, init] of [
      [`${responsesPath}/${id}`, { headers: headersOf('bob') }],
      [`${responsesPath}/${id}?stream=true`, { headers: headersOf('bob') }],
      [`${responsesPath}/${id}/cancel`, cancel],
      [`${responsesPath}/${id}`, { ...cancel, method: 'DELETE' }],
    ] as const)
      expect((await test.api.request(url, init)).status).toBe(404);
    const stolen = await postJson(
      test,
      responsesPath,
      { input, previous_response_id: id },
      { headers: headersOf('bob') },
    );
    expect([stolen.status, await stolen.text()]).toEqual([400, expect.stringContaining('this one does not exist')]);
    expect((await test.api.request(`${responsesPath}/${id}`, { headers: headersOf('alice') })).status).toBe(200);
  });

  it('is deleted at the end if the server does not store prompts', async () => {
    const { test, view, url, run } = await openResponse(
      { instructions: 'Be short.', metadata: { purpose: 'a test' } },
      { config: { storePrompts: false } },
    );
    await writeTokens(run, ['a penguin']);
    await finish(run, 'a penguin');
    expect(await viewOf(await test.api.request(url))).toMatchObject({
      instructions: null,
      metadata: {},
      output: [{ content: [{ text: 'a penguin' }] }],
    });
    const kept = await test.store.redis.get(test.store.keysOf(writer.id).input(view.id.replace('resp_', '')));
    expect(kept).not.toMatch(/cold|Be short|a test/);
    expect((await problemOf(test, { input, previous_response_id: view.id }))[2]).toContain(
      'this server deletes them when a response ends',
    );
  });
});

describe('rejects', () => {
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
      'input.0.content.0.image_url',
      'input.0.content.0.image_url is "x", expected an image: a data URL in base64, or an https URL',
    ],
    [
      { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'x' }] }] },
      'input.0.content.0.type',
      'input.0.content.0.type is "input_file", expected input_text, output_text, or input_image',
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
    [{ input, tools: [{ type: 'web_search' }] }, 'tools.0.type', 'expected "function": other tools are not supported'],
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
      { input, text: { format: { type: 'json_schema', name: 'x', schema: { type: 'array', uniqueItems: true } } } },
      'text.format.schema',
      'text.format.schema.uniqueItems: is not supported',
    ],
    [
      { input, include: ['file_search_call.results'] },
      'include.0',
      'expected one of reasoning.encrypted_content, message',
    ],
    [{ input, top_logprobs: 2 }, 'top_logprobs', 'top_logprobs is 2, expected 0 without include'],
    [{ input, include: ['message.output_text.logprobs'], top_logprobs: 21 }, 'top_logprobs', 'top_logprobs is 21'],
    [{ input, logprobs: true }, 'logprobs', 'logprobs is true, expected false: send include'],
    [{ input, n: 2 }, 'n', 'n is 2, expected 1: a response has one text'],
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
    [
      { input: 'cold '.repeat(300) },
      'input',
      "input has 308 tokens, expected at most 255: this model's maximum context length is 256 tokens",
    ],
    [{ input: [{ role: 'constructor', content: 'x' }] }, 'input.0.role', 'input.0.role is "constructor", expected one'],
    [{ input: [{ role: '__proto__', content: 'x' }] }, 'input.0.role', 'input.0.role is "__proto__", expected one of'],
    [{ input, seed: 1.5 }, 'seed', 'seed is 1.5'],
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

  it('with 404 the id of another request, and of a response with store: false', async () => {
    const test = await openTextApi();
    const id = await test.submit({ model: writer.id, prompt: input });
    for (const url of [
      `${responsesPath}/${id}`,
      `${responsesPath}/resp_${id}`,
      `${responsesPath}/resp_x`,
      `${responsesPath}/resp_${id}?stream=true`,
    ])
      expect((await test.api.request(url)).status).toBe(404);
    expect((await postJson(test, `${responsesPath}/resp_${id}/cancel`, undefined)).status).toBe(404);
    const reader = readFrames(await postJson(test, responsesPath, { input, stream: true, store: false }));
    const { response } = dataOf(await reader.next()) as { response: ResponseView };
    expect(response.store).toBe(false);
    expect((await test.api.request(`${responsesPath}/${response.id}`)).status).toBe(404);
    await reader.cancel();
  });

  it('with 410 an expired response', async () => {
    const { test, view, url } = await openResponse();
    const keys = test.store.keysOf(writer.id);
    const id = view.id.replace('resp_', '');
    await test.store.redis.del(keys.request(id), keys.input(id), keys.events(id));
    for (const query of ['', '?stream=true']) expect((await test.api.request(`${url}${query}`)).status).toBe(410);
    expect((await problemOf(test, { input, previous_response_id: view.id }))[0]).toBe(400);
  });
});

it('accepts null as a default, and ignores unknown fields', async () => {
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
  expect(await viewOf(await postJson(test, responsesPath, { ...body, background: true }))).toMatchObject({
    status: 'queued',
  });
});
