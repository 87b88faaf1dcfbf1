/** An upstream that breaks off in the middle of a text and then writes another, or freezes: what each reader has in the end. */
import type { ServerResponse } from 'node:http';
import { createClient } from '@darkroom/client';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ToyOpenai } from '../../libs/executor/src/testing/toy-openai.ts';
import { ended, poll, stream } from '../e2e/client.ts';
import { patience, startSystem, stopSystem, type System } from '../e2e/system.ts';

const model = 'toy-writer';
const toy = new ToyOpenai();
toy.models = [{ id: model, object: 'model', created: 7, owned_by: 'toys' }];
let system: System;

beforeAll(async () => {
  const UPSTREAM_URL = await toy.start();
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: patience });
  await system.start('worker', {
    EXECUTOR: 'http',
    UPSTREAM_URL,
    MODEL_ID: model,
    UPSTREAM_SLOTS: '1',
    // Longer than a test holds an answer that it will break off.
    ENGINE_TIMEOUT_S: '3',
  });
}, 120_000);
afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
  await toy.stop();
});

/** The answer of the first call, which the test breaks off when it wants to. */
let first: ServerResponse | undefined;
const texts = ['a red fox', 'a red cat'];
beforeEach(() => {
  first = undefined;
  toy.fault = (_request, response, body) => {
    if (body === undefined) return false;
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const isChat = 'messages' in (body as object);
    const say = (text: string, finish_reason: string | null = null): void => {
      const choice = { index: 0, ...(isChat ? { delta: { content: text } } : { text }), finish_reason };
      response.write(`data: ${JSON.stringify({ choices: [choice] })}\n\n`);
    };
    for (const word of texts[first === undefined ? 0 : 1]!.match(/ ?\w+/g)!) say(word);
    if (first === undefined) first = response;
    else {
      say('', 'stop');
      response.end('data: [DONE]\n\n');
    }
    return true;
  };
});

async function submit(): Promise<string> {
  const response = await fetch(`${system.url}/v1/predict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, prompt: 'once' }),
  });
  return ((await response.json()) as { request_id: string }).request_id;
}

const textOf = async (id: string): Promise<string> =>
  ((await poll(system.url, id)) as unknown as { texts: { text: string }[] }).texts[0]!.text;

it('every reader ends with the second text', async () => {
  const id = await submit();
  const client = createClient({ baseUrl: system.url });
  const own = (async () => {
    let [grown, whole] = ['', ''];
    for await (const event of client.stream(id)) {
      if (event.type === 'delta') grown = grown.slice(0, event.offset) + event.text;
      if (event.type === 'reset') grown = grown.slice(0, event.offset);
      if (event.type === 'text') whole = event.text;
    }
    return [grown, whole];
  })();
  const live = stream(system.url, id);
  await expect.poll(() => textOf(id)).toBe(texts[0]);
  first!.destroy();
  expect(await ended(system.url, id)).toBe('succeeded');
  expect(await textOf(id)).toBe(texts[1]);
  expect(await own).toEqual([texts[1], texts[1]]);
  for (const events of [await live, await stream(system.url, id)]) {
    let text = '';
    for (const { event, data } of events.filter(({ data: said }) => said !== '[DONE]')) {
      const { offset, text: more } = JSON.parse(data) as { offset: number; text: string };
      if (event === 'reset') text = text.slice(0, offset);
      if (event === 'delta' || event === 'snapshot') text = text.slice(0, offset) + more;
    }
    expect(text).toBe(texts[1]);
  }
  expect((await live).map(({ event }) => event)).toContain('reset');
});

it('a stream of chunks, which takes nothing back, ends with an error', async () => {
  const answer = await fetch(`${system.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }], stream: true }),
  });
  const reading = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let said = '';
  while (!said.includes(' fox')) said += (await reading.read()).value ?? '';
  first!.destroy();
  for (let next = await reading.read(); !next.done; next = await reading.read()) said += next.value;
  expect(said).toContain('"code":"text_changed"');
  expect(said).not.toContain('cat');
  expect(said).not.toContain('[DONE]');
});

it('a response that was left after the first text ends with an error when it is resumed, and whole it is the second', async () => {
  const answer = await fetch(`${system.url}/v1/responses`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model, input: 'hi', stream: true, background: true }),
  });
  const reading = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let said = '';
  while (!said.includes(' fox')) said += (await reading.read()).value ?? '';
  await reading.cancel();
  first!.destroy();
  const id = answer.headers.get('x-request-id')!;
  expect(await ended(system.url, id)).toBe('succeeded');
  const at = `${system.url}/v1/responses/resp_${id}`;
  // As of `a red fox`: no letter of the second text comes after it.
  const rest = await (await fetch(`${at}?stream=true&starting_after=13`)).text();
  expect([rest.includes('"code":"text_changed"'), rest.includes('response.')]).toEqual([true, false]);
  expect(await (await fetch(at)).text()).toContain(`"${texts[1]!}"`);
});

it('says who comes when, and when each will have ended', async () => {
  const running = await submit();
  await expect.poll(() => textOf(running)).toBe(texts[0]);
  const waiting = [await submit(), await submit()];
  expect((await poll(system.url, waiting[0]!)).queue_position).toBe(0);
  expect((await poll(system.url, waiting[1]!)).queue_position).toBe(1);
  // The worker says with its heartbeat how fast it was.
  const endOf = async (id: string) =>
    ((await poll(system.url, id)) as { eta_seconds?: { max: number } }).eta_seconds?.max;
  await expect.poll(() => endOf(running), { timeout: 20_000 }).toBeDefined();
  const ends = await Promise.all(waiting.map(endOf));
  expect(ends[1]!).toBeGreaterThan(ends[0]!);
  first!.destroy();
  for (const id of [running, ...waiting]) expect(await ended(system.url, id)).toBe('succeeded');
});

it('a server that freezes is given up, and waited for', async () => {
  const answers = toy.fault;
  const held: ServerResponse[] = [];
  const id = await submit();
  await expect.poll(() => textOf(id)).toBe(texts[0]);
  // It takes whatever comes, and says nothing any more.
  toy.fault = (_request, response) => held.push(response) > 0;
  await expect.poll(async () => (await poll(system.url, id)).status, { timeout: 30_000 }).toBe('queued');
  toy.fault = answers;
  for (const response of held) response.destroy();
  expect(await ended(system.url, id)).toBe('succeeded');
  expect(await textOf(id)).toBe(texts[1]);
});
