/**
 * The Responses API with the OpenAI SDK, the Vercel AI SDK's default provider and LangChain, on the bundled text
 * models.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { createOpenAI } from '@ai-sdk/openai';
import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, type ModelMessage, streamText } from 'ai';
import OpenAI from 'openai';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import { blockWriter, useSharedSystem, writer } from './shared-system.ts';

const models = [writer, blockWriter];
const input = 'something sweet for a birthday party';

const system = useSharedSystem();
const client = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const list: Item[] = [];
  for await (const item of items) list.push(item);
  return list;
}

const textIn = (events: readonly ResponseStreamEvent[]): string =>
  events.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('');

describe.each(models)('OpenAI SDK responses with %s', (model) => {
  it('creates and retrieves a response', async () => {
    const response = await client.responses.create({ model, input, temperature: 0, metadata: { a: 'b' } });
    expect(response).toMatchObject({
      object: 'response',
      status: 'completed',
      model,
      metadata: { a: 'b' },
      error: null,
    });
    expect(response.output_text).toMatch(/^an? /);
    const { input_tokens: read, output_tokens: written, total_tokens: sum } = response.usage!;
    expect(read + written).toBe(sum);
    const { _request_id: _id, ...rest } = response;
    expect(response.id).toBe(`resp_${_id}`);
    expect(await client.responses.retrieve(response.id)).toMatchObject(rest);
  });

  it('streams, and resumes a stream with starting_after', async () => {
    const events = await all(await client.responses.create({ model, input, temperature: 0, stream: true }));
    const last = events.at(-1)!;
    if (last.type !== 'response.completed') throw new Error(`ended with ${last.type}`);
    const { id, output } = last.response;
    expect(output).toMatchObject([{ content: [{ text: textIn(events) }] }]);
    const middle = events[Math.floor(events.length / 2)]!.sequence_number;
    const resumed = await client.responses.retrieve(id, { stream: true, starting_after: middle });
    expect(await all(resumed)).toEqual(events.filter((event) => event.sequence_number > middle));
    // The helper builds its response from all events, and emits those after the number.
    const helper = client.responses.stream({ response_id: id, starting_after: middle });
    expect((await all(helper)).map((event) => event.sequence_number)).toEqual(
      events.map((event) => event.sequence_number).filter((number) => number > middle),
    );
    expect((await helper.finalResponse()).output_text).toBe(textIn(events));
  });

  it('continues a conversation with previous_response_id', async () => {
    const first = await client.responses.create({ model, input: 'a car', temperature: 0 });
    const second = await client.responses.create({
      model,
      input: 'make it blue',
      temperature: 0,
      previous_response_id: first.id,
    });
    const both = await client.responses.create({
      model,
      temperature: 0,
      input: [{ role: 'user', content: 'a car' }, ...first.output, { role: 'user', content: 'make it blue' }],
    } as OpenAI.Responses.ResponseCreateParamsNonStreaming);
    expect(second.output_text).toContain('blue');
    expect(both.output_text).toBe(second.output_text);
  });

  it('runs in the background, and cancels', async () => {
    const slow = { model, input, background: true, ignore_eos: true, max_output_tokens: 200 } as const;
    const started = await client.responses.create(slow);
    const status = expect.stringMatching(/^(?:queued|in_progress)$/) as string;
    expect(started).toMatchObject({ status, background: true, output_text: '' });
    const canceled = await client.responses.cancel(started.id);
    expect(canceled.status).toBe('cancelled');
    expect(await client.responses.retrieve(started.id)).toMatchObject({ status: 'cancelled', output: canceled.output });
    const events = await all(await client.responses.retrieve(started.id, { stream: true }));
    expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { status: 'cancelled' } });
    await client.responses.delete(started.id);
    await expect(client.responses.retrieve(started.id)).rejects.toMatchObject({ status: 410 });
  });
});

it('OpenAI SDK responses: errors name the field', async () => {
  const model = 'emoji-writer';
  const tools = [{ type: 'function' as const, name: 'draw', parameters: { type: 'object' }, strict: true }];
  await expect(client.responses.create({ model, input, tools })).rejects.toMatchObject({ status: 400, param: 'tools' });
  await expect(client.responses.create({ model, input, max_output_tokens: 5000 })).rejects.toMatchObject({
    status: 400,
    code: 'context_length_exceeded',
    param: 'max_output_tokens',
  });
  await expect(client.responses.create({ model: 'gpt-4o', input })).rejects.toMatchObject({ status: 404 });
  await expect(client.responses.retrieve('resp_42')).rejects.toMatchObject({ status: 404 });
});

const provider = () => createOpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });

describe.each(models)('the Vercel AI SDK with %s', (name) => {
  it('generates text over several turns', async () => {
    const model = provider()(name);
    const messages: ModelMessage[] = [{ role: 'user', content: 'a car' }];
    const first = await generateText({ model, messages, temperature: 0 });
    expect(first.text).toMatch(/car/);
    expect(first.finishReason).toBe('stop');
    expect(first.usage.totalTokens).toBe(first.usage.inputTokens! + first.usage.outputTokens!);
    messages.push(...first.response.messages, { role: 'user', content: 'make it blue' });
    expect((await generateText({ model, messages, temperature: 0 })).text).toContain('blue');
  });

  it('streams text', async () => {
    const result = streamText({ model: provider()(name), prompt: input, temperature: 0, maxOutputTokens: 2 });
    const deltas = await all(result.textStream);
    expect(deltas.join('')).toBe(await result.text);
    expect(await result.finishReason).toBe('length');
    expect((await result.usage).outputTokens).toBe(2);
  });
});

describe.each(models)('LangChain ChatOpenAI responses with %s', (model) => {
  const chat = (): ChatOpenAI => {
    const configuration = { baseURL: `${system.url}/v1` };
    return new ChatOpenAI({
      model,
      apiKey: 'none',
      configuration,
      useResponsesApi: true,
      temperature: 0,
      maxRetries: 0,
    });
  };

  it('invokes over several turns', async () => {
    const first = await chat().invoke('a car');
    expect(first.text).toMatch(/car/);
    const { input_tokens: read, output_tokens: written, total_tokens: sum } = first.usage_metadata!;
    expect(read + written).toBe(sum);
    const messages = [new HumanMessage('a car'), new AIMessage(first.text), new HumanMessage('make it blue')];
    const second = await chat().invoke(messages);
    expect(second.text).toContain('blue');
    const { id } = first.response_metadata as { id: string };
    const after = await chat().invoke('make it blue', { previous_response_id: id });
    expect(after.text).toBe(second.text);
    expect(await client.responses.retrieve(id)).toMatchObject({ status: 'completed', output_text: first.text });
  });

  it('streams the same text', async () => {
    const chunks = await all(await chat().stream(input));
    expect(chunks.map(({ text }) => text).join('')).toBe((await chat().invoke(input)).text);
    expect(chunks.findLast(({ usage_metadata: usage }) => usage !== undefined)!.usage_metadata).toEqual(
      (await chat().invoke(input)).usage_metadata,
    );
  });
});

it('the program of docs/responses.md runs as written', async () => {
  const root = new URL('../../', import.meta.url).pathname;
  const [, program] = /```js\n(.*?)```/s.exec(await readFile(`${root}docs/responses.md`, 'utf8'))!;
  const code = program!.replace('http://127.0.0.1:8080', system.url);
  const node = [process.execPath, ['--input-type=module', '--eval', code], { cwd: root, env: {} }] as const;
  const { stdout } = await promisify(execFile)(...node);
  const [turns, cold] = stdout.trim().split('\n');
  expect(turns).toMatch(/car.*; .*blue/);
  expect(cold).toBe((await client.responses.create({ model: 'emoji-writer', input: 'something cold' })).output_text);
});
