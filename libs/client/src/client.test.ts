import { describe, expect, it, vi } from 'vitest';
import { ClientError } from './client-error.ts';
import { createClient } from './client.ts';
import { openClient, openClientWithFakeTimers, advanceUntilRequested } from './testing/open-client.ts';
import {
  type Answer,
  bytes,
  errorAnswer,
  imageInfo,
  json,
  page,
  reset,
  silence,
  stalled,
} from './testing/scripted-server.ts';

const accepted = { request_id: 'tiny-1', status: 'queued', queue_position: 3, is_possible: true, urls: {} };
const image = Uint8Array.from([9, 8, 7]);
const view = (status: string, images: unknown[] = []): Record<string, unknown> => ({
  request_id: 'tiny-1',
  status,
  images,
});
const open = (seconds: number) => json(202, view('running'), { 'retry-after': String(seconds) });
const late: Answer = (response, request) => {
  vi.advanceTimersByTime(25_199);
  return open(2)(response, request);
};
const succeeded = json(200, view('succeeded', [imageInfo(0, image), imageInfo(1, image)]));
const pathsOf = (requests: readonly { method: string; path: string }[]): string[] =>
  requests.map(({ method, path }) => `${method} ${path.replace('/v1/predict', '')}`);

describe('submit', () => {
  it('sends the request unchanged, and returns its id and queue position', async () => {
    const test = await openClient([json(202, accepted)]);
    const request = { prompt: 'ein grüner Apfel', seed: 7, preview: { every: 2 } };
    expect(await test.client.submit(request)).toEqual(accepted);
    expect(test.requests).toMatchObject([{ method: 'POST', path: '/v1/predict' }]);
    expect(JSON.parse(test.requests[0]!.body)).toEqual(request);
  });

  it('sends files as a form, with the other fields as in JSON', async () => {
    const test = await openClient([reset, json(202, accepted)]);
    const file = new Blob([image], { type: 'image/png' });
    expect(await test.client.submit({ prompt: '7', n: 2, preview: { every: 2 }, image: file, strength: 0.5 })).toEqual(
      accepted,
    );
    const [first, second] = test.requests.map(({ body }) =>
      body.split('\r\n').filter((line) => !line.startsWith('--')),
    );
    expect(first).toEqual(expect.arrayContaining(['7', '2', '{"every":2}', '0.5', 'Content-Type: image/png']));
    expect(second).toEqual(first);
  });

  it('is retried with the same idempotency key if its response is lost', async () => {
    const test = await openClientWithFakeTimers(
      [reset, errorAnswer(502, 'bad_gateway'), silence(200), json(202, accepted)],
      {
        timeoutMs: 200,
      },
    );
    expect(await test.client.submit({ prompt: 'x' })).toEqual(accepted);
    expect(test.requests).toHaveLength(4);
    expect(new Set(test.requests.map(({ key }) => key)).size).toBe(1);
    expect(test.requests[0]!.key).toMatch(/^[0-9a-f]{32}$/);
    const again = await openClient([json(202, accepted), json(202, accepted)]);
    await again.client.submit({ prompt: 'x' });
    await again.client.submit({ prompt: 'x' }, { idempotencyKey: 'fox-1' });
    expect(again.requests[0]!.key).not.toBe(test.requests[0]!.key);
    expect(again.requests[1]!.key).toBe('fox-1');
  });

  it('is not retried if it is refused', async () => {
    const full = await openClient([errorAnswer(503, 'overloaded', { 'retry-after': '5' })]);
    const error = await full.client.submit({ prompt: 'x' }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ status: 503, code: 'overloaded', message: 'it is overloaded', retryAfterS: 5 });
    expect([full.requests.length, full.waits.length]).toEqual([1, 0]);
  });

  it('reports the invalid field', async () => {
    const test = await openClient([errorAnswer(400, 'invalid_value', {}, 'seed')]);
    const error = { name: 'ClientError', status: 400, code: 'invalid_value', param: 'seed' };
    await expect(test.client.submit({ prompt: 'x', seed: -1 })).rejects.toMatchObject(error);
  });
});

