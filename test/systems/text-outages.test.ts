/** Failures of text requests: a killed worker, missed deadlines, and messages that a chat template rejects. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pauseModel, readRequest, resumeModel } from '@darkroom/store';
import OpenAI from 'openai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { caller, makeCaller } from '../e2e/caller-model.ts';
import { ended, poll, typesOf, stream, submit, postJson } from '../e2e/client.ts';
import { openSystem } from '../e2e/system.ts';
import { readTextFrames, textOf, type TextFrame } from '../e2e/text-frames.ts';

const models = ['emoji-writer', 'emoji-writer-diffusion'] as const;
const root = new URL('../../', import.meta.url).pathname;

describe.each(models)('a worker of %s that is killed while it writes', (model) => {
  it('streams each token once and ends with the same text', async () => {
    // A short worker TTL and frequent checkpoints.
    const environment = { WORKER_TTL_MS: '2500', CHECKPOINT_STEPS: '7', MODEL_DIR: `models/${model}` };
    const system = await openSystem({ environment });
    const body = { model, prompt: 'once', max_tokens: 230, ignore_eos: true, temperature: 1, seed: 9, stream: true };
    const undisturbed: TextFrame[] = [];
    for await (const frame of readTextFrames(await postJson(`${system.url}/generate`, body))) undisturbed.push(frame);
    const expected = undisturbed.at(-2)!.data;
    const response = await postJson(`${system.url}/generate`, body);
    const frames: TextFrame[] = [];
    let restarted: Promise<unknown> | undefined;
    for await (const frame of readTextFrames(response)) {
      frames.push(frame);
      if (restarted === undefined && frame.event === 'append' && frame.data.token_offset > 20)
        restarted = system
          .part('worker')
          .kill()
          .then(() => system.start('worker'));
    }
    await restarted;
    const appended = frames.filter(({ event }) => event === 'append');
    let tokens = 0;
    for (const { data } of appended) {
      expect(data.token_offset).toBe(tokens);
      tokens += data.token_ids.length;
    }
    expect(tokens).toBe(230);
    const id = response.headers.get('x-request-id')!;
    expect(frames.at(-2)!.data).toEqual({ ...expected, request_id: id });
    expect(textOf(appended)).toBe((expected as unknown as { full_text: string }).full_text);
    const events = await stream(system.url, id);
    expect(typesOf(events).filter((type) => ['queued', 'started', 'succeeded'].includes(type))).toEqual([
      'queued',
      'started',
      'queued',
      'started',
      'succeeded',
    ]);
    expect(await readRequest(system.store, id)).toMatchObject({ request: { attempts: 1, state: 'succeeded' } });
  });
});

type Chunk = OpenAI.Chat.ChatCompletionChunk;

/** Assembles the chunks of each choice of a stream. */
function choicesOf(chunks: readonly Chunk[]) {
  return [0, 1].map((index) => {
    const chunksOfChoice = chunks.flatMap(({ choices }) => choices.filter((choice) => choice.index === index));
    const calls = chunksOfChoice.flatMap(({ delta }) => delta.tool_calls ?? []);
    return {
      content: chunksOfChoice.map(({ delta }) => delta.content ?? '').join(''),
      names: calls.flatMap((call) => call.function?.name ?? []),
      arguments: calls.map((call) => call.function?.arguments ?? '').join(''),
      ends: chunksOfChoice.flatMap(({ finish_reason: reason }) => reason ?? []),
    };
  });
}

