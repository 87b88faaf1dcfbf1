/** A worker in front of a real llama.cpp server with a real model, through llama.cpp's API and through OpenAI's. */
import { readStats } from '@darkroom/store';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ended, poll, postJson, stream, submit as submitTo } from '../e2e/client.ts';
import { longWorkerTtl, startSystem, stopSystem, type System } from '../e2e/system.ts';
import { freePort, installLlamaServer, type LlamaServer, startLlamaServer } from './llama-server.ts';

const key = 'sk-llama';
const template = new URL('llama-chat.jinja', import.meta.url);
const question = [{ role: 'user', content: 'What is the capital of France? Answer in one word.' }];

const town = {
  type: 'object',
  properties: { town: { enum: ['Paris', 'Oslo'] }, isLarge: { type: 'boolean' } },
  required: ['town', 'isLarge'],
  additionalProperties: false,
};
const unit = {
  type: 'object',
  properties: { unit: { enum: ['C', 'F'] } },
  required: ['unit'],
  additionalProperties: false,
};
const tools = [
  { type: 'function', function: { name: 'look', description: 'Looks at the weather.', parameters: unit } },
];

interface Turn {
  role: string;
  content?: string;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

/** A chat in which every earlier answer is a tool call: even a small model then calls the tool again. */
const talk: Turn[] = [0, 1, 2].flatMap((at) => [
  { role: 'user', content: 'The weather?' },
  {
    role: 'assistant',
    content: '',
    tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'look', arguments: '{"unit": "C"}' } }],
  },
  { role: 'tool', tool_call_id: `c${at}`, content: 'rain' },
]);
talk.push({ role: 'user', content: 'The weather?' });
const items = talk.map(({ role, content, tool_calls: [call] = [], tool_call_id: id }) => {
  if (call !== undefined) return { type: 'function_call', call_id: call.id, ...call.function };
  return id === undefined ? { role, content } : { type: 'function_call_output', call_id: id, output: content };
});

interface Completion {
  choices: {
    message: { content: string | null; tool_calls?: { id: string; function: { name: string; arguments: string } }[] };
    finish_reason: string;
  }[];
}

async function busySlots(port: number): Promise<boolean[]> {
  const answer = await fetch(`http://127.0.0.1:${port}/slots`, { headers: { Authorization: `Bearer ${key}` } });
  return ((await answer.json()) as { is_processing: boolean }[]).map(({ is_processing: isBusy }) => isBusy);
}

