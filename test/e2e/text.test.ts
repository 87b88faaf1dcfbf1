/** Text requests through the whole system, on the bundled text models next to the image model. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { modelListSchema, textStatusSchema } from '../../apps/api/src/openapi/api-schemas.ts';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { ended, postJson, type ServerEvent, stream, submit as submitTo } from './client.ts';
import { caller } from './caller-model.ts';
import { blockWriter, imageReader, useSharedSystem, writer } from './shared-system.ts';
import { frames, textOf } from './text-frames.ts';
import { startReceiver, untilAllDelivered } from './webhook-receiver.ts';

const root = new URL('../../', import.meta.url).pathname;
const models = [writer, blockWriter] as const;
const messages = [{ role: 'user', content: 'something sweet for a birthday party' }];
const cake = 'a birthday cake on a pink background';

const system = useSharedSystem();

const post = (path: string, body: unknown, headers?: Record<string, string>): Promise<Response> =>
  postJson(`${system.url}${path}`, body, headers);
const submit = (body: object): Promise<string> => submitTo(system.url, body);

/** Polls a request and parses it by the schema of the OpenAPI document. */
async function poll(id: string) {
  return textStatusSchema.parse(await (await fetch(`${system.url}/v1/predict/${id}`)).json());
}

/** Returns the token ids that the model reads for the messages. */
async function promptOf(model: string): Promise<number[]> {
  const id = await submit({ model, messages });
  await ended(system.url, id);
  return (await poll(id)).parameters.prompt as number[];
}

async function storedCount(): Promise<number> {
  return (await allKeys(system.store)).filter((key) => /:(?:request|input):/.test(key)).length;
}

/** Applies the delta and snapshot events of one text. */
function wholeText(events: readonly ServerEvent[]): string {
  return events
    .filter(({ event }) => event === 'delta' || event === 'snapshot')
    .map(({ data }) => JSON.parse(data) as { offset: number; text: string })
    .reduce((text, event) => text.slice(0, event.offset) + event.text, '');
}

describe.each(models)('%s', (model) => {
  it('/generate: the streamed and the unstreamed response equal the poll', async () => {
    const body = { model, prompt: await promptOf(model), max_tokens: 24 };
    const one = await post('/generate', body);
    const answer = (await one.json()) as { token_ids: number[]; nfe: number };
    expect([one.status, answer]).toMatchObject([200, { full_text: cake, finish_reason: 'stop' }]);
    const streamed = await post('/generate', { ...body, stream: true });
    const events = await frames(streamed);
    const appended = events.filter(({ event }) => event === 'append');
    expect(textOf(appended)).toBe(cake);
    let tokens = 0;
    for (const { data } of appended) {
      expect(data.token_offset).toBe(tokens);
      tokens += data.token_ids.length;
    }
    expect(appended.flatMap(({ data }) => data.token_ids)).toEqual(answer.token_ids);
    expect(appended.map(({ data }) => data.finished)).toEqual(appended.map((_, at) => at === appended.length - 1));
    expect(events.slice(-2)).toEqual([
      { event: 'final', data: { ...answer, request_id: streamed.headers.get('x-request-id') } },
      { event: undefined, data: '[DONE]' },
    ]);
    const view = await poll(streamed.headers.get('x-request-id')!);
    expect(view).toMatchObject({ status: 'succeeded', texts: [{ index: 0, text: cake }], progress: 1 });
    expect([view.usage.nfe, view.tokens]).toEqual([answer.nfe, answer.token_ids.length + 1]);
    // One model call per token and one for the end token; fewer with blocks.
    expect(answer.nfe <= answer.token_ids.length + 1).toBe(true);
    expect(answer.nfe < answer.token_ids.length).toBe(model === 'emoji-writer-diffusion');
  });

  it('polls show the tokens so far and eta_seconds', async () => {
    const long = { model, messages, max_tokens: 150, ignore_eos: true, temperature: 1, seed: 5, n: 4 };
    // ETAs are available once the worker has reported its throughput.
    const accepted = async () =>
      (await (await post('/v1/predict', { ...long, n: 1 })).json()) as { eta_seconds?: object };
    await expect.poll(async () => (await accepted()).eta_seconds).toMatchObject({ min: expect.any(Number) });
    const id = await submit(long);
    const views = [await poll(id)];
    while (!['succeeded', 'failed'].includes(views.at(-1)!.status)) views.push(await poll(id));
    const running = views.filter(({ status, tokens }) => status === 'running' && tokens > 0);
    expect(running.length).toBeGreaterThan(1);
    for (const { tokens, progress, eta_seconds: eta } of running) {
      expect([progress, tokens <= 600]).toEqual([tokens / 600, true]);
      expect(eta!.max).toBeGreaterThanOrEqual(eta!.min);
    }
    const tokens = running.map((view) => view.tokens);
    expect(tokens).toEqual(tokens.toSorted((left, right) => left - right));
    expect(running.at(-1)!.texts.map(({ text }) => text.length > 0)).toEqual([true, true, true, true]);
    const last = views.at(-1)!;
    expect(last).toMatchObject({ status: 'succeeded', tokens: 600, finish_reasons: Array(4).fill('length') });
    // The reported parameters reproduce the texts.
    const again = await submit(last.parameters);
    expect(await ended(system.url, again)).toBe('succeeded');
    expect((await poll(again)).texts).toEqual(last.texts);
  });

  it('the event stream can be read during generation and after the end', async () => {
    const id = await submit({ model, messages, max_tokens: 200, ignore_eos: true, temperature: 1, seed: 9 });
    const live = await stream(system.url, id);
    const { texts } = await poll(id);
    expect(wholeText(live)).toBe(texts[0]!.text);
    expect(wholeText(await stream(system.url, id))).toBe(texts[0]!.text);
    expect(live.at(-1)!.data).toBe('[DONE]');
    // A compacted log still has all tokens.
    const key = { 'idempotency-key': `later-${model}` };
    const body = { model, prompt: 'once', max_tokens: 200, ignore_eos: true, seed: 9 };
    const first = await (await post('/generate', body, key)).json();
    expect(first).toMatchObject({ token_ids: { length: 200 }, finish_reason: 'length' });
    expect(await (await post('/generate', body, key)).json()).toEqual(first);
  });

  it('Accept: text/plain streams the plain text', async () => {
    const response = await post('/v1/predict', { model, messages }, { accept: 'text/plain' });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(response.headers.get('transfer-encoding')).toBe('chunked');
    expect(await response.text()).toBe(cake);
    const later = await fetch(new URL(response.headers.get('location')!, system.url), {
      headers: { accept: 'text/plain' },
    });
    expect(await later.text()).toBe(cake);
  });
});