describe('a worker that is killed during constrained decoding', () => {
  const schema = {
    type: 'object',
    properties: { name: { type: 'string', minLength: 900, maxLength: 1000 }, color: { enum: ['red', 'blue'] } },
    required: ['name', 'color'],
    additionalProperties: false,
  };
  const draw = { type: 'function', function: { name: 'draw', parameters: schema } } as const;
  const forms = {
    'a tool call': { tools: [draw], tool_choice: { type: 'function', function: { name: 'draw' } } },
    'a JSON schema': { response_format: { type: 'json_schema', json_schema: { name: 'image', schema } } },
  } as const;
  const forcedOf: Record<keyof typeof forms, string[]> = { 'a tool call': ['draw'], 'a JSON schema': [] };

  it.each(['a tool call', 'a JSON schema'] as const)('resumes with the same output: %s', async (form) => {
    const MODEL_DIR = await makeCaller();
    onTestFinished(() => rmSync(join(MODEL_DIR, '..'), { recursive: true }));
    const system = await openSystem({ environment: { WORKER_TTL_MS: '2500', CHECKPOINT_STEPS: '7', MODEL_DIR } });
    const client = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none', maxRetries: 0 });
    const messages = [{ role: 'user', content: 'something sweet' }] as const;
    const options = { model: caller, messages: [...messages], max_tokens: 1000, n: 2, seed: 5, temperature: 1 };
    const write = async (onChunk: (index: number) => void = () => {}): Promise<Chunk[]> => {
      const chunks: Chunk[] = [];
      const body = { ...options, ...forms[form], stream: true } as OpenAI.Chat.ChatCompletionCreateParamsStreaming;
      for await (const chunk of await client.chat.completions.create(body)) onChunk(chunks.push(chunk));
      return chunks;
    };
    const expected = choicesOf(await write());
    let restarted: Promise<unknown> | undefined;
    const disturbed = await write((count) => {
      // Early enough to be far from the end, even if chunks come in batches.
      if (count === 5)
        restarted = system
          .part('worker')
          .kill()
          .then(() => system.start('worker'));
    });
    await restarted;
    expect(choicesOf(disturbed)).toEqual(expected);
    for (const choice of expected) {
      expect(choice.names).toEqual(forcedOf[form]);
      expect(JSON.parse(choice.arguments + choice.content)).toHaveProperty('color');
    }
    const events = await stream(system.url, disturbed[0]!.id.replace(/^chatcmpl-/, ''));
    expect(typesOf(events).filter((type) => type === 'started')).toHaveLength(2);
  });
});

it('orders queued texts by priority, and expires a text whose start_timeout_s has passed', async () => {
  const [model] = models;
  const system = await openSystem({ environment: { MODEL_DIR: `models/${model}` } });
  await pauseModel(system.store, model);
  const body = { model, prompt: 'once', max_tokens: 4 };
  const late = await submit(system.url, { ...body, start_timeout_s: 0.1 });
  const ids: string[] = [];
  for (const priority of [9, 5, 1]) ids.push(await submit(system.url, { ...body, priority }));
  expect(await ended(system.url, late)).toBe('expired');
  const positions = await Promise.all(ids.map(async (id) => (await poll(system.url, id))['queue_position']));
  expect(positions).toEqual([2, 1, 0]);
  const plain = await fetch(`${system.url}/v1/predict/${late}`, { headers: { accept: 'text/plain' } });
  expect([plain.status, await plain.json()]).toMatchObject([422, { error: { code: 'request_expired' } }]);
  await resumeModel(system.store, model);
  for (const id of ids) expect(await ended(system.url, id)).toBe('succeeded');
});

it('answers 400 with the error of the chat template, and stores no request', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'darkroom-writer-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const strict = join(directory, 'strict-writer');
  cpSync(join(root, 'models/emoji-writer'), strict, { recursive: true });
  const file = join(strict, 'tokenizer_config.json');
  const config = JSON.parse(readFileSync(file, 'utf8')) as { chat_template: string };
  const rule = "{% if messages[0]['role'] != 'user' %}{{ raise_exception('the first turn is the user’s') }}{% endif %}";
  const only = "{% if message['role'] in ['user', 'assistant'] %}";
  const turns = config.chat_template.replace(/(\{% for .*? %\})(.*)(\{% endfor %\})/s, `$1${only}$2{% endif %}$3`);
  writeFileSync(file, JSON.stringify({ ...config, chat_template: rule + turns }));
  const system = await openSystem({ environment: { MODEL_DIR: strict } });
  const user = { role: 'user', content: 'something sweet' };
  const ask = async (messages: object[]) => {
    const response = await postJson(`${system.url}/v1/predict`, { messages });
    return [response.status, ((await response.json()) as { message: string }).message];
  };
  expect(await ask([{ role: 'assistant', content: 'a cake' }, user])).toEqual([
    400,
    expect.stringContaining('the first turn is the user’s'),
  ]);
  expect(await ask([user, { role: 'narrator', content: 'meanwhile' }])).toEqual([
    400,
    'messages.1: the model\'s template shows no message of the role "narrator" at this place',
  ]);
  expect(await system.store.redis.keys(`${system.prefix}:*:request:*`)).toEqual([]);
  expect((await postJson(`${system.url}/v1/predict`, { messages: [user] }, { prefer: 'wait=20' })).status).toBe(200);
});
