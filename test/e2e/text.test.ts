/** Texts through the whole system, of the writers that are in the box, beside the model of pictures. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { modelListSchema, textStatusSchema } from '../../apps/api/src/v1/api-schemas.ts';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { ended, type ServerEvent, stream } from './client.ts';
import { caller } from './caller-model.ts';
import { blockWriter, useSharedSystem, writer } from './shared-system.ts';
import { frames, textOf } from './text-frames.ts';
import { startReceiver, untilAllDelivered } from './webhook-receiver.ts';

const root = new URL('../../', import.meta.url).pathname;
const models = [writer, blockWriter] as const;
const messages = [{ role: 'user', content: 'something sweet for a birthday party' }];
const cake = 'a birthday cake on a pink background';

const system = useSharedSystem();

async function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${system.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
  });
}

async function submit(body: object): Promise<string> {
  const response = await post('/v1/predict', body);
  if (response.status !== 202) throw new Error(`${response.status} ${await response.text()}`);
  return ((await response.json()) as { request_id: string }).request_id;
}

/** A poll, held against the document's schema. */
async function poll(id: string) {
  return textStatusSchema.parse(await (await fetch(`${system.url}/v1/predict/${id}`)).json());
}

/** The ids that the model reads of messages. */
async function promptOf(model: string): Promise<number[]> {
  const id = await submit({ model, messages });
  await ended(system.url, id);
  return (await poll(id)).parameters.prompt as number[];
}

async function storedCount(): Promise<number> {
  return (await allKeys(system.store)).filter((key) => /:(?:request|input):/.test(key)).length;
}

/** What stands in the end, of events of one text. */
function wholeText(events: readonly ServerEvent[]): string {
  return events
    .filter(({ event }) => event === 'delta' || event === 'snapshot')
    .map(({ data }) => JSON.parse(data) as { offset: number; text: string })
    .reduce((text, piece) => text.slice(0, piece.offset) + piece.text, '');
}

