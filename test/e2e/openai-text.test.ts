/** The OpenAI SDK, the Vercel AI SDK and LangChain on the bundled text models. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, streamText } from 'ai';
import OpenAI, { BadRequestError } from 'openai';
import { describe, expect, it } from 'vitest';
import { poll } from './client.ts';
import { blockWriter, useSharedSystem, writer } from './shared-system.ts';

const system = useSharedSystem();
const open = (): OpenAI => new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });

const userText = 'something sweet for a birthday party';
const messages = [{ role: 'user' as const, content: userText }];
/** The greedy answer of both models. */
const answer = 'a birthday cake on a pink background';

/** Parameters of this server that the SDK's types do not have. */
const endless = { ignore_eos: true } as object;

function provider() {
  return createOpenAICompatible({ name: 'darkroom', baseURL: `${system.url}/v1`, includeUsage: true });
}

function langchain(more: object): ChatOpenAI {
  return new ChatOpenAI({ model: writer, apiKey: 'none', configuration: { baseURL: `${system.url}/v1` }, ...more });
}

describe.each([writer, blockWriter])('OpenAI SDK with %s', (model) => {
  it('completes a chat; the response id contains the request id', async () => {
    const chat = await open().chat.completions.create({ model, messages });
    expect(chat).toMatchObject({
      object: 'chat.completion',
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: answer }, finish_reason: 'stop' }],
    });
    expect(Math.abs(chat.created - Date.now() / 1000)).toBeLessThan(3600);
    const { prompt_tokens: prompt, completion_tokens: written, total_tokens: total } = chat.usage!;
    expect(total).toBe(prompt + written);
    const { _request_id: id } = chat;
    expect(chat.id).toBe(`chatcmpl-${id}`);
    expect(await poll(system.url, id!)).toMatchObject({
      status: 'succeeded',
      texts: [{ text: answer }],
      usage: { prompt_tokens: prompt, completion_tokens: written },
    });
  });

  it('streams the same text and the usage', async () => {
    const { data: stream, request_id } = await open()
      .chat.completions.create({ model, messages, stream: true, stream_options: { include_usage: true } })
      .withResponse();
    const chunks: OpenAI.ChatCompletionChunk[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    expect(new Set(chunks.map(({ id }) => id))).toEqual(new Set([`chatcmpl-${request_id}`]));
    expect(chunks[0]!.choices[0]!.delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(answer);
    expect(chunks.at(-2)!.choices[0]!.finish_reason).toBe('stop');
    const { usage } = await open().chat.completions.create({ model, messages });
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { completion_tokens: usage!.completion_tokens, prompt_tokens: usage!.prompt_tokens },
    });
  });

  it('the stream helper assembles the text', async () => {
    const runner = open().chat.completions.stream({ model, messages });
    const deltas: string[] = [];
    runner.on('content', (delta) => deltas.push(delta));
    expect(await runner.finalContent()).toBe(answer);
    expect(deltas.join('')).toBe(answer);
  });

  it('stops before a stop text that crosses token borders, and streams no part of it', async () => {
    const stop = 'ake on a pi';
    const { choices } = await open().chat.completions.create({ model, messages, stop: [stop, 'never'] });
    expect(choices).toMatchObject([{ message: { content: 'a birthday c' }, finish_reason: 'stop' }]);
    const stream = await open().chat.completions.create({ model, messages, stop, stream: true });
    let text = '';
    for await (const chunk of stream) text += chunk.choices[0]!.delta.content ?? '';
    expect(text).toBe('a birthday c');
  });

  it('returns n choices with a seed each', async () => {
    const body = { model, messages, n: 3, temperature: 1.5, seed: 11 };
    const { choices } = await open().chat.completions.create(body);
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2]);
    const texts = choices.map(({ message }) => message.content);
    expect(new Set(texts).size).toBeGreaterThan(1);
    const streamed = ['', '', ''];
    for await (const chunk of await open().chat.completions.create({ ...body, stream: true }))
      for (const { index, delta } of chunk.choices) streamed[index] += delta.content ?? '';
    expect(streamed).toEqual(texts);
    const second = await open().chat.completions.create({ ...body, n: 1, seed: 12 });
    expect(second.choices[0]!.message.content).toBe(texts[1]);
  });

  it('ends at max_completion_tokens', async () => {
    const { choices, usage } = await open().chat.completions.create({
      model,
      messages,
      max_tokens: 20,
      max_completion_tokens: 2,
    });
    expect(choices).toMatchObject([{ message: { content: 'a birthday' }, finish_reason: 'length' }]);
    expect(usage!.completion_tokens).toBe(2);
  });

  it('cancels an aborted request', async () => {
    const body = { model, messages, n: 10, max_tokens: 240, ...endless };
    const { data: stream, request_id } = await open()
      .chat.completions.create({ ...body, stream: true })
      .withResponse();
    for await (const chunk of stream) {
      expect(chunk.object).toBe('chat.completion.chunk');
      stream.controller.abort();
    }
    await expect.poll(() => poll(system.url, request_id!)).toMatchObject({ status: 'canceled' });
  });
});