it("stream_mode denoise sends the states of each block in order, at the block's offset", async () => {
  const [, model] = models;
  const body = { model, prompt: await promptOf(model), stream: true, stream_mode: 'denoise', ignore_eos: true };
  const events = await frames(await post('/generate', body));
  const snapshots = events.filter(({ event }) => event === 'buffer_snapshot');
  const final = events.at(-2)!.data as unknown as { full_text: string; token_ids: number[]; nfe: number };
  expect(new Set(snapshots.map(({ data }) => data.absolute_start))).toEqual(new Set([0, 8, 16]));
  for (const { data } of snapshots) expect(data.absolute_end - data.absolute_start).toBe(data.token_ids.length);
  const last = [0, 8, 16].map((start) => snapshots.findLast(({ data }) => data.absolute_start === start)!.data);
  expect(last.map(({ text }) => text).join('')).toBe(final.full_text);
  expect(last.flatMap(({ token_ids: ids }) => ids)).toEqual(final.token_ids);
  expect(last[0]!.text.startsWith('a birthday cake')).toBe(true);
  expect(snapshots[0]!.data.text).toContain('░');
  const calls = snapshots.map(({ data }) => data.nfe);
  expect(calls).toEqual(calls.toSorted((left, right) => left - right));
  // Two blocks took one extra read each.
  expect([calls.at(-1), final.nfe]).toEqual([snapshots.length + 2, calls.at(-1)]);
  const refused = await post('/generate', { ...body, model: models[0] });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { param: 'stream_mode', message: expect.stringContaining('emoji-writer is autoregressive') } },
  ]);
});

it('sends webhooks for text requests', async () => {
  const receiver = await startReceiver(system);
  const id = await submit({
    model: models[0],
    messages,
    webhook_url: receiver.url,
    webhook_events: ['started', 'completed'],
  });
  await ended(system.url, id);
  await untilAllDelivered(system);
  const mine = receiver.messages.filter(({ data }) => data.request_id === id);
  expect(mine.map(({ type }) => type)).toEqual(['request.started', 'request.succeeded']);
  expect(mine[1]!.data).toMatchObject({ finish_reasons: ['stop'], usage: { completion_tokens: 8 } });
  expect(receiver.forged).toBe(0);
});

