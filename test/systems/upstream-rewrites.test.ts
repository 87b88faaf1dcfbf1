/** An upstream that breaks off midway and then writes a different text, or freezes: what each client reads. */
import type { ServerResponse } from 'node:http';
import { createClient } from '@darkroom/client';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { ToyOpenai } from '../../libs/executor/src/testing/toy-openai.ts';
import { ended, poll, stream, submit, postJson } from '../e2e/client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';

const model = 'toy-writer';
const toy = new ToyOpenai();
toy.models = [{ id: model, object: 'model', created: 7, owned_by: 'toys' }];
let system: System;

beforeAll(async () => {
  const UPSTREAM_URL = await toy.start();
  system = await startSystem({ parts: ['api', 'batch-former', 'janitor'], environment: longWorkerTtl });
  await system.start('worker', {
    EXECUTOR: 'http',
    UPSTREAM_URL,
    MODEL_ID: model,
    UPSTREAM_SLOTS: '1',
    // Longer than a test holds an answer open before breaking it off.
    ENGINE_TIMEOUT_S: '3',
  });
}, 120_000);
afterAll(async () => {
  if (system !== undefined) await stopSystem(system);
  await toy.stop();
});

/** The upstream's first answer, which the test breaks off. */
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

const submitOnce = (): Promise<string> => submit(system.url, { model, prompt: 'once' });

const textOf = async (id: string): Promise<string> =>
  ((await poll(system.url, id)) as unknown as { texts: { text: string }[] }).texts[0]!.text;

it('ends every event stream with the second text after a reset', async () => {
  const id = await submitOnce();
  const client = createClient({ baseUrl: system.url });
  const assembled = (async () => {
    let [grown, full] = ['', ''];
    for await (const event of client.stream(id)) {
      if (event.type === 'delta') grown = grown.slice(0, event.offset) + event.text;
      if (event.type === 'reset') grown = grown.slice(0, event.offset);
      if (event.type === 'text') full = event.text;
    }
    return [grown, full];
  })();
  const live = stream(system.url, id);
  await expect.poll(() => textOf(id)).toBe(texts[0]);
  first!.destroy();
  expect(await ended(system.url, id)).toBe('succeeded');
  expect(await textOf(id)).toBe(texts[1]);
  expect(await assembled).toEqual([texts[1], texts[1]]);
  for (const events of [await live, await stream(system.url, id)]) {
    let text = '';
    for (const { event, data } of events.filter(({ data: received }) => received !== '[DONE]')) {
      const { offset, text: more } = JSON.parse(data) as { offset: number; text: string };
      if (event === 'reset') text = text.slice(0, offset);
      if (event === 'delta' || event === 'snapshot') text = text.slice(0, offset) + more;
    }
    expect(text).toBe(texts[1]);
  }
  expect((await live).map(({ event }) => event)).toContain('reset');
});

it('ends a chat completion stream, which cannot retract chunks, with the error text_changed', async () => {
  const answer = await postJson(`${system.url}/v1/chat/completions`, {
    model,
    messages: [{ role: 'user', content: 'hi' }],
    stream: true,
  });
  const reading = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let received = '';
  while (!received.includes(' fox')) received += (await reading.read()).value ?? '';
  first!.destroy();
  for (let next = await reading.read(); !next.done; next = await reading.read()) received += next.value;
  expect(received).toContain('"code":"text_changed"');
  // Ids are random and may contain any word.
  expect(received).not.toMatch(/"content":"[^"]*cat/);
  expect(received).not.toContain('[DONE]');
});

it('ends a resumed response stream with text_changed, and returns the second text as the full response', async () => {
  const answer = await postJson(`${system.url}/v1/responses`, { model, input: 'hi', stream: true, background: true });
  const reading = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  let received = '';
  while (!received.includes(' fox')) received += (await reading.read()).value ?? '';
  await reading.cancel();
  first!.destroy();
  const id = answer.headers.get('x-request-id')!;
  expect(await ended(system.url, id)).toBe('succeeded');
  const at = `${system.url}/v1/responses/resp_${id}`;
  // Event 13 follows `a red fox`; nothing of the second text may be sent after it.
  const rest = await (await fetch(`${at}?stream=true&starting_after=13`)).text();
  expect([rest.includes('"code":"text_changed"'), rest.includes('response.')]).toEqual([true, false]);
  expect(await (await fetch(at)).text()).toContain(`"${texts[1]!}"`);
});

it('reports queue_position and increasing eta_seconds for queued requests', async () => {
  const running = await submitOnce();
  await expect.poll(() => textOf(running)).toBe(texts[0]);
  const waiting = [await submitOnce(), await submitOnce()];
  expect((await poll(system.url, waiting[0]!)).queue_position).toBe(0);
  expect((await poll(system.url, waiting[1]!)).queue_position).toBe(1);
  // The worker publishes its throughput with its heartbeat.
  const endOf = async (id: string) =>
    ((await poll(system.url, id)) as { eta_seconds?: { max: number } }).eta_seconds?.max;
  await expect.poll(() => endOf(running), { timeout: 20_000 }).toBeDefined();
  const ends = await Promise.all(waiting.map(endOf));
  expect(ends[1]!).toBeGreaterThan(ends[0]!);
  first!.destroy();
  for (const id of [running, ...waiting]) expect(await ended(system.url, id)).toBe('succeeded');
});

it('requeues the request of a frozen upstream, and finishes it when the upstream answers again', async () => {
  const answers = toy.fault;
  const openResponses: ServerResponse[] = [];
  const id = await submitOnce();
  await expect.poll(() => textOf(id)).toBe(texts[0]);
  // The upstream accepts requests and never answers.
  toy.fault = (_request, response) => openResponses.push(response) > 0;
  await expect.poll(async () => (await poll(system.url, id)).status, { timeout: 30_000 }).toBe('queued');
  toy.fault = answers;
  for (const response of openResponses) response.destroy();
  expect(await ended(system.url, id)).toBe('succeeded');
  expect(await textOf(id)).toBe(texts[1]);
});
