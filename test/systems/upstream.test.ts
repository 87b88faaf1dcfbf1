/** Darkroom with another Darkroom as upstream: texts, images, cancels, and an upstream that is killed and restarted. */
import { readFile } from 'node:fs/promises';
import { createClient } from '@darkroom/client';
import { readStats } from '@darkroom/store';
import { afterAll, beforeAll, expect, it } from 'vitest';
import OpenAI from 'openai';
import { caller, makeCaller } from '../e2e/caller-model.ts';
import { ended, poll, postJson, submit } from '../e2e/client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';
import { freePort } from './llama-server.ts';

const parts = ['api', 'batch-former', 'janitor'] as const;
const [writer, painter] = ['emoji-writer', 'emoji-sd'];
const messages = [{ role: 'user', content: 'something sweet for a birthday party' }];
/** A text of exactly `max_tokens` tokens. */
const long = { model: writer, prompt: 'once', ignore_eos: true, temperature: 1, max_tokens: 240 };

let behind: System;
let front: System;
let port: number;

function upstreamOf(model: string, UPSTREAM_SLOTS = '4'): Record<string, string> {
  const UPSTREAM_URL = `http://127.0.0.1:${port}/v1`;
  return {
    EXECUTOR: 'http',
    UPSTREAM_URL,
    UPSTREAM_API: 'openai',
    UPSTREAM_KEY: 'sk-upstream-0123456',
    UPSTREAM_SLOTS,
    MODEL_ID: model,
  };
}

beforeAll(async () => {
  port = await freePort();
  behind = await startSystem({
    parts: [
      'batch-former',
      'janitor',
      { name: 'api', environment: { PORT: `${port}`, API_KEYS: 'front:sk-upstream-0123456' } },
    ],
    environment: longWorkerTtl,
  });
  front = await startSystem({ parts, environment: { ...longWorkerTtl, MAX_ATTEMPTS: '10' } });
  const directories = [`models/${writer}`, `models/${painter}`, await makeCaller()];
  await Promise.all(directories.map((MODEL_DIR) => behind.start('worker', { MODEL_DIR })));
  await Promise.all([writer, painter, caller].map((model) => front.start('worker', upstreamOf(model))));
}, 120_000);
afterAll(async () => {
  await Promise.all([front, behind].filter((system) => system !== undefined).map((system) => stopSystem(system)));
});

function post(system: System, path: string, body: object): Promise<Response> {
  const key: Record<string, string> = system === behind ? { Authorization: 'Bearer sk-upstream-0123456' } : {};
  return postJson(`${system.url}${path}`, body, key);
}

async function textOf(id: string): Promise<string> {
  const { texts } = (await poll(front.url, id)) as unknown as { texts: { text: string }[] };
  return texts[0]!.text;
}

/** Returns the free slots of the writer in the upstream system. */
const freeBehind = async (): Promise<number> => (await readStats(behind.store, writer)).freeSlots;

it('returns the same chat and text completions as the upstream', async () => {
  const body = { model: writer, messages, logprobs: true, top_logprobs: 2, temperature: 0 };
  const answers = await Promise.all(
    [front, behind].map(
      async (system) => (await (await post(system, '/v1/chat/completions', body)).json()) as Record<string, object>,
    ),
  );
  expect(answers[0]!['choices']).toEqual(answers[1]!['choices']);
  expect(answers[0]!['choices']).toMatchObject([{ message: { content: 'a birthday cake on a pink background' } }]);
  const usage = (answers[1] as { usage: object }).usage;
  expect(answers[0]!['usage']).toMatchObject({ ...usage, prompt_tokens_details: expect.any(Object) as object });
  const sampled = { ...long, prompt: [5, 6, 7], seed: 7, n: 3, max_tokens: 20 };
  const texts = await Promise.all(
    [front, behind].map(
      async (system) => (await (await post(system, '/v1/completions', sampled)).json()) as Record<string, object>,
    ),
  );
  expect(texts[0]!['choices']).toEqual(texts[1]!['choices']);
});

const color = { type: 'object', properties: { color: { enum: ['red', 'blue'] } }, required: ['color'] };
const tools = ['draw', 'paint'].map((name) => ({ type: 'function' as const, function: { name, parameters: color } }));
const clientOf = ({ url }: System): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'sk-upstream-0123456', maxRetries: 0 });

