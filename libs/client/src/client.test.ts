import { describe, expect, it, vi } from 'vitest';
import { ClientError } from './client-error.ts';
import { createClient } from './client.ts';
import { openClient, openPatientClient, passUntilAsked } from './testing/open-client.ts';
import {
  type Answer,
  bytes,
  failure,
  imageInfo,
  json,
  page,
  reset,
  silence,
  stalled,
} from './testing/scripted-server.ts';

const accepted = { request_id: 'tiny-1', status: 'queued', queue_position: 3, is_possible: true, urls: {} };
const picture = Uint8Array.from([9, 8, 7]);
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
const succeeded = json(200, view('succeeded', [imageInfo(0, picture), imageInfo(1, picture)]));
const pathsOf = (asked: readonly { method: string; path: string }[]): string[] =>
  asked.map(({ method, path }) => `${method} ${path.replace('/v1/predict', '')}`);

describe('submit', () => {
  it('sends the request as it is, and brings its id and place', async () => {
    const test = await openClient([json(202, accepted)]);
    const request = { prompt: 'ein grüner Apfel', seed: 7, preview: { every: 2 } };
    expect(await test.client.submit(request)).toEqual(accepted);
    expect(test.asked).toMatchObject([{ method: 'POST', path: '/v1/predict' }]);
    expect(JSON.parse(test.asked[0]!.body)).toEqual(request);
  });

  it('sends files as a form, and the fields beside them as they would be in JSON', async () => {
    const test = await openClient([reset, json(202, accepted)]);
    const image = new Blob([picture], { type: 'image/png' });
    expect(await test.client.submit({ prompt: '7', n: 2, preview: { every: 2 }, image, strength: 0.5 })).toEqual(
      accepted,
    );
    const [first, second] = test.asked.map(({ body }) => body.split('\r\n').filter((line) => !line.startsWith('--')));
    expect(first).toEqual(expect.arrayContaining(['7', '2', '{"every":2}', '0.5', 'Content-Type: image/png']));
    expect(second).toEqual(first);
  });

  it('is tried again under the same key when its answer got lost', async () => {
    const test = await openPatientClient([reset, failure(502, 'bad_gateway'), silence(200), json(202, accepted)], {
      timeoutMs: 200,
    });
    expect(await test.client.submit({ prompt: 'x' })).toEqual(accepted);
    expect(test.asked).toHaveLength(4);
    expect(new Set(test.asked.map(({ key }) => key)).size).toBe(1);
    expect(test.asked[0]!.key).toMatch(/^[0-9a-f]{32}$/);
    const again = await openClient([json(202, accepted), json(202, accepted)]);
    await again.client.submit({ prompt: 'x' });
    await again.client.submit({ prompt: 'x' }, { idempotencyKey: 'fox-1' });
    expect(again.asked[0]!.key).not.toBe(test.asked[0]!.key);
    expect(again.asked[1]!.key).toBe('fox-1');
  });

  it('is not tried again when it was refused', async () => {
    const full = await openClient([failure(503, 'overloaded', { 'retry-after': '5' })]);
    const error = await full.client.submit({ prompt: 'x' }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ClientError);
    expect(error).toMatchObject({ status: 503, code: 'overloaded', message: 'it is overloaded', retryAfterS: 5 });
    expect([full.asked.length, full.waits.length]).toEqual([1, 0]);
  });

  it('names the field that is wrong', async () => {
    const test = await openClient([failure(400, 'invalid_value', {}, 'seed')]);
    const error = { name: 'ClientError', status: 400, code: 'invalid_value', param: 'seed' };
    await expect(test.client.submit({ prompt: 'x', seed: -1 })).rejects.toMatchObject(error);
  });
});

