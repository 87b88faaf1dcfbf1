import { publishModel } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { endOverdue } from '../testing/end-overdue.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { cardWith, cardWithLoras, openTestApi, type TestApi } from '../testing/test-api.ts';

const root = '/replicate/v1';
const ofModel = `${root}/models/darkroom/tiny/predictions`;

function send({ api }: TestApi, path: string, body: unknown, headers: Record<string, string> = {}) {
  const init = { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers } };
  return api.request(path, { ...init, body: JSON.stringify(body) });
}

interface Prediction {
  id: string;
  status: string;
  input: Record<string, unknown>;
  output: string[] | null;
  error: string | null;
  logs: string;
  urls: Record<string, string>;
}

async function created(test: TestApi, input: object = {}, headers: Record<string, string> = {}): Promise<Prediction> {
  const response = await send(test, ofModel, { input: { prompt: 'a fox', ...input } }, headers);
  expect(response.status).toBe(201);
  return (await response.json()) as Prediction;
}

async function predictionOf({ api }: TestApi, id: string, headers: Record<string, string> = {}): Promise<Prediction> {
  return (await (await api.request(`${root}/predictions/${id}`, { headers })).json()) as Prediction;
}

describe('inputs', () => {
  it.each([
    [{ width: 96, height: 64 }, { size: '96x64' }],
    [
      { num_outputs: 3, seed: 0 },
      { n: 3, seed: 0 },
    ],
    [{ scheduler: 'K_EULER' }, { scheduler: 'euler' }],
    [
      { output_format: 'jpg', output_quality: 70 },
      { output_format: 'jpeg', output_compression: 70 },
    ],
    [{ disable_safety_checker: true, apply_watermark: false, refine: 'no_refiner' }, { size: '128x128' }],
  ])('%j is converted to %j, and shown as equivalent inputs', async (input, parameters) => {
    const test = await openTestApi();
    const first = await created(test, input);
    const again = await created(test, first.input);
    for (const { id } of [first, again]) {
      const native = await test.api.request(`/v1/predict/${id}`);
      expect(await native.json()).toMatchObject({ parameters });
    }
  });

  it("lora_weights accepts the id of one of the model's loras, and is shown in the prediction", async () => {
    const test = await openTestApi();
    await publishModel(test.store, cardWithLoras);
    const first = await created(test, { lora_weights: 'pixels', lora_scale: 0.5 });
    const again = await created(test, first.input);
    for (const { id } of [first, again]) {
      const native = await test.api.request(`/v1/predict/${id}`);
      expect(await native.json()).toMatchObject({ parameters: { loras: [{ id: 'pixels', scale: 0.5 }] } });
    }
  });

  it.each([
    [{ lora_weights: 'x' }, 'lora_weights', 'lora_weights is "x", expected no loras: the model has none'],
    [{ lora_weights: 'x', lora_scale: 9 }, 'lora_scale', 'lora_scale is 9, expected a number from -4 to 4'],
    [{ lora_scale: 1 }, 'lora_weights', 'lora_weights is missing, expected the id of a lora, required by lora_scale'],
    [{ num_outputs: 11 }, 'num_outputs', 'num_outputs is 11, expected a whole number from 1 to 10'],
    [{ width: 96 }, 'height', 'height is missing, expected both width and height'],
    [
      { width: 96, height: 70 },
      'width and height',
      'width and height is "96x70", expected each side a multiple of 32 from 64 to 256',
    ],
    [{ output_quality: 101 }, 'output_quality', 'output_quality is 101, expected a whole number from 0 to 100'],
    [{ scheduler: 'KLMS' }, 'scheduler', 'scheduler is "KLMS", expected one of ddim, euler'],
    [{ refine: 'base_image_refiner' }, 'refine', expect.stringContaining('expected "no_refiner"')],
    [{ num_images: 2 }, 'num_images', expect.stringContaining('num_images is not a field')],
  ])(
    "%j is rejected with Replicate's field names, and nothing is stored",
    async (input, field, description: unknown) => {
      const test = await openTestApi();
      const before = await allKeys(test.store);
      const response = await send(test, ofModel, { input: { prompt: 'a fox', ...input } });
      expect([response.status, await response.json()]).toMatchObject([
        422,
        { title: 'Input validation failed', invalid_fields: [{ field, description }] },
      ]);
      expect(await allKeys(test.store)).toEqual(before);
    },
  );

  it.each([
    [{}, 'input'],
    [{ input: 'a fox' }, 'input'],
    [{ input: {} }, 'prompt'],
    [{ input: { prompt: 'x' }, webhook: 'http://10.0.0.1' }, 'webhook'],
    [
      { input: { prompt: 'x' }, webhook: 'https://example.org', webhook_events_filter: ['ended'] },
      'webhook_events_filter.0',
    ],
    [{ input: { prompt: 'x' }, webhook_completed: 'https://example.org' }, 'webhook_completed'],
  ])('the body %j is rejected for its %s', async (body, field) => {
    const test = await openTestApi();
    const response = await send(test, ofModel, body);
    expect([response.status, await response.json()]).toMatchObject([422, { invalid_fields: [{ field }] }]);
  });

  it.each(['tiny', 'darkroom/tiny', 'darkroom/tiny:tiny', 'stability-ai/sd:tiny'])(
    'accepts the version %s',
    async (version) => {
      const test = await openTestApi();
      const response = await send(test, `${root}/predictions`, { version, input: { prompt: 'x' } });
      expect(await response.json()).toMatchObject({ status: 'starting', model: 'darkroom/tiny', version: 'tiny' });
    },
  );

  it('does not wait if the Prefer header is invalid', async () => {
    const response = await send(await openTestApi(), ofModel, { input: { prompt: 'x' } }, { Prefer: 'wait=long' });
    expect([response.status, await response.json()]).toMatchObject([201, { status: 'starting' }]);
  });
});