describe('get', () => {
  it('is retried after resets and 503, no sooner than Retry-After', async () => {
    const busy = errorAnswer(503, 'unavailable', { 'retry-after': '5' });
    const test = await openClient([reset, busy, errorAnswer(502, 'x'), open(1)]);
    expect(await test.client.get('tiny-1')).toEqual(view('running'));
    expect(test.waits).toEqual([250, 5000, 1000]);
  });

  it('is retried if its response stalls', async () => {
    const answers = [stalled(JSON.stringify(view('running'))), open(1)];
    const test = await openClientWithFakeTimers(answers, { silenceMs: 200 });
    const got = test.client.get('tiny-1');
    await advanceUntilRequested(test, 2, 200);
    expect(await got).toMatchObject({ status: 'running' });
    expect(test.requests).toHaveLength(2);
  });

  it('distinguishes 404, 410 and responses that are not from the API', async () => {
    const gone = errorAnswer(410, 'request_gone');
    const test = await openClient([errorAnswer(404, 'request_not_found'), gone, page(418), page(200)]);
    const get = (): Promise<unknown> => test.client.get('tiny-1');
    await expect(get()).rejects.toMatchObject({ status: 404, code: 'request_not_found', param: undefined });
    await expect(get()).rejects.toMatchObject({ status: 410, code: 'request_gone' });
    await expect(get()).rejects.toMatchObject({ status: 418, code: 'http_418' });
    await expect(get()).rejects.toMatchObject({ status: 200, code: 'invalid_answer' });
    expect(test.waits).toEqual([]);
  });

  it('supports a base URL with a path, extra headers and a custom fetch', async () => {
    const calls: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (url, init) => {
      calls.push([url, init?.headers]);
      return Response.json(view('queued'));
    };
    const client = createClient({ baseUrl: 'http://host/darkroom/', headers: { authorization: 'Bearer k' }, fetch });
    await client.get('a/b');
    expect(calls).toEqual([['http://host/darkroom/v1/predict/a%2Fb', { authorization: 'Bearer k' }]]);
  });

  it('sends its API key with the other headers', async () => {
    const calls: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (_url, init) => {
      calls.push(init?.headers);
      return Response.json(view('queued'));
    };
    await createClient({ baseUrl: '', apiKey: 'k-1', headers: { 'x-a': 'b' }, fetch }).get('a');
    await createClient({ baseUrl: '', fetch }).get('a');
    expect(calls).toEqual([{ authorization: 'Bearer k-1', 'x-a': 'b' }, {}]);
  });

  it('throws the last error after the maximum of retries, and immediately when aborted', async () => {
    const test = await openClient([reset, reset, errorAnswer(503, 'unavailable')], { maxRetries: 2 });
    await expect(test.client.get('tiny-1')).rejects.toMatchObject({ status: 503 });
    const stop = new AbortController();
    const hanging = await openClient([() => stop.abort(new Error('enough'))]);
    await expect(hanging.client.get('tiny-1', { signal: stop.signal })).rejects.toThrow('enough');
  });
});

it('models returns the list, and is retried after temporary errors', async () => {
  const test = await openClient([
    errorAnswer(503, 'unavailable'),
    json(200, { object: 'list', data: [{ id: 'tiny' }] }),
  ]);
  expect(await test.client.models()).toEqual([{ id: 'tiny' }]);
  expect(test.requests.map(({ path }) => path)).toEqual(['/v1/models', '/v1/models']);
});