describe.each(models)('%s', (model) => {
  it('answers /generate, in one piece and in a stream, with what a poll says', async () => {
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
      { event: 'final', data: answer },
      { event: undefined, data: '[DONE]' },
    ]);
    const view = await poll(streamed.headers.get('x-request-id')!);
    expect(view).toMatchObject({ status: 'succeeded', texts: [{ index: 0, text: cake }], progress: 1 });
    expect([view.usage.nfe, view.tokens]).toEqual([answer.nfe, answer.token_ids.length + 1]);
    // One token a call, and the end token's; with blocks fewer.
    expect(answer.nfe <= answer.token_ids.length + 1).toBe(true);
    expect(answer.nfe < answer.token_ids.length).toBe(model === 'emoji-writer-diffusion');
  });

  it('shows its tokens so far in polls, and when it will have ended', async () => {
    const long = { model, messages, max_tokens: 150, ignore_eos: true, temperature: 1, seed: 5, n: 4 };
    // As soon as the worker has said how fast it is.
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
    // Said again, it makes the same texts.
    const again = await submit(last.parameters);
    expect(await ended(system.url, again)).toBe('succeeded');
    expect((await poll(again)).texts).toEqual(last.texts);
  });

  it('is followed as events, also by who comes later', async () => {
    const id = await submit({ model, messages, max_tokens: 200, ignore_eos: true, temperature: 1, seed: 9 });
    const live = await stream(system.url, id);
    const { texts } = await poll(id);
    expect(wholeText(live)).toBe(texts[0]!.text);
    expect(wholeText(await stream(system.url, id))).toBe(texts[0]!.text);
    expect(live.at(-1)!.data).toBe('[DONE]');
    // Late, from a log that was made shorter, the tokens are all there.
    const key = { 'idempotency-key': `later-${model}` };
    const body = { model, prompt: 'once', max_tokens: 200, ignore_eos: true, seed: 9 };
    const first = await (await post('/generate', body, key)).json();
    expect(first).toMatchObject({ token_ids: { length: 200 }, finish_reason: 'length' });
    expect(await (await post('/generate', body, key)).json()).toEqual(first);
  });

  it('comes as plain text', async () => {
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

it('the states of a block come one after the other, each where it stands', async () => {
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
  // Two blocks were read once more.
  expect([calls.at(-1), final.nfe]).toEqual([snapshots.length + 2, calls.at(-1)]);
  const refused = await post('/generate', { ...body, model: models[0] });
  expect([refused.status, await refused.json()]).toMatchObject([
    400,
    { error: { param: 'stream_mode', message: expect.stringContaining('emoji-writer is autoregressive') } },
  ]);
});

it('a webhook is told of a text as it is of pictures', async () => {
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

it('models are listed by their kinds, and routes of pictures take those of pictures only', async () => {
  const { data } = modelListSchema.parse(await (await fetch(`${system.url}/v1/models`)).json());
  expect(data.map(({ id, kind }) => [id, kind])).toEqual([
    ['emoji-sd', 'picture'],
    [writer, 'text'],
    [caller, 'text'],
    [blockWriter, 'text'],
  ]);
  expect(data[3]).toMatchObject({ mode: 'block_diffusion', max_model_len: 256, block_size: 8, deterministic: true });
  const drawn = await post('/v1/images/generations', { prompt: cake, num_inference_steps: 1, response_format: 'url' });
  expect(drawn.headers.get('x-request-id')).toMatch(/^emoji-sd-/);
  const refused = await post('/v1/images/generations', { prompt: cake, model: models[0] });
  expect([refused.status, await refused.json()]).toMatchObject([
    404,
    { message: 'model "emoji-writer" is not here, expected one of emoji-sd' },
  ]);
  const notText = await post('/generate', { prompt: cake, model: 'emoji-sd' });
  expect([notText.status, await notText.json()]).toMatchObject([
    404,
    {
      message:
        'model "emoji-sd" is not here, expected one of emoji-writer, emoji-writer-caller, emoji-writer-diffusion',
    },
  ]);
});

/** What a command of a document says, run here. */
async function outputOf(command: string): Promise<string> {
  const script = command.replaceAll('http://127.0.0.1:8080', system.url);
  const { stdout } = await promisify(execFile)('sh', ['-c', script], { env: { PATH: process.env['PATH'] } });
  return stdout;
}

describe('docs/text.md', () => {
  /** Each command, and what stands below it. */
  const examples = readFileSync(join(root, 'docs/text.md'), 'utf8')
    .split(/^## /m)
    .filter((section) => /^(?:Texts by|POST \/generate)/.test(section))
    .flatMap((section) => [...section.matchAll(/```sh\n(.*?)```\n.*?```(text|json)\n(.*?)```/gs)])
    .map(([, command, language, output]) => ({ command: command!, language, output: output! }));

  it('has commands for all that is there', () => {
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

/** What each route says of what is no request. `undefined`: the route has no such field. */
const badBodies: [what: string, body: object | Uint8Array, message: string, routes?: readonly string[]][] = [
  [
    'token ids beyond the vocabulary',
    { prompt: [5, 6144] },
    'prompt.1 is 6144, expected an id below 6144, as many as emoji-writer has',
  ],
  [
    'no token ids',
    { prompt: [] },
    'prompt is [], expected text of 1 to 1000000 characters, or a list of ids of tokens',
  ],
  ['token ids below 0', { prompt: [-1] }, 'prompt.0 is -1, expected a whole number from 0 to 2147483648'],
  ['empty messages', { messages: [] }, 'messages is [], expected a list of 1 to 1000 messages', ['/v1/predict']],
  [
    'messages without content',
    { messages: [{ role: 'user' }] },
    'messages.0.content is missing, expected text',
    ['/v1/predict'],
  ],
  ['prompt and messages', { prompt: 'a', messages }, 'expected nothing beside prompt', ['/v1/predict']],
  ['neither prompt nor messages', {}, 'prompt is missing, expected text'],
  [
    'a stop text of 10,000 characters',
    { prompt: 'a', stop: 'x'.repeat(10_000) },
    '… (10000 characters), expected a text of 1 to 256 characters, or a list of at most 16',
  ],
  [
    '17 stop texts',
    { prompt: 'a', stop: Array(17).fill('x') },
    'expected a text of 1 to 256 characters, or a list of at most 16',
  ],
  ['temperature −1', { prompt: 'a', temperature: -1 }, 'temperature is -1, expected a number from 0 to 2'],
  ['top_p 0', { prompt: 'a', top_p: 0 }, 'top_p is 0, expected a number above 0, at most 1'],
  ['n = 0', { prompt: 'a', n: 0 }, 'n is 0, expected a whole number from 1 to 10', ['/v1/predict']],
  ['n = 0', { prompt: 'a', n: 0 }, 'n is not a field', ['/generate']],
  [
    'a bias of a token that is none',
    { prompt: 'a', logit_bias: { 6144: 1 } },
    'logit_bias is "6144", expected an id below 6144',
    ['/v1/predict'],
  ],
  [
    'a prompt longer than the model reads',
    { prompt: 'sweet '.repeat(600) },
    'expected at most 255: emoji-writer reads and writes 256 together',
  ],
  ['more tokens than the model writes', { prompt: 'a', max_tokens: 256 }, 'max_tokens is 256, expected at most'],
  [
    'blocks of a model without',
    { prompt: 'a', confidence_threshold: 0.5 },
    'confidence_threshold is 0.5, expected nothing: emoji-writer writes token by token',
  ],
  ['text that is not UTF-8', half, 'the body is not UTF-8, expected a JSON object'],
  [
    'half a surrogate pair in a prompt',
    { prompt: 'a \ud83d' },
    'expected text that can be UTF-8, without half a surrogate pair',
  ],
  [
    'half a surrogate pair in a stop text',
    { prompt: 'a', stop: ['\udc00'] },
    'expected text that can be UTF-8, without half a surrogate pair',
  ],
];

describe.each(['/v1/predict', '/generate'])('POST %s', (path) => {
  it.each(badBodies.filter(([, , , routes]) => routes?.includes(path) ?? true))(
    'refuses %s',
    async (_what, body, message) => {
      const before = await storedCount();
      const response = await post(path, body instanceof Uint8Array ? body : { model: models[0], ...body });
      const text = await response.text();
      expect([response.status, text]).toEqual([400, expect.stringContaining(JSON.stringify(message).slice(1, -1))]);
      expect(await storedCount()).toBe(before);
      // Others are untouched.
      expect(await (await post('/generate', { model: models[0], prompt: 'a', max_tokens: 1 })).json()).toHaveProperty(
        'nfe',
        1,
      );
    },
  );
});