it('returns the same schema- and grammar-constrained output as the upstream', async () => {
  const format = { type: 'json_schema', json_schema: { name: 'color', schema: color } };
  const all: [path: string, body: object][] = [
    ['/v1/chat/completions', { messages, response_format: format }],
    [
      '/v1/completions',
      { prompt: 'once', response_format: { type: 'json_object' }, max_tokens: 40, seed: 3, temperature: 1 },
    ],
    ['/v1/completions', { prompt: 'once', grammar: 'root ::= "a " ("red" | "blue") " fox"' }],
  ];
  for (const [path, body] of all) {
    const answers = await Promise.all(
      [front, behind].map(
        async (system) =>
          (await post(system, path, { model: writer, ...body })).json() as Promise<{ choices: object[] }>,
      ),
    );
    expect(answers[0]!.choices).toEqual(answers[1]!.choices);
    expect(answers[0]!.choices).toMatchObject([{ index: 0 }]);
  }
});

const called = (answer: OpenAI.ChatCompletion) =>
  answer.choices[0]!.message.tool_calls!.map((call) => (call as OpenAI.ChatCompletionMessageFunctionToolCall).function);

it("returns the same tool calls as the upstream through OpenAI's SDK", async () => {
  const options = { model: caller, max_completion_tokens: 200, tools };
  const body = {
    ...options,
    messages: messages.map(({ content }) => ({ role: 'user' as const, content })),
    tool_choice: 'required' as const,
  };
  const [ours, theirs] = await Promise.all(
    [front, behind].map((system) => clientOf(system).chat.completions.create(body)),
  );
  expect(called(ours!)).toEqual(called(theirs!));
  expect(called(ours!)).not.toEqual([]);
  expect(ours!.choices[0]).toMatchObject({
    finish_reason: theirs!.choices[0]!.finish_reason,
    message: { content: null },
  });
  const streamed = await clientOf(front).chat.completions.stream(body).finalChatCompletion();
  expect(called(streamed)).toEqual(called(ours!));
  const [call] = ours!.choices[0]!.message.tool_calls!;
  const after = {
    ...body,
    messages: [
      ...body.messages,
      ours!.choices[0]!.message,
      { role: 'tool' as const, tool_call_id: call!.id, content: 'drawn' },
    ],
  };
  const next = await Promise.all([front, behind].map((system) => clientOf(system).chat.completions.create(after)));
  expect(called(next[0]!)).toEqual(called(next[1]!));
  const functions = tools.map(({ type, function: of }) => ({ type, ...of, strict: true }));
  const response = await clientOf(front).responses.create({
    model: caller,
    input: 'something cold',
    max_output_tokens: 200,
    tools: functions,
    tool_choice: 'required',
  });
  expect(response.output).toMatchObject([{ type: 'function_call', status: 'completed' }]);
});

it('returns the same images as the upstream, and streams previews', async () => {
  const body = { model: painter, prompt: 'a red apple on a white background', size: '64x64', n: 2, seed: 7 };
  const request = { ...body, num_inference_steps: 8, output_format: 'webp', response_format: 'b64_json' };
  const [ours, theirs] = await Promise.all(
    [front, behind].map(
      async (system) => (await (await post(system, '/v1/images/generations', request)).json()) as { data: object[] },
    ),
  );
  expect(ours!.data).toHaveLength(2);
  expect(ours!.data).toEqual(theirs!.data);
  const streamed = { ...body, n: 1, num_inference_steps: 8, stream: true, partial_images: 2 };
  const frames = await (await post(front, '/v1/images/generations', streamed)).text();
  const types = [...frames.matchAll(/"type":"image_generation\.(\w+)"/g)].map(([, type]) => type);
  expect(types).toEqual(['partial_image', 'partial_image', 'completed']);
  const id = await submit(front.url, { ...body, num_inference_steps: 8, preview: { every: 2 } });
  const events = await (await fetch(`${front.url}/v1/predict/${id}/events`)).text();
  expect(events).toContain('data:image/jpeg;base64,');
  expect(await poll(front.url, id)).toMatchObject({
    status: 'succeeded',
    images: [{ width: 64, seed: 7 }, { seed: 8 }],
  });
});

it('lists model limits from the upstream, and leaves other validation to the upstream', async () => {
  const { data } = (await (await fetch(`${front.url}/v1/models`)).json()) as { data: { id: string }[] };
  expect(data.map(({ id }) => id).toSorted()).toEqual([caller, painter, writer].toSorted());
  expect(data.find(({ id }) => id === writer)).toMatchObject({
    kind: 'text',
    max_model_len: 256,
    vocabulary_size: 6144,
    has_tools: false,
  });
  expect(data.find(({ id }) => id === caller)).toMatchObject({ has_tools: true });
  const { message } = (await (
    await post(front, '/v1/predict', { ...long, messages, prompt: undefined, tools })
  ).json()) as {
    message: string;
  };
  expect(message).toContain('nothing: emoji-writer calls none, for its server says so');
  const refused = await submit(front.url, { ...long, max_tokens: 5000 });
  expect(await ended(front.url, refused)).toBe('failed');
  const { error } = (await poll(front.url, refused)) as unknown as { error: { code: string; message: string } };
  expect(error).toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('max_tokens is 5000') as string,
  });
});