describe('get', () => {
  it('is tried again over resets and 503, no sooner than Retry-After', async () => {
    const busy = failure(503, 'unavailable', { 'retry-after': '5' });
    const test = await openClient([reset, busy, failure(502, 'x'), open(1)]);
    expect(await test.client.get('tiny-1')).toEqual(view('running'));
    expect(test.waits).toEqual([250, 5000, 1000]);
  });

  it('is tried again when its answer stalls halfway', async () => {
    const answers = [stalled(JSON.stringify(view('running'))), open(1)];
    const test = await openPatientClient(answers, { silenceMs: 200 });
    const got = test.client.get('tiny-1');
    await passUntilAsked(test, 2, 200);
    expect(await got).toMatchObject({ status: 'running' });
    expect(test.asked).toHaveLength(2);
  });

  it('tells 404 and 410, and what is not the API', async () => {
    const gone = failure(410, 'request_gone');
    const test = await openClient([failure(404, 'request_not_found'), gone, page(418), page(200)]);
    const get = (): Promise<unknown> => test.client.get('tiny-1');
    await expect(get()).rejects.toMatchObject({ status: 404, code: 'request_not_found', param: undefined });
    await expect(get()).rejects.toMatchObject({ status: 410, code: 'request_gone' });
    await expect(get()).rejects.toMatchObject({ status: 418, code: 'http_418' });
    await expect(get()).rejects.toMatchObject({ status: 200, code: 'invalid_answer' });
    expect(test.waits).toEqual([]);
  });

  it('finds an API under a path, with headers, by any fetch', async () => {
    const calls: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (url, init) => {
      calls.push([url, init?.headers]);
      return Response.json(view('queued'));
    };
    const client = createClient({ baseUrl: 'http://host/darkroom/', headers: { authorization: 'Bearer k' }, fetch });
    await client.get('a/b');
    expect(calls).toEqual([['http://host/darkroom/v1/predict/a%2Fb', { authorization: 'Bearer k' }]]);
  });

  it('sends its API key beside the other headers', async () => {
    const calls: unknown[] = [];
    const fetch: typeof globalThis.fetch = async (_url, init) => {
      calls.push(init?.headers);
      return Response.json(view('queued'));
    };
    await createClient({ baseUrl: '', apiKey: 'k-1', headers: { 'x-a': 'b' }, fetch }).get('a');
    await createClient({ baseUrl: '', fetch }).get('a');
    expect(calls).toEqual([{ authorization: 'Bearer k-1', 'x-a': 'b' }, {}]);
  });

  it('gives up with the last reason, and at once when aborted', async () => {
    const test = await openClient([reset, reset, failure(503, 'unavailable')], { maxRetries: 2 });
    await expect(test.client.get('tiny-1')).rejects.toMatchObject({ status: 503 });
    const stop = new AbortController();
    const hanging = await openClient([() => stop.abort(new Error('enough'))]);
    await expect(hanging.client.get('tiny-1', { signal: stop.signal })).rejects.toThrow('enough');
  });
});

it('models brings the list, tried again over what passes', async () => {
  const test = await openClient([failure(503, 'unavailable'), json(200, { object: 'list', data: [{ id: 'tiny' }] })]);
  expect(await test.client.models()).toEqual([{ id: 'tiny' }]);
  expect(test.asked.map(({ path }) => path)).toEqual(['/v1/models', '/v1/models']);
});