it('OpenAI SDK: returns log probabilities of each token', async () => {
  const { choices } = await open().chat.completions.create({
    model: writer,
    messages,
    logprobs: true,
    top_logprobs: 3,
  });
  const { content } = choices[0]!.logprobs!;
  expect(content!.map(({ token }) => token).join('')).toBe(answer);
  expect(Buffer.from(content!.flatMap(({ bytes }) => bytes!)).toString()).toBe(answer);
  for (const { token, logprob, top_logprobs: top } of content!) {
    expect(top).toHaveLength(3);
    // Greedy decoding takes the most probable token.
    expect(top[0]).toMatchObject({ token, logprob });
    expect(top.reduce((sum, other) => sum + Math.exp(other.logprob), 0)).toBeLessThanOrEqual(1.000_001);
  }
  const streamed: string[] = [];
  const stream = await open().chat.completions.create({ model: writer, messages, logprobs: true, stream: true });
  for await (const { choices: parts } of stream)
    streamed.push(...(parts[0]!.logprobs?.content ?? []).map(({ token }) => token));
  expect(streamed.join('')).toBe(answer);
});

it('OpenAI SDK: completes a raw prompt', async () => {
  const body = { model: writer, prompt: '<|im_start|>assistant\na bird on a', logprobs: 2 };
  const { choices, id, _request_id } = await open().completions.create(body);
  const [{ text, logprobs }] = choices as [OpenAI.CompletionChoice];
  expect([id, text]).toEqual([`cmpl-${_request_id}`, ' green background']);
  expect(logprobs!.tokens!.join('')).toBe(text);
  expect(logprobs!.text_offset!.map((offset) => text.slice(offset))[1]).toBe(logprobs!.tokens!.slice(1).join(''));
  let streamed = '';
  for await (const chunk of await open().completions.create({ ...body, stream: true }))
    streamed += chunk.choices[0]!.text;
  expect(streamed).toBe(text);
});

it('OpenAI SDK: reports errors by code and param', async () => {
  const { completions } = open().chat;
  const long = completions.create({ model: writer, messages: [{ role: 'user', content: 'sweet '.repeat(300) }] });
  await expect(long).rejects.toBeInstanceOf(BadRequestError);
  await expect(long).rejects.toMatchObject({ code: 'context_length_exceeded', param: 'messages' });
  const format = { type: 'json_object' as const };
  await expect(
    completions.create({ model: blockWriter, messages, stream: true, response_format: format }),
  ).rejects.toMatchObject({ status: 400, param: 'response_format' });
  await expect(completions.create({ model: blockWriter, messages, logprobs: true })).rejects.toMatchObject({
    status: 400,
    param: 'logprobs',
  });
  await expect(completions.create({ model: 'gpt-4o', messages })).rejects.toMatchObject({ code: 'model_not_found' });
});

describe('Vercel AI SDK', () => {
  it('generates text', async () => {
    const { text, finishReason, usage } = await generateText({
      model: provider()(writer),
      system: 'You write prompts.',
      prompt: userText,
      maxOutputTokens: 24,
      temperature: 0,
    });
    expect([text, finishReason]).toEqual([expect.stringMatching(/^an? .* background$/), 'stop']);
    expect(usage.totalTokens).toBe(usage.inputTokens! + usage.outputTokens!);
  });

  it('streams text of chats and completions', async () => {
    const { textStream, usage } = streamText({ model: provider()(writer), prompt: userText });
    let text = '';
    for await (const delta of textStream) text += delta;
    expect(text).toBe(answer);
    expect((await usage).outputTokens).toBeGreaterThan(4);
    const completion = streamText({
      model: provider().completionModel(writer),
      prompt: '<|im_start|>assistant\na bird on a',
      maxOutputTokens: 5,
    });
    expect((await completion.text).length).toBeGreaterThan(0);
  });

  it('reports errors with status and message', async () => {
    const failing = generateText({ model: provider()(writer), prompt: 'sweet '.repeat(300) });
    await expect(failing).rejects.toMatchObject({
      statusCode: 400,
      message: expect.stringContaining('expected at most 255'),
    });
  });
});

/** A property that LangChain's types lose with this repository's compiler. */
interface Counted {
  usage_metadata?: { input_tokens: number; output_tokens: number; total_tokens: number };
}

describe('LangChain', () => {
  it('answers a message', async () => {
    const message = await langchain({ temperature: 0 }).invoke([new HumanMessage(userText)]);
    expect(message.text).toBe(answer);
    const { usage_metadata: usage } = message as unknown as Counted;
    expect(usage!.total_tokens).toBe(usage!.input_tokens + usage!.output_tokens);
  });

  it('streams an answer', async () => {
    let text = '';
    let tokens: number | undefined;
    for await (const chunk of await langchain({ streamUsage: true }).stream(userText)) {
      text += chunk.text;
      tokens = (chunk as unknown as Counted).usage_metadata?.output_tokens ?? tokens;
    }
    expect(text).toBe(answer);
    expect(tokens).toBeGreaterThan(4);
  });
});