describe("llama.cpp's server", () => {
  let llama: LlamaServer;
  let system: System;
  let port: number;
  const apis = [
    ['llama.cpp', 'smollm2-native', {}],
    ['openai', 'smollm2-135m-instruct.q4_1.gguf', { UPSTREAM_SLOTS: '2' }],
  ] as const;

  beforeAll(async () => {
    await installLlamaServer();
    port = await freePort();
    system = await startSystem({
      parts: ['api', 'batch-former', 'janitor'],
      environment: { ...longWorkerTtl, MAX_ATTEMPTS: '10' },
    });
    // The workers start before the server and wait for it.
    const workers = apis.map(([UPSTREAM_API, MODEL_ID, more]) =>
      system.start('worker', {
        EXECUTOR: 'http',
        UPSTREAM_URL: `http://127.0.0.1:${port}`,
        UPSTREAM_API,
        UPSTREAM_KEY: key,
        MODEL_ID,
        ...more,
      }),
    );
    llama = await startLlamaServer({ port, key, template });
    await Promise.all(workers);
  }, 600_000);
  afterAll(async () => {
    if (system !== undefined) await stopSystem(system);
    await llama?.kill();
  });

  const post = (path: string, body: object): Promise<Response> => postJson(`${system.url}${path}`, body);
  const submit = (body: object): Promise<string> => submitTo(system.url, body);

  describe.each(apis)('by the API of %s', (_api, model) => {
    const long = { model, prompt: 'Once upon a time', max_tokens: 24, ignore_eos: true, temperature: 0 };

    it('answers a chat with usage and logprobs, and streams the same text', async () => {
      const body = { model, messages: question, max_tokens: 12, temperature: 0, logprobs: true, top_logprobs: 2 };
      const answer = (await (await post('/v1/chat/completions', body)).json()) as {
        choices: {
          message: { content: string };
          finish_reason: string;
          logprobs: { content: { top_logprobs: object[] }[] };
        }[];
        usage: { prompt_tokens: number; completion_tokens: number };
      };
      const [choice] = answer.choices;
      expect(choice!.message.content).toContain('Paris');
      expect(answer.usage.prompt_tokens).toBeGreaterThan(10);
      expect(answer.usage.completion_tokens).toBeGreaterThan(0);
      expect(choice!.logprobs.content[0]!.top_logprobs).toHaveLength(2);
      const streamed = await (
        await post('/v1/chat/completions', { ...body, logprobs: false, top_logprobs: undefined, stream: true })
      ).text();
      const deltas = streamed
        .split('\n')
        .filter((line) => line.startsWith('data: {'))
        .map(
          (line) =>
            (JSON.parse(line.slice(6)) as { choices: { delta: { content?: string } }[] }).choices[0]?.delta.content ??
            '',
        );
      expect(deltas.join('')).toBe(choice!.message.content);
    });

    it('ends at max_tokens and at a stop string, and fails a prompt longer than the context', async () => {
      const cut = await submit({ ...long, max_tokens: 5 });
      expect(await ended(system.url, cut)).toBe('succeeded');
      expect(await poll(system.url, cut)).toMatchObject({
        finish_reasons: ['length'],
        usage: { completion_tokens: 5 },
      });
      const { texts } = (await poll(system.url, cut)) as unknown as { texts: { text: string }[] };
      const word = texts[0]!.text.trim().split(' ').at(-1)!;
      const stopped = await submit({ ...long, stop: word });
      expect(await ended(system.url, stopped)).toBe('succeeded');
      expect(await poll(system.url, stopped)).toMatchObject({ finish_reasons: ['stop'] });
      const wide = await submit({ model, prompt: 'word '.repeat(5000) });
      expect(await ended(system.url, wide)).toBe('failed');
      const { error } = (await poll(system.url, wide)) as unknown as { error: { code: string; message: string } };
      expect(error).toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining('context size') as string,
      });
    });

    it('constrains output by a JSON schema or a grammar, and reports an invalid grammar', async () => {
      const json_schema = { name: 'town', schema: town };
      const answer = (await (
        await post('/v1/chat/completions', {
          model,
          messages: question,
          max_tokens: 200,
          temperature: 0,
          response_format: { type: 'json_schema', json_schema },
        })
      ).json()) as { choices: { message: { content: string } }[] };
      expect(Object.keys(JSON.parse(answer.choices[0]!.message.content) as object)).toEqual(['town', 'isLarge']);
      const textOf = async (form: object): Promise<string> => {
        const id = await submit({ model, max_tokens: 200, temperature: 0, ...form });
        expect(await ended(system.url, id)).toBe('succeeded');
        return ((await poll(system.url, id)) as unknown as { texts: [{ text: string }] }).texts[0].text;
      };
      const ofSchema = await textOf({ messages: question, response_format: { type: 'json_schema', json_schema } });
      expect(Object.keys(JSON.parse(ofSchema) as object)).toEqual(['town', 'isLarge']);
      expect(await textOf({ prompt: 'Once', grammar: 'root ::= "{" [a-z]{3} "}"' })).toMatch(/^\{[a-z]{3}\}$/);
      const wrong = await submit({ model, prompt: 'Once', grammar: 'root ::= (' });
      expect(await ended(system.url, wrong)).toBe('failed');
      expect(await poll(system.url, wrong)).toMatchObject({
        error: { code: 'invalid_request', message: expect.stringMatching(/grammar/i) as string },
      });
    });

    it('calls tools in chat completions, responses and predict', async () => {
      const options = { model, tools, tool_choice: 'required', temperature: 0 };
      const chat = { ...options, messages: talk, max_tokens: 100 };
      const answer = (await (await post('/v1/chat/completions', chat)).json()) as Completion;
      expect(answer.choices).toMatchObject([{ message: { content: null }, finish_reason: 'tool_calls' }]);
      const { name, arguments: json } = answer.choices[0]!.message.tool_calls![0]!.function;
      expect(name).toBe('look');
      expect(Object.keys(JSON.parse(json) as object)).toEqual(['unit']);
      const streamed = await (await post('/v1/chat/completions', { ...chat, stream: true })).text();
      expect(streamed).toContain('"tool_calls":[{"index":0,"id":"call_');
      expect(streamed).toContain('"finish_reason":"tool_calls"');
      const functions = tools.map(({ type, function: of }) => ({ type, ...of }));
      const input = { ...options, tools: functions, input: items, max_output_tokens: 100 };
      const response = (await (await post('/v1/responses', input)).json()) as object;
      expect(response).toMatchObject({
        tools: functions,
        tool_choice: 'required',
        output: [{ type: 'function_call', name: 'look', status: 'completed' }],
      });
      const id = await submit(chat);
      expect(await ended(system.url, id)).toBe('succeeded');
      expect(await poll(system.url, id)).toMatchObject({ texts: [{ tool_calls: [{ function: { name: 'look' } }] }] });
    });

    it('frees the slots of the server when requests are canceled', async () => {
      const ids = await Promise.all([1, 2, 3].map((seed) => submit({ ...long, seed, max_tokens: 400 })));
      await Promise.all(
        ids.slice(0, 2).map((id) => stream(system.url, id, { until: ({ event }) => event === 'delta' })),
      );
      for (const id of ids) await fetch(`${system.url}/v1/predict/${id}`, { method: 'DELETE' });
      for (const id of ids) expect(await ended(system.url, id)).toBe('canceled');
      await expect.poll(() => busySlots(port), { timeout: 1000 }).toEqual([false, false]);
    });

    it('finishes every text without lost or repeated tokens when the server is killed and restarted', async () => {
      const ids = await Promise.all([1, 2, 3].map((seed) => submit({ ...long, seed })));
      await stream(system.url, ids[0]!, { until: ({ event }) => event === 'delta' });
      await llama.kill();
      await expect
        .poll(() => readStats(system.store, model).then(({ workers }) => workers.loading), { timeout: 20_000 })
        .toBe(1);
      llama = await startLlamaServer({ port, key, template });
      for (const id of ids) expect(await ended(system.url, id)).toBe('succeeded');
      const starts: number[] = [];
      for (const id of ids) {
        const events = await stream(system.url, id);
        starts.push(events.filter(({ event }) => event === 'started').length);
        let text = '';
        for (const { event, data } of events.filter(({ data: frame }) => frame !== '[DONE]')) {
          const { offset, text: more } = JSON.parse(data) as { offset: number; text: string };
          if (event === 'reset') text = text.slice(0, offset);
          if (event === 'delta' || event === 'snapshot') text = text.slice(0, offset) + more;
        }
        const view = (await poll(system.url, id)) as unknown as { texts: { text: string }[]; usage: object };
        expect(text).toBe(view.texts[0]!.text);
        expect(view.usage).toMatchObject({ completion_tokens: 24 });
      }
      expect(Math.max(...starts)).toBeGreaterThan(1);
    });
  });
});
