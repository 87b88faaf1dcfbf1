import type { Metadata } from '@darkroom/core';
import { publishModel } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { hashKey } from '../auth/api-keys.ts';
import { runNext, startWorker } from '../testing/fake-worker.ts';
import { readFrames } from '../testing/sse-reader.ts';
import { cardWith, cardWithLoras, openTestApi, type TestApi } from '../testing/test-api.ts';

const json = { 'Content-Type': 'application/json' };

interface Sent {
  path?: string;
  method?: string;
  headers?: Record<string, string>;
}

function send(
  { api }: TestApi,
  body: unknown,
  { path = '/fal/queue/darkroom/tiny', method = 'POST', headers = {} }: Sent = {},
) {
  return api.request(path, {
    method,
    headers: { ...json, ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
}

async function submitted(test: TestApi, input: object, sent: Sent = {}): Promise<string> {
  const response = await send(test, { prompt: 'a fox', ...input }, sent);
  expect(response.status).toBe(200);
  return ((await response.json()) as { request_id: string }).request_id;
}

/** Returns the request's view at `/v1/predict/{id}`. */
async function native(
  { api }: TestApi,
  id: string,
  headers: Record<string, string> = {},
): Promise<Record<string, unknown>> {
  return (await (await api.request(`/v1/predict/${id}`, { headers })).json()) as Record<string, unknown>;
}

interface Problem {
  status: number;
  messages: [string, string][];
}

async function problemOf(response: Response): Promise<Problem> {
  const { detail } = (await response.json()) as { detail: { loc: string[]; msg: string }[] };
  return { status: response.status, messages: detail.map(({ loc, msg }) => [loc.join('.'), msg]) };
}

describe('inputs', () => {
  it.each([
    [{ image_size: { width: 96, height: 64 } }, { size: '96x64' }],
    [
      { num_images: 3, seed: 0, guidance_scale: 1.5 },
      { n: 3, seed: 0, guidance_scale: 1.5 },
    ],
    [{ scheduler: 'Euler' }, { scheduler: 'euler' }],
    [{ scheduler: 'ddim' }, { scheduler: 'ddim' }],
    [{ format: 'jpeg' }, { output_format: 'jpeg' }],
    [{ format: 'webp', output_format: 'webp' }, { output_format: 'webp' }],
    [
      { negative_prompt: 'dogs', num_inference_steps: 7 },
      { negative_prompt: 'dogs', num_inference_steps: 7 },
    ],
    [
      { sync_mode: false, enable_safety_checker: false, loras: [], acceleration: 'none' },
      { size: '128x128', n: 1 },
    ],
  ])('%j is converted to %j', async (input, parameters) => {
    const test = await openTestApi();
    expect(await native(test, await submitted(test, input))).toMatchObject({ parameters });
  });

  it('accept prompt_weighting if the model reads weights', async () => {
    const test = await openTestApi();
    await publishModel(test.store, cardWith({ promptSyntaxes: ['plain', 'webui'] }));
    const weighted = await native(test, await submitted(test, { prompt: 'a (red:1.2) fox', prompt_weighting: true }));
    expect(weighted).toMatchObject({ parameters: { prompt: 'a (red:1.2) fox', prompt_syntax: 'webui' } });
    const refused = await send(await openTestApi(), { prompt: 'a fox', prompt_weighting: true });
    expect((await problemOf(refused)).messages).toMatchObject([['body.prompt_weighting', expect.any(String)]]);
  });

  it("accept the ids of the model's loras", async () => {
    const test = await openTestApi();
    await publishModel(test.store, cardWithLoras);
    const loras = [{ path: 'pixels', scale: 0.5 }, { path: 'sunset' }];
    expect(await native(test, await submitted(test, { loras }))).toMatchObject({
      parameters: {
        loras: [
          { id: 'pixels', scale: 0.5 },
          { id: 'sunset', scale: 1 },
        ],
      },
    });
    expect(
      await problemOf(await send(test, { prompt: 'a fox', loras: [{ path: 'https://x/y.safetensors' }] })),
    ).toEqual({
      status: 422,
      messages: [
        ['body.loras.0.path', 'loras.0.path is "https://x/y.safetensors", expected one of pixels, large, sunset'],
      ],
    });
  });

  it.each([
    [{ num_images: 11 }, [['body.num_images', 'num_images is 11, expected a whole number from 1 to 10']]],
    [
      { num_inference_steps: 900 },
      [['body.num_inference_steps', 'num_inference_steps is 900, expected a whole number from 1 to 200']],
    ],
    [
      { image_size: 'square' },
      [['body.image_size', 'image_size is "512x512", expected each side a multiple of 32 from 64 to 256']],
    ],
    [
      { image_size: 'huge' },
      [
        [
          'body.image_size',
          'image_size is "huge", expected one of square_hd, square, portrait_4_3, portrait_16_9, landscape_4_3, landscape_16_9 or {"width": pixels, "height": pixels}',
        ],
      ],
    ],
    [
      { enable_safety_checker: true },
      [
        [
          'body.enable_safety_checker',
          'enable_safety_checker is true, expected false: this model has no safety checker',
        ],
      ],
    ],
    [{ loras: [{ path: 'x' }] }, [['body.loras.0.path', 'loras.0.path is "x", expected no loras: the model has none']]],
    [
      { format: 'png', output_format: 'jpeg' },
      [['body.format', 'format is "png", expected nothing, or the same as output_format: jpeg']],
    ],
    [{ scheduler: 'constructor' }, [['body.scheduler', 'scheduler is "constructor", expected one of ddim, euler']]],
    [{ scheduler: 'Heun' }, [['body.scheduler', 'scheduler is "Heun", expected one of ddim, euler']]],
    [{ steps: 3 }, [['body.steps', 'steps is not a field, did you mean num_inference_steps?']]],
  ])("%j is rejected with fal's field names, and nothing is stored", async (input, messages) => {
    const test = await openTestApi();
    const before = await allKeys(test.store);
    expect(await problemOf(await send(test, { prompt: 'a fox', ...input }))).toEqual({ status: 422, messages });
    expect(await allKeys(test.store)).toEqual(before);
  });

  it('accept enable_safety_checker only if it matches the model', async () => {
    const test = await openTestApi();
    await publishModel(test.store, cardWith({ safetyChecker: 'black' }));
    await submitted(test, { enable_safety_checker: true });
    const before = await allKeys(test.store);
    expect(await problemOf(await send(test, { prompt: 'a fox', enable_safety_checker: false }))).toEqual({
      status: 422,
      messages: [
        [
          'body.enable_safety_checker',
          'enable_safety_checker is false, expected true: the safety checker of this model is always used',
        ],
      ],
    });
    expect(await allKeys(test.store)).toEqual(before);
  });

  it('return has_nsfw_concepts only if a safety checker checked the images', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const resultOf = async (facts: readonly Metadata[]) => {
      const id = await submitted(test, { num_images: facts.length });
      const running = await runNext(test.store);
      for (const [index, more] of facts.entries()) await running.output(index, Buffer.from('png'), 300, more);
      await running.finish();
      return (await test.api.request(`/fal/queue/darkroom/tiny/requests/${id}`)).json();
    };
    expect(await resultOf([{ nsfw: true }, { nsfw: false }])).toMatchObject({ has_nsfw_concepts: [true, false] });
    expect(await resultOf([{}, {}])).not.toHaveProperty('has_nsfw_concepts');
  });

  it.each([
    [{ 'x-fal-request-timeout': '30' }, { priority: 5, wait: 30_000 }],
    [{ 'x-fal-queue-priority': 'low' }, { priority: 10, wait: 600_000 }],
  ])('the headers %j are converted to %j', async (headers: Record<string, string>, { priority, wait }) => {
    const test = await openTestApi();
    const id = await submitted(test, {}, { headers });
    const stored = await test.store.redis.get(test.store.keysOf('tiny').input(id));
    expect(JSON.parse(stored!)).toMatchObject({ priority, startTimeoutMs: wait });
  });

  it.each([
    [
      { headers: { 'x-fal-request-timeout': 'soon' } },
      /^x-fal-request-timeout is "soon", expected a number of seconds/,
    ],
    [{ headers: { 'x-fal-queue-priority': 'high' } }, /^x-fal-queue-priority is "high", expected normal or low$/],
    [{ path: '/fal/queue/darkroom/tiny?fal_webhook=http://10.0.0.1' }, /^fal_webhook is .*, expected a public host/],
    [{ path: '/fal/queue/darkroom/tiny?fal_webhook=file:///x' }, /^fal_webhook is .*, expected an http or https URL/],
  ])('rejects %j', async (sent: Sent, message) => {
    const test = await openTestApi();
    const problem = await problemOf(await send(test, { prompt: 'a fox' }, sent));
    expect(problem).toEqual({ status: 422, messages: [[expect.any(String), expect.stringMatching(message)]] });
  });
});

describe('the proxy', () => {
  it('routes by the URL in x-fal-target-url, including its query', async () => {
    const test = await openTestApi();
    const id = await submitted(
      test,
      {},
      { path: '/fal/proxy', headers: { 'x-fal-target-url': 'https://queue.fal.run/any/tiny' } },
    );
    const target = { 'x-fal-target-url': `https://queue.fal.run/any/tiny/requests/${id}/status?logs=1` };
    await startWorker(test.store);
    await (await runNext(test.store)).progress(1);
    const response = await test.api.request('/fal/proxy', { headers: target });
    expect(await response.json()).toMatchObject({
      status: 'IN_PROGRESS',
      logs: [{ message: ' 25%|█████               | 1/4' }],
    });
    const webhook = { 'x-fal-target-url': 'https://queue.fal.run/any/tiny?fal_webhook=http://10.0.0.1' };
    expect((await send(test, { prompt: 'x' }, { path: '/fal/proxy', headers: webhook })).status).toBe(422);
  });

  it.each([
    [undefined],
    ['nonsense'],
    ['https://rest.fal.ai/storage/upload/initiate'],
    ['https://example.org/fal.run'],
    ['https://constructor/x'],
  ])('rejects other targets: %s', async (target) => {
    const test = await openTestApi();
    const headers: Record<string, string> = target === undefined ? {} : { 'x-fal-target-url': target };
    const problem = await problemOf(await send(test, { prompt: 'x' }, { path: '/fal/proxy', headers }));
    expect(problem.messages[0]![1]).toContain('expected a URL of queue.fal.run or fal.run');
  });
});

it("allows the client's headers from configured CORS origins", async () => {
  const test = await openTestApi({ config: { corsOrigins: ['https://shop.example'] } });
  const response = await test.api.request('/fal/proxy', {
    method: 'OPTIONS',
    headers: {
      Origin: 'https://shop.example',
      'Access-Control-Request-Method': 'PUT',
      'Access-Control-Request-Headers': 'authorization,content-type,x-fal-target-url',
    },
  });
  expect(response.headers.get('access-control-allow-headers')).toContain('x-fal-target-url');
  expect(response.headers.get('access-control-allow-methods')).toContain('PUT');
  expect(response.headers.get('access-control-expose-headers')).toContain('X-Fal-Request-Id');
});

describe('with keys', () => {
  const apiKeys = new Map(
    ['alice', 'bob'].map((name) => [
      hashKey(name),
      { name, weight: 1, requestsPerMinute: undefined, openRequests: undefined, isAdmin: false },
    ]),
  );
  const alice = { Authorization: 'Key alice' };

  it("rejects requests without a key, in fal's error format", async () => {
    const test = await openTestApi({ apiKeys });
    const response = await send(
      test,
      { prompt: 'x' },
      { path: '/fal/proxy', headers: { 'x-fal-target-url': 'https://fal.run/a/tiny' } },
    );
    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ detail: expect.any(String), error_type: 'missing_api_key' });
  });

  it('shows requests to their owner only, and images without a key by signed links', async () => {
    const test = await openTestApi({ apiKeys });
    await startWorker(test.store);
    const id = await submitted(test, {}, { headers: alice });
    const running = await runNext(test.store);
    await running.output(0, Buffer.from('an image'));
    await running.finish();
    const path = `/fal/queue/darkroom/tiny/requests/${id}`;
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '/status'],
      ['GET', '/status/stream'],
      ['PUT', '/cancel'],
    ] as const) {
      const response = await test.api.request(`${path}${rest}`, { method, headers: { Authorization: 'Key bob' } });
      expect([rest, response.status]).toEqual([rest, 404]);
    }
    const result = (await (await test.api.request(path, { headers: alice })).json()) as { images: { url: string }[] };
    const { url } = result.images[0]!;
    expect(url).toMatch(/^http:\/\/localhost\/v1\/predict\/.*&signature=/);
    expect(await (await test.api.request(url)).text()).toBe('an image');
  });
});

