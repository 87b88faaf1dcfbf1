import { readRequest } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import type { RunningRequest } from '../testing/fake-worker.ts';
import { listen } from '../testing/listen.ts';
import { type Frame, readFrames } from '../testing/sse-reader.ts';
import type { TestApi } from '../testing/test-api.ts';
import { openImageAndTextApi, runNextText, serveTextModel, textFacts, textModel } from '../testing/text-model.ts';

const prompt = 'once upon a time';

async function post({ api }: TestApi, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return api.request('/generate', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
}

/** Returns name and data of each frame, without the request id; `[DONE]` unchanged. */
function shown(frames: readonly Frame[]): unknown[] {
  return frames.map(({ event, data = '' }) => {
    if (data === '[DONE]') return data;
    return [event, event === 'error' ? JSON.parse(data) : withoutId(data)];
  });
}

function withoutId(data: string): unknown {
  const { request_id: _id, ...others } = JSON.parse(data) as { request_id?: string };
  return others;
}

/** Writes `a red fox`: three tokens and four model calls. */
async function writeFox(run: RunningRequest): Promise<void> {
  await run.entry({ type: 'delta', offset: 0, text: 'a', done: 1, facts: { ids: '7,' } });
  await run.entry({ type: 'delta', offset: 1, text: ' red fox', done: 3, facts: { ids: '8,9,' } });
  await finishFox(run);
}

async function finishFox(run: RunningRequest): Promise<void> {
  await run.output(
    0,
    Buffer.from('a red fox'),
    100,
    textFacts({ finish_reason: 'stop', completion_tokens: 4, calls: 4 }),
  );
  await run.finish();
}

const foxAnswer = { full_text: 'a red fox', token_ids: [7, 8, 9], nfe: 4, finish_reason: 'stop' };
const foxEnd = [
  ['append', { token_offset: 3, text: '', token_ids: [], nfe: 4, finished: true }],
  ['final', foxAnswer],
  '[DONE]',
];

describe('a stream', () => {
  it('contains the added text with its token offsets, and the full text at the end', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const response = await post(test, { prompt, stream: true });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
    await writeFox(await runNextText(test));
    expect(shown(await readFrames(response).rest())).toEqual([
      ['append', { token_offset: 0, text: 'a', token_ids: [7], nfe: 1, finished: false }],
      ['append', { token_offset: 1, text: ' red fox', token_ids: [8, 9], nfe: 3, finished: false }],
      ...foxEnd,
    ]);
    const id = response.headers.get('x-request-id')!;
    expect(await readRequest(test.store, id)).toMatchObject({ request: { state: 'succeeded', model: textModel } });
  });

  it('contains the request id in each event, and positions after which /v1/predict/{id}/events resumes', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const response = await post(test, { prompt, stream: true });
    await writeFox(await runNextText(test));
    const frames = (await readFrames(response).rest()).slice(0, -1);
    const id = response.headers.get('x-request-id')!;
    expect(frames.map(({ data }) => (JSON.parse(data!) as { request_id: string }).request_id)).toEqual([
      id,
      id,
      id,
      id,
    ]);
    const headers = { 'Last-Event-ID': frames[0]!.id! };
    const rest = await readFrames(await test.api.request(`/v1/predict/${id}/events`, { headers })).rest();
    expect(rest.filter(({ event }) => event === 'delta').map(({ id: at, data }) => [at, JSON.parse(data!)])).toEqual([
      [frames[1]!.id, expect.objectContaining({ text: ' red fox' })],
    ]);
  });

  it('contains blocks when they are settled, or each of their states with denoise', async () => {
    const test = await openImageAndTextApi('block_diffusion');
    const [append, denoise] = await Promise.all(
      ['block_append', 'denoise'].map((stream_mode) => post(test, { prompt, stream: true, stream_mode })),
    );
    for (let count = 0; count < 2; count++) {
      const run = await runNextText(test);
      const writeBlock = (offset: number, text: string, done: number, facts: Record<string, number | string>) =>
        run.entry({ type: 'snapshot', offset, text, done, facts });
      await writeBlock(0, 'a░', 1, { ids: '7,3,', calls: 1 });
      await writeBlock(0, 'a red', 2, { ids: '7,8,', calls: 2, settled: 1 });
      await writeBlock(5, '░', 2, { ids: '3,', calls: 4 });
      await writeBlock(5, ' fox', 3, { ids: '9,', calls: 5, settled: 1 });
      await finishFox(run);
    }
    expect(shown(await readFrames(append!).rest())).toEqual([
      ['append', { token_offset: 0, text: 'a red', token_ids: [7, 8], nfe: 2, finished: false }],
      ['append', { token_offset: 2, text: ' fox', token_ids: [9], nfe: 5, finished: false }],
      ...foxEnd,
    ]);
    expect(shown(await readFrames(denoise!).rest())).toEqual([
      ['buffer_snapshot', { absolute_start: 0, absolute_end: 2, text: 'a░', token_ids: [7, 3], nfe: 1 }],
      ['buffer_snapshot', { absolute_start: 0, absolute_end: 2, text: 'a red', token_ids: [7, 8], nfe: 2 }],
      ['buffer_snapshot', { absolute_start: 2, absolute_end: 3, text: '░', token_ids: [3], nfe: 4 }],
      ['buffer_snapshot', { absolute_start: 2, absolute_end: 3, text: ' fox', token_ids: [9], nfe: 5 }],
      ['final', foxAnswer],
      '[DONE]',
    ]);
  });

  it('contains each token once when another worker resumes from an earlier token', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const response = await post(test, { prompt, stream: true });
    const run = await runNextText(test);
    await run.entry({ type: 'delta', offset: 0, text: 'a red', done: 2, facts: { ids: '7,8,' } });
    await run.entry({ type: 'delta', offset: 1, text: ' red fox', done: 3, facts: { ids: '8,9,' } });
    await finishFox(run);
    expect(shown(await readFrames(response).rest())).toEqual([
      ['append', { token_offset: 0, text: 'a red', token_ids: [7, 8], nfe: 2, finished: false }],
      ['append', { token_offset: 2, text: ' fox', token_ids: [9], nfe: 3, finished: false }],
      ...foxEnd,
    ]);
  });

  it('waits until the timeout_s of its request instead of the default timeout', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const long = readFrames(await post(test, { prompt, stream: true, timeout_s: 3000 })).rest();
    await expect.poll(() => test.timers()).toBe(3);
    // The server's default timeout, and a margin.
    test.tick(615_000);
    await writeFox(await runNextText(test));
    expect(shown(await long).slice(-3)).toEqual(foxEnd);
    const short = readFrames(await post(test, { prompt, stream: true, timeout_s: 5 })).rest();
    await expect.poll(() => test.timers()).toBe(3);
    test.tick(20_000);
    expect(shown(await short)).toMatchObject([['error', { error: { code: 'end_unknown' } }]]);
  });

  it('ends with an error event if the request fails', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const response = await post(test, { prompt, stream: true });
    const run = await runNextText(test);
    await run.entry({ type: 'delta', offset: 0, text: 'a', done: 1, facts: { ids: '7,' } });
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'it broke' } });
    const frames = shown(await readFrames(response).rest());
    expect(frames).toHaveLength(2);
    expect(frames[1]).toMatchObject(['error', { error: { code: 'engine_failed' }, request_id: expect.any(String) }]);
  });
});