describe('wait', () => {
  const longPoll = 'GET /tiny-1?wait=25';

  it('sends one request if the request has ended', async () => {
    const test = await openClient([succeeded]);
    expect((await test.client.wait('tiny-1')).status).toBe('succeeded');
    expect(pathsOf(test.requests)).toEqual([longPoll]);
  });

  it('repeats long polls until the request has ended', async () => {
    const test = await openClient([open(7), open(3), json(200, view('failed', [imageInfo(0, image)]))]);
    expect((await test.client.wait('tiny-1')).status).toBe('failed');
    expect(pathsOf(test.requests)).toEqual([longPoll, longPoll, longPoll]);
    expect(test.waits).toEqual([7000, 3000]);
  });

  it('falls back to short polls behind a proxy with a short timeout', async () => {
    const test = await openClient([errorAnswer(504, 'x'), open(2), reset, succeeded]);
    expect((await test.client.wait('tiny-1')).status).toBe('succeeded');
    expect(pathsOf(test.requests)).toEqual([longPoll, 'GET /tiny-1', longPoll, 'GET /tiny-1']);
    expect(test.waits).toEqual([250, 2000, 250]);
  });

  it('waits for as long as it asked the server to wait, and no longer', async () => {
    const test = await openClientWithFakeTimers([late, silence(25_200), succeeded], { timeoutMs: 200 });
    expect((await test.client.wait('tiny-1')).status).toBe('succeeded');
    expect(test.waits).toEqual([2000, 250]);
  });

  it('throws 404 and 410, and when aborted', async () => {
    const test = await openClient([open(1), errorAnswer(410, 'request_gone'), errorAnswer(404, 'request_not_found')]);
    await expect(test.client.wait('tiny-1')).rejects.toMatchObject({ status: 410 });
    await expect(test.client.wait('tiny-1')).rejects.toMatchObject({ status: 404 });
    const stop = new AbortController();
    const aborted = await openClient([open(1), () => stop.abort(new Error('enough'))]);
    await expect(aborted.client.wait('tiny-1', { signal: stop.signal })).rejects.toThrow('enough');
  });
});

describe('cancel', () => {
  it('returns the new status', async () => {
    const answer = { request_id: 'tiny-1', status: 'canceling' };
    const test = await openClient([json(202, answer), errorAnswer(409, 'request_ended')]);
    expect(await test.client.cancel('tiny-1')).toEqual(answer);
    await expect(test.client.cancel('tiny-1')).rejects.toMatchObject({ status: 409, code: 'request_ended' });
    expect(pathsOf(test.requests)).toEqual(['DELETE /tiny-1', 'DELETE /tiny-1']);
  });

  it('recognizes its own cancellation if the response was lost', async () => {
    const ended = errorAnswer(409, 'request_ended');
    const test = await openClient([reset, ended, json(200, view('canceled'))]);
    expect(await test.client.cancel('tiny-1')).toEqual({ request_id: 'tiny-1', status: 'canceled' });
    const late = await openClient([reset, ended, succeeded]);
    await expect(late.client.cancel('tiny-1')).rejects.toMatchObject({ status: 409 });
  });
});

it('call returns the response of any path, and tries once', async () => {
  const test = await openClient([json(200, { time: 'now' }), errorAnswer(503, 'unavailable')]);
  expect(await test.client.call('GET', '/status')).toEqual({ time: 'now' });
  await expect(test.client.call('POST', '/admin/x')).rejects.toMatchObject({ status: 503, code: 'unavailable' });
  expect(test.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /status', 'POST /admin/x']);
});

it('images returns all bytes', async () => {
  const test = await openClient([succeeded, bytes(image), bytes(image)]);
  expect(await test.client.images('tiny-1')).toEqual([
    { ...imageInfo(0, image), data: image },
    { ...imageInfo(1, image), data: image },
  ]);
});

describe('input', () => {
  it('returns the input image with its type, after a broken connection', async () => {
    const test = await openClient([reset, bytes(image)]);
    const file = await test.client.input('tiny-1', 'mask');
    expect(file.type).toBe('image/png');
    expect(new Uint8Array(await file.arrayBuffer())).toEqual(image);
    expect(pathsOf(test.requests)).toEqual(['GET /tiny-1/inputs/mask', 'GET /tiny-1/inputs/mask']);
  });

  it("throws the API's error if there is none", async () => {
    const test = await openClient([errorAnswer(404, 'input_not_found')]);
    await expect(test.client.input('tiny-1', 'image')).rejects.toMatchObject({ status: 404, code: 'input_not_found' });
  });
});