it('returns 404 if the path names another model', async () => {
  const test = await openTestApi();
  const id = await submitted(test, {});
  expect((await test.api.request(`/fal/queue/darkroom/other/requests/${id}/status`)).status).toBe(404);
});

it('ignores invalid X-Forwarded-Host and X-Forwarded-Proto headers in URLs', async () => {
  const test = await openTestApi();
  const headers = { 'X-Forwarded-Proto': 'javascript', 'X-Forwarded-Host': 'evil.example/path?' };
  const response = await send(test, { prompt: 'x' }, { headers });
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(((await response.json()) as { status_url: string }).status_url).toMatch(/^http:\/\/localhost\/fal\/queue\//);
});

it.each([
  ['POST', '/fal/run/darkroom/tiny/stream'],
  ['GET', '/status/stream'],
])('aborts %s %s on shutdown, because the client takes any other end for a success', async (method, path) => {
  const test = await openTestApi();
  const id = await submitted(test, {});
  const response =
    method === 'POST'
      ? await send(test, { prompt: 'x' }, { path })
      : await test.api.request(`/fal/queue/darkroom/tiny/requests/${id}${path}`);
  const reading = readFrames(response).rest();
  test.draining.abort();
  await expect(reading).rejects.toThrow('This server is stopping');
});

it('answers run with 408 on shutdown, which the client does not retry', async () => {
  const test = await openTestApi();
  test.draining.abort();
  const response = await send(test, { prompt: 'x' }, { path: '/fal/run/darkroom/tiny' });
  const id = response.headers.get('x-fal-request-id')!;
  expect([response.status, (await native(test, id))['status']]).toEqual([408, 'queued']);
});
