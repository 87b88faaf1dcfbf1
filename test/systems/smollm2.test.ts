/** A published model through the whole system and OpenAI's own client, against what transformers wrote with its weights. */
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
if (missing !== undefined) console.warn(`\nLEFT OUT: SmolLM2 is not tried. ${missing}\n`);

async function serve(dtype: string): Promise<System> {
  const directory = await provideSmollm2();
  const system = await startSystem({ parts: ['api', 'batch-former', 'janitor'] });
  await system.start('worker', { MODEL_DIR: directory, MODEL_DTYPE: dtype, WORKER_TTL_MS: '60000' });
  return system;
}

const clientOf = ({ url }: System) => new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 });

/** Greedily, what it says to all chats at once. */
function answerAll(client: OpenAI): Promise<OpenAI.Chat.ChatCompletion[]> {
  const asked = cases.map(({ messages }) => ({ model, messages, max_tokens, temperature: 0 }));
  return Promise.all(asked.map((body) => client.chat.completions.create(body)));
}

it('is there only with all three of its graphs', () => {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-smollm2-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  mkdirSync(join(directory, 'onnx'));
  writeFileSync(join(directory, 'onnx/model_int8.onnx'), '');
  expect(missingGraphs(directory)).toEqual(['model.onnx', 'model_q4.onnx']);
  for (const name of missingGraphs(directory)) writeFileSync(join(directory, 'onnx', name), '');
  expect(missingGraphs(directory)).toEqual([]);
});

describe.skipIf(missing !== undefined)('SmolLM2-135M-Instruct', () => {
  // Its first run downloads and exports the model.
  beforeAll(() => provideSmollm2(), 900_000);

  it("writes in fp32 what transformers writes, token for token, and streams it through OpenAI's client", async () => {
    const client = clientOf(await serve('fp32'));
    const answers = await answerAll(client);
    const said = answers.map(({ choices, usage }) => ({
      text: choices[0]!.message.content,
      finish_reason: choices[0]!.finish_reason,
      prompt_tokens: usage!.prompt_tokens,
    }));
    expect(said).toEqual(
      cases.map(({ text, finish_reason, prompt_tokens }) => ({ text, finish_reason, prompt_tokens })),
    );
    const { messages, text } = cases.find((each) => /\p{L}\p{M}|[À-ɏ]/u.test(each.text))!;
    const stream = await client.chat.completions.create({ model, messages, max_tokens, temperature: 0, stream: true });
    const pieces: string[] = [];
    for await (const { choices } of stream) if (choices[0]?.delta.content) pieces.push(choices[0].delta.content);
    expect(pieces.join('')).toBe(text);
    expect(pieces.length).toBeGreaterThan(1);
    expect(pieces.filter((piece) => piece.includes('\uFFFD'))).toEqual([]);
  }, 300_000);

  it.each(['int8', 'q4'])(
    'writes in %s the same alone and in company',
    async (dtype) => {
      const system = await serve(dtype);
      const client = clientOf(system);
      const together = (await answerAll(client)).map(({ choices }) => choices[0]!.message.content);
      for (const [at, { messages }] of [...cases.entries()].filter(([index]) => index % 3 === 1)) {
        const { choices } = await client.chat.completions.create({ model, messages, max_tokens, temperature: 0 });
        expect(choices[0]!.message.content).toBe(together[at]);
      }
      // It is still the model that it was.
      expect(together[6]).toContain('def reverse');
      const listed = await client.models.list();
      expect(listed.data.find(({ id }) => id === model)).toMatchObject({ kind: 'text', mode: 'autoregressive' });
    },
    300_000,
  );
});