describe('an answer without streaming', () => {
  it('equals the final event of a stream', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const answering = post(test, { prompt: [5, 6, 7], max_tokens: 4, stop: ['.'] });
    await expect.poll(async () => (await stored(test)).length).toBe(1);
    await writeFox(await runNextText(test));
    const answer = await answering;
    expect([answer.status, withoutId(await answer.text())]).toEqual([200, foxAnswer]);
  });

  it('is a 422 that no SDK retries if the request fails', async () => {
    const test = await openImageAndTextApi('autoregressive');
    const answering = post(test, { prompt });
    await expect.poll(async () => (await stored(test)).length).toBe(1);
    const run = await runNextText(test);
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'it broke' } });
    const answer = await answering;
    expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([422, 'false']);
  });
});

it('chooses a block-diffusion model for denoise if the body names no model', async () => {
  const test = await openImageAndTextApi('autoregressive');
  await serveTextModel(test.store, { id: 'zz-diffusion', mode: 'block_diffusion' });
  for (const [body, model] of [
    [{ prompt, stream: true, stream_mode: 'denoise' }, 'zz-diffusion'],
    [{ prompt, stream: true }, textModel],
  ] as const) {
    const response = await post(test, body);
    expect([response.status, response.headers.get('x-request-id')]).toEqual([
      200,
      expect.stringMatching(new RegExp(`^${model}-`)),
    ]);
    await response.body!.cancel();
  }
});