describe('wait', () => {
  const longPoll = 'GET /tiny-1?wait=25';

  it('asks once for what has ended', async () => {
    const test = await openClient([succeeded]);
    expect((await test.client.wait('tiny-1')).status).toBe('succeeded');
    expect(pathsOf(test.asked)).toEqual([longPoll]);
  });

  it('asks for nothing but the end, until it has come', async () => {
    const test = await openClient([open(7), open(3), json(200, view('failed', [imageInfo(0, picture)]))]);
    expect((await test.client.wait('tiny-1')).status).toBe('failed');
    expect(pathsOf(test.asked)).toEqual([longPoll, longPoll, longPoll]);
    expect(test.waits).toEqual([7000, 3000]);
  });

  it('asks without waiting where a proxy waits for less long', async () => {
    const test = await openClient([failure(504, 'x'), open(2), reset, succeeded]);
    expect((await test.client.wait('tiny-1')).status).toBe('succeeded');
    expect(pathsOf(test.asked)).toEqual([longPoll, 'GET /tiny-1', longPoll, 'GET /tiny-1']);
    expect(test.waits).toEqual([250, 2000, 250]);
  });

  it('has patience for as long as it asked to wait, and no more', async () => {
    const test = await openPatientClient([late, silence(25_200), succeeded], { timeoutMs: 200 });
    expect((await test.client.wait('tiny-1')).status).toBe('succeeded');
    expect(test.waits).toEqual([2000, 250]);
  });

  it('throws 404 and 410, and when aborted', async () => {
    const test = await openClient([open(1), failure(410, 'request_gone'), failure(404, 'request_not_found')]);
    await expect(test.client.wait('tiny-1')).rejects.toMatchObject({ status: 410 });
    await expect(test.client.wait('tiny-1')).rejects.toMatchObject({ status: 404 });
    const stop = new AbortController();
    const aborted = await openClient([open(1), () => stop.abort(new Error('enough'))]);
    await expect(aborted.client.wait('tiny-1', { signal: stop.signal })).rejects.toThrow('enough');
  });
});

describe('cancel', () => {
  it('says how it went', async () => {
    const answer = { request_id: 'tiny-1', status: 'canceling' };
    const test = await openClient([json(202, answer), failure(409, 'request_ended')]);
    expect(await test.client.cancel('tiny-1')).toEqual(answer);
    await expect(test.client.cancel('tiny-1')).rejects.toMatchObject({ status: 409, code: 'request_ended' });
    expect(pathsOf(test.asked)).toEqual(['DELETE /tiny-1', 'DELETE /tiny-1']);
  });

  it('knows its own work when the answer was lost', async () => {
    const ended = failure(409, 'request_ended');
    const test = await openClient([reset, ended, json(200, view('canceled'))]);
    expect(await test.client.cancel('tiny-1')).toEqual({ request_id: 'tiny-1', status: 'canceled' });
    const late = await openClient([reset, ended, succeeded]);
    await expect(late.client.cancel('tiny-1')).rejects.toMatchObject({ status: 409 });
  });
});

it('ask brings what another path answers, and tries once', async () => {
  const test = await openClient([json(200, { time: 'now' }), failure(503, 'unavailable')]);
  expect(await test.client.ask('GET', '/status')).toEqual({ time: 'now' });
  await expect(test.client.ask('POST', '/admin/x')).rejects.toMatchObject({ status: 503, code: 'unavailable' });
  expect(test.asked.map(({ method, path }) => `${method} ${path}`)).toEqual(['GET /status', 'POST /admin/x']);
});

it('images brings all bytes', async () => {
  const test = await openClient([succeeded, bytes(picture), bytes(picture)]);
  expect(await test.client.images('tiny-1')).toEqual([
    { ...imageInfo(0, picture), data: picture },
    { ...imageInfo(1, picture), data: picture },
  ]);
});

describe('input', () => {
  it('brings the picture that a request began with, with its type, over a connection that broke off', async () => {
    const test = await openClient([reset, bytes(picture)]);
    const file = await test.client.input('tiny-1', 'mask');
    expect(file.type).toBe('image/png');
    expect(new Uint8Array(await file.arrayBuffer())).toEqual(picture);
    expect(pathsOf(test.asked)).toEqual(['GET /tiny-1/inputs/mask', 'GET /tiny-1/inputs/mask']);
  });

  it('is thrown as the API says it when there is none', async () => {
    const test = await openClient([failure(404, 'input_not_found')]);
    await expect(test.client.input('tiny-1', 'image')).rejects.toMatchObject({ status: 404, code: 'input_not_found' });
  });
});