it('lists models by kind; image routes accept image models only, text routes text models only', async () => {
  const { data } = modelListSchema.parse(await (await fetch(`${system.url}/v1/models`)).json());
  expect(data.map(({ id, kind }) => [id, kind])).toEqual([
    [imageReader, 'text'],
    ['emoji-sd', 'image'],
    [writer, 'text'],
    [caller, 'text'],
    [blockWriter, 'text'],
  ]);
  expect(data[0]).toMatchObject({ takes: ['image'], images: { min: 1, max: 1 } });
  expect(data[4]).toMatchObject({ mode: 'block_diffusion', max_model_len: 256, block_size: 8, deterministic: true });
  const drawn = await post('/v1/images/generations', { prompt: cake, num_inference_steps: 1, response_format: 'url' });
  expect(drawn.headers.get('x-request-id')).toMatch(/^emoji-sd-/);
  const refused = await post('/v1/images/generations', { prompt: cake, model: models[0] });
  expect([refused.status, await refused.json()]).toMatchObject([
    404,
    { message: 'model emoji-writer has the kind text, which this route does not serve: use /v1/chat/completions' },
  ]);
  const notText = await post('/generate', { prompt: cake, model: 'emoji-sd' });
  expect([notText.status, await notText.json()]).toMatchObject([
    404,
    {
      message: 'model emoji-sd has the kind image, which this route does not serve: use /v1/images/generations',
    },
  ]);
});

/** Runs a command of a document against this system. Returns its output. */
async function outputOf(command: string): Promise<string> {
  const script = command.replaceAll('http://127.0.0.1:8080', system.url);
  const { stdout } = await promisify(execFile)('sh', ['-c', script], { env: { PATH: process.env['PATH'] } });
  return stdout;
}

describe('docs/text.md', () => {
  /** Each command with the output below it. */
  const examples = readFileSync(join(root, 'docs/text.md'), 'utf8')
    .split(/^## /m)
    .filter((section) => /^(?:Texts by|POST \/generate)/.test(section))
    .flatMap((section) => [...section.matchAll(/```sh\n(.*?)```\n.*?```(text|json)\n(.*?)```/gs)])
    .map(([, command, language, output]) => ({ command: command!, language, output: output! }));

  it('has five examples of native text routes', () => {
    expect(examples).toHaveLength(5);
  });

  it.each(examples.filter(({ language }) => language === 'text'))('$command', async ({ command, output }) => {
    expect((await outputOf(command)).trim()).toBe(output.trim());
  });

  it.each(examples.filter(({ language }) => language === 'json'))('$command', async ({ command, output }) => {
    expect(JSON.parse(await outputOf(command))).toMatchObject(JSON.parse(output) as object);
  });
});

const half = new Uint8Array(
  Buffer.concat([Buffer.from('{"prompt": "'), Buffer.from('é').subarray(0, 1), Buffer.from('"}')]),
);

/** Invalid bodies and a part of the error. `routes`: only these have the field. */
const badBodies: [what: string, body: object | Uint8Array, message: string, routes?: readonly string[]][] = [
  [
    'token ids beyond the vocabulary',
    { prompt: [5, 6144] },
    'prompt.1 is 6144, expected an id below 6144, as many as emoji-writer has',
  ],
  ['prompt and messages', { prompt: 'a', messages }, 'expected nothing beside prompt', ['/v1/predict']],
  ['neither prompt nor messages', {}, 'prompt is missing, expected text'],
  ['n = 0', { prompt: 'a', n: 0 }, 'n is 0, expected a whole number from 1 to 10', ['/v1/predict']],
  ['n = 0', { prompt: 'a', n: 0 }, 'n is not a field', ['/generate']],
  ['max_tokens beyond the context length', { prompt: 'a', max_tokens: 256 }, 'max_tokens is 256, expected at most'],
  ['text that is not UTF-8', half, 'the body is not UTF-8, expected a JSON object'],
  ['unpaired surrogate in a prompt', { prompt: 'a \ud83d' }, 'expected valid UTF-8 without unpaired surrogates'],
  [
    'unpaired surrogate in a stop text',
    { prompt: 'a', stop: ['\udc00'] },
    'expected valid UTF-8 without unpaired surrogates',
  ],
];

describe.each(['/v1/predict', '/generate'])('POST %s', (path) => {
  it.each(badBodies.filter(([, , , routes]) => routes?.includes(path) ?? true))(
    'refuses %s and stores nothing',
    async (_what, body, message) => {
      const before = await storedCount();
      const json = body instanceof Uint8Array ? body : JSON.stringify({ model: models[0], ...body });
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${system.url}${path}`, { method: 'POST', headers, body: json });
      const text = await response.text();
      expect([response.status, text]).toEqual([400, expect.stringContaining(JSON.stringify(message).slice(1, -1))]);
      expect(await storedCount()).toBe(before);
      // The server still serves valid requests.
      expect(await (await post('/generate', { model: models[0], prompt: 'a', max_tokens: 1 })).json()).toHaveProperty(
        'nfe',
        1,
      );
    },
  );
});