it('frees the slot in the upstream when a request is canceled', async () => {
  await expect.poll(freeBehind).toBeGreaterThan(0);
  const free = await freeBehind();
  const ids = await Promise.all([1, 2].map((seed) => submit(front.url, { ...long, n: 2, seed })));
  await expect.poll(freeBehind).toBeLessThan(free);
  for (const id of ids) await fetch(`${front.url}/v1/predict/${id}`, { method: 'DELETE' });
  for (const id of ids) expect(await ended(front.url, id)).toBe('canceled');
  await expect.poll(freeBehind).toBe(free);
});

it('finishes every text without lost or repeated tokens when the upstream is killed and restarted', async () => {
  const bodies = Array.from({ length: 6 }, (_, seed) => ({ ...long, seed, max_tokens: 100 }));
  const client = createClient({ baseUrl: front.url });
  let killed: Promise<unknown> | undefined;
  const restart = async (): Promise<void> => {
    await behind.part('api').kill();
    // The worker in front reports `loading` while it waits for the upstream.
    await expect.poll(() => readStats(front.store, writer).then(({ workers }) => workers.loading)).toBe(1);
    await behind.start('api', { PORT: `${port}`, API_KEYS: 'front:sk-upstream-0123456' });
  };
  const grown = await Promise.all(
    bodies.map(async (body) => {
      const { request_id: id } = await client.submit(body);
      let text = '';
      let full = '';
      let starts = 0;
      for await (const event of client.stream(id)) {
        if (event.type === 'started') starts += 1;
        if (event.type === 'delta') text = text.slice(0, event.offset) + event.text;
        if (event.type === 'reset') text = text.slice(0, event.offset);
        if (event.type === 'text') full = event.text;
        if (text.length > 40) killed ??= restart();
      }
      return { id, text, full, starts };
    }),
  );
  expect(killed).toBeDefined();
  await killed;
  const alone = await Promise.all(
    bodies.map(async (body) => {
      const answer = (await (await post(behind, '/v1/completions', body)).json()) as { choices: { text: string }[] };
      return answer.choices[0]!.text;
    }),
  );
  expect(grown.map(({ text }) => text)).toEqual(alone);
  expect(grown.map(({ full }) => full)).toEqual(alone);
  expect(await Promise.all(grown.map(({ id }) => textOf(id)))).toEqual(alone);
  expect(Math.max(...grown.map(({ starts }) => starts))).toBeGreaterThan(1);
});

it('reports a rejected UPSTREAM_KEY without exposing keys', async () => {
  const wrong = front.launch('worker', { ...upstreamOf(writer), UPSTREAM_KEY: 'sk-wrong', WORKER_ID: 'wrong' });
  await expect(wrong.ready).rejects.toThrow('worker ended before it was ready');
  expect(wrong.process.exitCode).not.toBe(0);
  const { failed_to_load: failures } = (await (await fetch(`${front.url}/status`)).json()) as {
    failed_to_load?: object[];
  };
  expect(JSON.stringify(failures)).toContain('expected it to accept the key of UPSTREAM_KEY');
  expect(JSON.stringify(failures)).not.toContain('sk-wrong');
  const log = await readFile(front.logFile, 'utf8');
  expect(log).toContain('expected it to accept the key of UPSTREAM_KEY');
  for (const key of ['sk-wrong', 'sk-upstream-0123456']) expect(log).not.toContain(key);
});

it('starts a worker with the command of docs/upstreams.md', async () => {
  const document = await readFile(new URL('../../docs/upstreams.md', import.meta.url), 'utf8');
  const [, command] = /```sh\n([^`]*UPSTREAM_URL=http:\/\/127\.0\.0\.1:8080 [^`]*)```/.exec(document)!;
  const {
    REDIS_URL: _redis,
    BYTES_URL: _bytes,
    ...environment
  } = Object.fromEntries([...command!.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [name!, value!]));
  const here = { REDIS_PREFIX: front.prefix, UPSTREAM_URL: environment['UPSTREAM_URL']!.replace('8080', `${port}`) };
  const worker = await front.start('worker', { ...environment, ...here, UPSTREAM_KEY: 'sk-upstream-0123456' });
  expect(await readStats(front.store, writer)).toMatchObject({ workers: { loading: 0 } });
  await worker.stop();
});
