/** Chats with images by other people's clients, unchanged: an upstream server gets the images and answers. */
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { createClient } from '@darkroom/client';
import { HumanMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { generateText, type LanguageModel } from 'ai';
import OpenAI from 'openai';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createLookingServer, looker } from './looking-server.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from './system.ts';

const model = looker;
const text = 'What is this?';
let system: System;
const server = createLookingServer();
/** A red image of 60 × 40 pixels. */
let data: Buffer;
let url: string;

beforeAll(async () => {
  data = await sharp({ create: { width: 60, height: 40, channels: 3, background: '#f00' } })
    .png()
    .toBuffer();
  url = `data:image/png;base64,${data.toString('base64')}`;
  const upstream = await server.start();
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
  await system.start('worker', { EXECUTOR: 'http', UPSTREAM_URL: upstream, MODEL_ID: model });
}, 120_000);
afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
  await server.stop();
});

const answer = 'An image of 60x40';

it("OpenAI's client asks about an image in a chat, at once and streamed", async () => {
  const { chat } = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });
  const content = [
    { type: 'text' as const, text },
    { type: 'image_url' as const, image_url: { url, detail: 'low' as const } },
  ];
  const body = { model, messages: [{ role: 'user' as const, content }] };
  const { choices } = await chat.completions.create(body);
  expect(choices[0]!.message.content).toBe(answer);
  let streamed = '';
  for await (const chunk of await chat.completions.create({ ...body, stream: true }))
    streamed += chunk.choices[0]?.delta.content ?? '';
  expect(streamed).toBe(answer);
});

it("OpenAI's client asks about an image in a response, and asks again about the same image", async () => {
  const { responses } = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });
  const first = await responses.create({
    model,
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text },
          { type: 'input_image', image_url: url, detail: 'auto' },
        ],
      },
    ],
  });
  expect(first.output_text).toBe(answer);
  const { data: items } = await responses.inputItems.list(first.id);
  expect(items).toMatchObject([{ content: [{ type: 'input_text' }, { type: 'input_image', detail: 'auto' }] }]);
  const second = await responses.create({ model, input: 'Sure?', previous_response_id: first.id });
  expect(second.output_text).toBe(answer);
});

const providers: Record<string, () => LanguageModel> = {
  'chat completions': () => createOpenAICompatible({ name: 'darkroom', baseURL: `${system.url}/v1` })(model),
  responses: () => createOpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' })(model),
};

it.each(Object.entries(providers))('the Vercel AI SDK asks about an image over %s', async (_name, modelOf) => {
  const content = [
    { type: 'text' as const, text },
    { type: 'image' as const, image: data },
  ];
  const result = await generateText({ model: modelOf(), messages: [{ role: 'user', content }], maxRetries: 0 });
  expect(result.text).toBe(answer);
});

it('LangChain asks about an image', async () => {
  const llm = new ChatOpenAI({ model, apiKey: 'none', configuration: { baseURL: `${system.url}/v1` }, maxRetries: 0 });
  const content = [
    { type: 'text', text },
    { type: 'image_url', image_url: { url } },
  ];
  expect((await llm.invoke([new HumanMessage({ content })])).content).toBe(answer);
});

it('our client asks about a file, and gets back what the model got', async () => {
  const client = createClient({ baseUrl: system.url });
  const image = new Blob([new Uint8Array(data)], { type: 'image/png' });
  const { request_id: id } = await client.submit({ model, prompt: text, image, max_tokens: 50 });
  expect(await client.wait(id)).toMatchObject({ status: 'succeeded', texts: [{ text: answer }] });
  const seen = Buffer.from(await (await client.input(id, 'image-0')).arrayBuffer());
  expect(await sharp(seen).metadata()).toMatchObject({ format: 'png', width: 60, height: 40 });
});
