/** Images in messages: what servers receive, and which servers are known to take them. */
import type { UpstreamTextCard, UpstreamTextParams } from '@darkroom/kinds';
import { expect, it, onTestFinished } from 'vitest';
import { EventLog } from '../conformance/event-log.ts';
import { ToyLlamaCpp } from '../testing/toy-llama-cpp.ts';
import { ToyOpenai } from '../testing/toy-openai.ts';
import type { ToyServer } from '../testing/toy-server.ts';
import { createLlamaCpp } from './llama-cpp.ts';
import { createOpenai } from './openai.ts';
import { UpstreamExecutor } from './upstream-executor.ts';
import type { CreateUpstreamProtocol } from './upstream-protocol.ts';

const image = Uint8Array.of(137, 80, 78, 71);
const dataUrl = `data:image/png;base64,${Buffer.from(image).toString('base64')}`;
const question = { type: 'text', text: 'What is this?' } as const;
const asking = (url: string): NonNullable<UpstreamTextParams['messages']> => [
  { role: 'user', content: [question, { type: 'image_url', image_url: { url, detail: 'low' } }] },
];

async function open(toy: ToyServer, createProtocol: CreateUpstreamProtocol) {
  const log = new EventLog();
  const url = await toy.start();
  const executor = new UpstreamExecutor({
    url,
    createProtocol,
    model: 'toy_writer',
    maxSlots: 2,
    onEvents: log.listener,
  });
  onTestFinished(async () => {
    await executor.shutdown();
    await toy.stop();
  });
  const card = (await executor.start()) as UpstreamTextCard;
  const ask = () => {
    const input = { params: { max_tokens: 2, messages: asking('image-0') }, images: [{ width: 1, height: 1 }] };
    executor.submit([
      { id: 'a', input: { ...input, n: 1, seed: 1, maxTokens: 2 }, attachments: new Map([['image-0', image]]) },
    ]);
    return log.end('a');
  };
  return { toy, card, ask };
}

function openOpenai(entry: object = {}) {
  const toy = new ToyOpenai();
  toy.models = [{ id: 'toy_writer', object: 'model', created: 7, owned_by: 'toys', ...entry }];
  return open(toy, createOpenai);
}

it("OpenAI's API receives attached images as data URLs in their place, with their detail", async () => {
  const { toy, ask } = await openOpenai();
  expect(await ask()).toMatchObject({ type: 'request-done' });
  expect(toy.bodies).toMatchObject([{ messages: asking(dataUrl) }]);
});

it('an error of the server that quotes an image does not show it', async () => {
  const { toy, ask } = await openOpenai();
  toy.fault = (_request, response, body) => {
    if (body === undefined) return false;
    response.writeHead(400, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ error: { message: `cannot read ${dataUrl}` } }));
    return true;
  };
  const end = await ask();
  expect(end).toMatchObject({ type: 'request-failed', code: 'invalid_request' });
  expect(JSON.stringify(end)).not.toContain(dataUrl.slice(-6));
});

it("llama.cpp's server receives images over its chat route", async () => {
  const toy = new ToyLlamaCpp();
  const received: object[] = [];
  toy.fault = ({ url }, response, body) => {
    if (body === undefined) return false;
    received.push({ url, body });
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const choices = [{ index: 0, delta: { content: 'A fox' }, finish_reason: 'stop' }];
    response.end(`data: ${JSON.stringify({ choices })}\n\ndata: [DONE]\n\n`);
    return true;
  };
  const { ask } = await open(toy, createLlamaCpp);
  expect(await ask()).toMatchObject({ type: 'request-done' });
  expect(received).toMatchObject([{ url: '/v1/chat/completions', body: { messages: asking(dataUrl) } }]);
});

it.each<[string, object, UpstreamTextCard['takes']]>([
  ['another Darkroom with vision', { kind: 'text', takes: ['image'] }, ['image']],
  ['another Darkroom without vision', { kind: 'text', takes: [] }, []],
  ['OpenRouter with vision', { architecture: { input_modalities: ['text', 'image'] } }, ['image']],
  ['OpenRouter without vision', { architecture: { input_modalities: ['text'] } }, []],
  ['LM Studio with vision', { type: 'vlm' }, ['image']],
  ['LM Studio without vision', { type: 'llm' }, []],
  ['a server that says nothing', {}, undefined],
])('the card has what the server lists: %s', async (_name, entry, takes) => {
  expect((await openOpenai(entry)).card.takes).toEqual(takes);
});

it.each([
  [undefined, []],
  [{ vision: false, audio: false }, []],
  [{ vision: true, audio: false }, ['image']],
])("the card has what llama.cpp's server reports: modalities %j", async (modalities, takes) => {
  const toy = new ToyLlamaCpp();
  toy.modalities = modalities;
  expect((await open(toy, createLlamaCpp)).card.takes).toEqual(takes);
});