async function stored({ store }: TestApi): Promise<string[]> {
  const prefix = store.keysOf(textModel).request('');
  return (await allKeys(store)).filter((key) => key.startsWith(prefix));
}

it.each([
  [
    { prompt, stream: true, stream_mode: 'denoise' },
    'stream_mode is "denoise", expected "block_append": writer is autoregressive and has no blocks to denoise',
  ],
  [{ prompt, stream_mode: 'all' }, 'stream_mode is "all", expected "block_append" or "denoise"'],
  [{ prompt, stream: 'yes' }, 'stream is "yes", expected true or false'],
  [{ prompt, n: 2 }, 'n is not a field, expected one of model, prompt, '],
  [{ max_tokens: 4 }, 'prompt is missing, expected text of 1 to 1000000 characters, or a list of ids of tokens'],
  [{ prompt, max_new_tokens: 4 }, 'max_new_tokens is not a field, did you mean max_tokens?'],
  [{ prompt, max_nfe: 4 }, 'max_nfe is 4, expected nothing: writer writes token by token, and has no blocks'],
  [{ prompt, tokens_per_step: 2 }, 'tokens_per_step is 2, expected nothing: writer writes token by token'],
  [{ prompt, model: 'tiny' }, 'model tiny has the kind image, which this route does not serve'],
])('rejects %j without storing a request', async (body, message) => {
  const test = await openImageAndTextApi('autoregressive');
  const response = await post(test, body);
  expect(response.status).toBe('model' in body ? 404 : 400);
  expect(await response.json()).toMatchObject({ message: expect.stringContaining(message) });
  expect(await stored(test)).toEqual([]);
});

it('answers 503 when the queue is full, before a stream begins', async () => {
  const test = await openImageAndTextApi('autoregressive', { config: { queueMaxLength: 1 } });
  expect((await post(test, { prompt, stream: true })).status).toBe(200);
  for (const stream of [true, false]) {
    const response = await post(test, { prompt, stream });
    expect([response.status, response.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await response.json()).toMatchObject({ error: { code: 'overloaded' } });
  }
});

describe.each([true, false])('a client that disconnects (stream: %s)', (stream) => {
  async function leave(headers: Record<string, string>): Promise<{ test: TestApi; id: string }> {
    const test = await openImageAndTextApi('autoregressive');
    const { url } = await listen(test);
    const abort = new AbortController();
    const fetching = fetch(`${url}/generate`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ prompt, stream }),
      signal: abort.signal,
    }).catch(() => undefined);
    await expect.poll(async () => (await stored(test)).length).toBe(1);
    const [key] = await stored(test);
    // Wait until the API has subscribed to the events.
    await expect.poll(() => test.hub.size).toBe(1);
    abort.abort();
    await fetching;
    await expect.poll(() => test.hub.size).toBe(0);
    return { test, id: key!.slice(test.store.keysOf(textModel).request('').length) };
  }

  it('cancels its request', async () => {
    const { test, id } = await leave({});
    await expect.poll(() => readRequest(test.store, id)).toMatchObject({ request: { state: 'canceled' } });
  });

  it('can fetch the result later with an Idempotency-Key', async () => {
    const { test, id } = await leave({ 'Idempotency-Key': 'mine' });
    const again = post(test, { prompt, stream }, { 'Idempotency-Key': 'mine' });
    await writeFox(await runNextText(test));
    const response = await again;
    expect(response.headers.get('x-request-id')).toBe(id);
    const text = await response.text();
    expect(text).toContain(JSON.stringify({ ...foxAnswer, request_id: id }));
    expect(await readRequest(test.store, id)).toMatchObject({ request: { state: 'succeeded' } });
  });
});