describe('a prediction', () => {
  it('changes from starting to processing to succeeded with its output', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const { id } = await created(test, { seed: 7 });
    expect(await predictionOf(test, id)).toMatchObject({ status: 'starting', logs: '', output: null });
    const running = await runNext(test.store);
    await running.progress(3);
    expect(await predictionOf(test, id)).toMatchObject({
      status: 'processing',
      logs: 'Using seed: 7\n 75%|███████████████     | 3/4\n',
    });
    await running.output(0, Buffer.from('an image'));
    await running.finish();
    const { output } = await predictionOf(test, id);
    expect(await (await fetch(output![0]!)).text()).toBe('an image');
    const https = { 'X-Forwarded-Proto': 'https' };
    expect((await predictionOf(test, id, https)).output).toEqual([`https://localhost/v1/predict/${id}/images/0`]);
  });

  it('is starting if the wait was too short, because the client takes processing for the end', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const answer = created(test, {}, { Prefer: 'wait=5' });
    await expect.poll(() => test.timers()).toBe(2);
    await expect
      .poll(() =>
        runNext(test.store).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    test.tick(5000);
    expect(await answer).toMatchObject({ status: 'starting' });
    const { id } = await answer;
    expect(await predictionOf(test, id)).toMatchObject({ status: 'processing' });
  });

  it('is failed if it expired, because the client keeps polling at aborted', async () => {
    const test = await openTestApi();
    const { id } = await created(test);
    await endOverdue(test.store, id);
    expect(await predictionOf(test, id)).toMatchObject({
      status: 'failed',
      error: 'The prediction did not end in time.',
    });
  });

  it('has no prompt after its end if the server does not store prompts', async () => {
    const test = await openTestApi({ config: { storePrompts: false } });
    const { id } = await created(test, { negative_prompt: 'a secret' });
    expect((await predictionOf(test, id)).input).toMatchObject({ prompt: 'a fox', negative_prompt: 'a secret' });
    await send(test, `${root}/predictions/${id}/cancel`, {});
    const { status, input } = await predictionOf(test, id);
    expect([status, Object.keys(input)]).toEqual([
      'canceled',
      expect.not.arrayContaining(['prompt', 'negative_prompt']),
    ]);
  });
});

describe('the stream of a prediction', () => {
  it('contains each image once, and resumes after Last-Event-ID', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const { id, urls } = await created(test, { num_outputs: 2 });
    const running = await runNext(test.store);
    await running.progress(1);
    await running.output(0, Buffer.from('the first image'), 6);
    await running.output(1, Buffer.from('the second image'), 6);
    await running.finish();
    const path = new URL(urls['stream']!).pathname;
    expect(path).toBe(`${root}/predictions/${id}/stream`);
    const events = await readFrames(await test.api.request(path)).rest();
    expect(events.map(({ event }) => event)).toEqual(['logs', 'output', 'output', 'done']);
    expect(await (await fetch(events[2]!.data!)).text()).toBe('the second image');
    const headers = { 'Last-Event-ID': events[1]!.id! };
    expect(await readFrames(await test.api.request(path, { headers })).rest()).toEqual(events.slice(2));
  });

  it.each([
    ['canceled', [['done', '{"reason":"canceled"}']]],
    [
      'failed',
      [
        ['error', 'It was too large.'],
        ['done', '{"reason":"error"}'],
      ],
    ],
  ] as const)('ends with a done event if the prediction was %s', async (state, expected) => {
    const test = await openTestApi();
    await startWorker(test.store);
    const { id } = await created(test);
    const error = { code: 'out_of_memory', message: 'It was too large.' };
    await (await runNext(test.store)).finish(state === 'failed' ? { state, error } : { state });
    const events = await readFrames(await test.api.request(`${root}/predictions/${id}/stream`)).rest();
    expect(events.map(({ event, data }) => [event, data])).toEqual(expected);
  });
});

