/** A published text model in the whole system, through OpenAI's client, compared with output of transformers. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { startSystem, type System } from '../e2e/system.ts';
import { missingGraphs, provideSmollm2, whyNoSmollm2 } from './smollm2.ts';

interface Recorded {
  max_tokens: number;
  cases: {
    messages: OpenAI.Chat.ChatCompletionMessageParam[];
    prompt_tokens: number;
    text: string;
    finish_reason: 'stop' | 'length';
  }[];
}

const vectors = new URL('../../tools/golden/vectors/smollm2-greedy.json', import.meta.url);
const { max_tokens, cases } = JSON.parse(readFileSync(vectors, 'utf8')) as Recorded;
const model = 'smollm2-135m-instruct';
const missing = whyNoSmollm2();
if (missing !== undefined) console.warn(`\nSKIPPED: SmolLM2. ${missing}\n`);

async function serve(dtype: string): Promise<System> {
  const directory = await provideSmollm2();
  const system = await startSystem({ parts: ['api', 'batch-former', 'janitor'] });
  await system.start('worker', { MODEL_DIR: directory, MODEL_DTYPE: dtype, WORKER_TTL_MS: '60000' });
  return system;
}

const clientOf = ({ url }: System) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });

/** Requests greedy answers to all recorded chats at once. */
function answerAll(client: OpenAI): Promise<OpenAI.Chat.ChatCompletion[]> {
  const bodies = cases.map(({ messages }) => ({ model, messages, max_tokens, temperature: 0 }));
  return Promise.all(bodies.map((body) => client.chat.completions.create(body)));
}

it('lists the graphs that an export directory lacks', () => {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-smollm2-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'onnx'));
  writeFileSync(join(directory, 'onnx/model_int8.onnx'), '');
  expect(missingGraphs(directory)).toEqual(['model.onnx', 'model_q4.onnx']);
  for (const name of missingGraphs(directory)) writeFileSync(join(directory, 'onnx', name), '');
  expect(missingGraphs(directory)).toEqual([]);
});

describe.skipIf(missing !== undefined)('SmolLM2-135M-Instruct', () => {
  // The first run downloads and exports the model.
  beforeAll(() => provideSmollm2(), 900_000);

  it("writes the same text as transformers in fp32, and streams it through OpenAI's client", async () => {
    const client = clientOf(await serve('fp32'));
    const answers = await answerAll(client);
    const written = answers.map(({ choices, usage }) => ({
      text: choices[0]!.message.content,
      finish_reason: choices[0]!.finish_reason,
      prompt_tokens: usage!.prompt_tokens,
    }));
    expect(written).toEqual(
      cases.map(({ text, finish_reason, prompt_tokens }) => ({ text, finish_reason, prompt_tokens })),
    );
    const { messages, text } = cases.find((each) => /\p{L}\p{M}|[À-ɏ]/u.test(each.text))!;
    const stream = await client.chat.completions.create({ model, messages, max_tokens, temperature: 0, stream: true });
    const deltas: string[] = [];
    for await (const { choices } of stream) if (choices[0]?.delta.content) deltas.push(choices[0].delta.content);
    expect(deltas.join('')).toBe(text);
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas.filter((delta) => delta.includes('\uFFFD'))).toEqual([]);
  }, 300_000);

  it.each(['int8', 'q4'])(
    'writes the same text in %s alone and in a batch',
    async (dtype) => {
      const system = await serve(dtype);
      const client = clientOf(system);
      const together = (await answerAll(client)).map(({ choices }) => choices[0]!.message.content);
      for (const [at, { messages }] of [...cases.entries()].filter(([index]) => index % 3 === 1)) {
        const { choices } = await client.chat.completions.create({ model, messages, max_tokens, temperature: 0 });
        expect(choices[0]!.message.content).toBe(together[at]);
      }
      // The quantized model still writes sensible code.
      expect(together[6]).toContain('def reverse');
      const listed = await client.models.list();
      expect(listed.data.find(({ id }) => id === model)).toMatchObject({ kind: 'text', mode: 'autoregressive' });
    },
    300_000,
  );
});