it('versions have a cog_version, which clients require as a string', async () => {
  const { api } = await openTestApi();
  const version = (await (await api.request(`${root}/models/darkroom/tiny/versions/tiny`)).json()) as object;
  expect(version).toMatchObject({ id: 'tiny', cog_version: expect.stringMatching(/^\d+\.\d+\.\d+$/) });
});

it('aborts the stream on shutdown, because the client takes any other end for a success', async () => {
  const test = await openTestApi();
  const { id } = await created(test);
  const reading = readFrames(await test.api.request(`${root}/predictions/${id}/stream`)).rest();
  test.draining.abort();
  await expect(reading).rejects.toThrow('This server is stopping');
});

describe('with keys', () => {
  const limits = { weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false };
  const apiKeys = new Map(['alice', 'bob'].map((name) => [hashKey(name), { name, ...limits }]));
  const alice = { Authorization: 'Bearer alice', 'X-Forwarded-Proto': 'https' };

  it("rejects requests without a key, in Replicate's error format", async () => {
    const response = await (await openTestApi({ apiKeys })).api.request(`${root}/models`);
    expect([response.status, await response.json()]).toMatchObject([401, { title: 'missing_api_key', status: 401 }]);
  });

  it('shows predictions to their owner only, and images without a key by signed links', async () => {
    const test = await openTestApi({ apiKeys });
    await startWorker(test.store);
    const { id, urls } = await created(test, {}, alice);
    const running = await runNext(test.store);
    await running.output(0, Buffer.from('an image'));
    await running.finish();
    // Absent, because the client would read the stream without the key.
    expect(Object.keys(urls)).toEqual(['get', 'cancel']);
    const { output } = await predictionOf(test, id, alice);
    expect(output![0]).toMatch(/^https:\/\/localhost\/v1\/predict\/.*&signature=/);
    expect(await (await test.api.request(output![0]!)).text()).toBe('an image');
    // The client does not create files from http URLs.
    const { output: overHttp } = await predictionOf(test, id, { Authorization: 'Bearer alice' });
    expect(await (await fetch(overHttp![0]!)).text()).toBe('an image');
    expect(overHttp![0]).toMatch(/^data:image\/png;base64,/);
    const bob = { Authorization: 'Bearer bob' };
    for (const rest of ['', '/stream'])
      expect((await test.api.request(`${root}/predictions/${id}${rest}`, { headers: bob })).status).toBe(404);
    expect((await send(test, `${root}/predictions/${id}/cancel`, {}, bob)).status).toBe(404);
  });
});

async function openChecked(): Promise<TestApi> {
  const test = await openTestApi();
  await publishModel(test.store, cardWith({ safetyChecker: 'refuse' }));
  await startWorker(test.store);
  return test;
}

describe('a model with a safety checker', () => {
  it('rejects disable_safety_checker: true', async () => {
    const test = await openChecked();
    await created(test, { disable_safety_checker: false });
    const response = await send(test, ofModel, { input: { prompt: 'a fox', disable_safety_checker: true } });
    expect([response.status, await response.json()]).toMatchObject([
      422,
      { invalid_fields: [{ field: 'disable_safety_checker', description: expect.stringContaining('always used') }] },
    ]);
  });

  it('lists the flagged images in the logs, before the progress', async () => {
    const test = await openChecked();
    const { id } = await created(test, { num_outputs: 2 });
    const run = await runNext(test.store);
    await run.progress(4);
    await run.output(0, Buffer.from('png'), 300, { nsfw: false });
    await run.output(1, Buffer.from('png'), 300, { nsfw: true });
    await run.finish();
    const { logs } = await predictionOf(test, id);
    expect(logs).toMatch(/NSFW content detected in image 1\n.*\d\/\d\n$/);
    expect(logs).not.toContain('image 0');
  });
});
