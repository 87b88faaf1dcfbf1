import type { ImageInput } from '@darkroom/kinds';
import { readEvents, readRequest } from '@darkroom/store';
import { allKeys, openTestStore } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { errorSchema } from '../http/error-response.ts';
import { acceptedSchema } from '../openapi/api-schemas.ts';
import { startWorker } from '../testing/fake-worker.ts';
import { createTestApi, openTestApi, type TestApi } from '../testing/test-api.ts';

interface Answer {
  status: number;
  message: string;
  code: string;
  param: string | null;
}

async function errorOf(response: Response): Promise<Answer> {
  const { message, error } = errorSchema.parse(await response.json());
  expect(error.message).toBe(message);
  return { status: response.status, message, code: error.code, param: error.param };
}

async function send(test: TestApi, body: string | Uint8Array, headers: Record<string, string>): Promise<Answer> {
  return errorOf(await test.api.request('/v1/predict', { method: 'POST', headers, body }));
}

const json = { 'Content-Type': 'application/json' };

describe('accepting', () => {
  it('answers 202 with URLs, and stores the request with all defaults', async () => {
    const test = await openTestApi();
    const response = await test.post({ prompt: 'a fox', n: 3, timeout_s: 60, start_timeout_s: 5, priority: 2 });
    expect(response.status).toBe(202);
    const body = acceptedSchema.parse(await response.json());
    const self = `/v1/predict/${body.request_id}`;
    expect(body).toMatchObject({ queue_position: 0, is_possible: false });
    expect(body.urls).toEqual({ self, events: `${self}/events`, cancel: self });
    expect(response.headers.get('location')).toBe(self);
    const keys = test.store.keysOf('tiny');
    const stored = await test.store.redis.get(keys.input(body.request_id));
    expect(JSON.parse(stored!)).toEqual({
      id: body.request_id,
      model: 'tiny',
      owner: '',
      shapeKey: '128x128',
      kind: 'image',
      outputs: 3,
      slots: 3,
      cost: 128 * 128 * 3 * 12 * 2,
      priority: 2,
      timeoutMs: 60_000,
      startTimeoutMs: 5000,
      input: {
        prompt: 'a fox',
        negativePrompt: '',
        width: 128,
        height: 128,
        n: 3,
        numInferenceSteps: 12,
        guidanceScale: 3,
        guidanceRescale: 0,
        seed: 42,
        scheduler: 'ddim',
        outputFormat: 'png',
        outputCompression: 100,
        previewEvery: 5,
      } satisfies ImageInput,
    });
    const times = ['createdAtMs', 'startDeadlineMs', 'deadlineMs'] as const;
    const [createdAt, startDeadline, deadline] = (
      await test.store.redis.hmget(keys.request(body.request_id), ...times)
    ).map(Number);
    expect([startDeadline! - createdAt!, deadline! - createdAt!]).toEqual([5000, 60_000]);
    expect(await readEvents(test.store, body.request_id, { after: 0 })).toMatchObject([{ type: 'queued' }]);
  });

  it('draws a random seed for a request without one', async () => {
    const store = openTestStore();
    const test = createTestApi({ store, drawSeed: () => 2 ** 32 - 1 });
    await openTestApi({ store });
    const result = await readRequest(store, await test.submit());
    expect(result).toMatchObject({ request: { input: { seed: 2 ** 32 - 1 } } });
  });

  it('reports is_possible and the queue position in dispatch order', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    await test.submit();
    const second = await test.post({ prompt: 'x', priority: 9 });
    expect(await second.json()).toMatchObject({ queue_position: 1, is_possible: true });
    expect(await (await test.post({ prompt: 'x', priority: 1 })).json()).toMatchObject({ queue_position: 0 });
  });

  it('accepts any spelling of the content type', async () => {
    const test = await openTestApi();
    const headers = { 'Content-Type': 'Application/JSON; charset=utf-8' };
    const response = await test.api.request('/v1/predict', { method: 'POST', headers, body: '{"prompt":"ü"}' });
    expect(response.status).toBe(202);
  });
});

describe('rejects and does not store', () => {
  it('invalid fields', async () => {
    const test = await openTestApi();
    const before = await allKeys(test.store);
    expect(await errorOf(await test.post({ prompt: 'a fox', num_inference_steps: 'fifty' }))).toEqual({
      status: 400,
      message: 'num_inference_steps is "fifty", expected a whole number from 1 to 200',
      code: 'invalid_value',
      param: 'num_inference_steps',
    });
    expect(await errorOf(await test.post({ stepz: 3, size: '1x1' }))).toMatchObject({
      message:
        'prompt is missing, expected text of 1 to 4000 characters; ' +
        'stepz is not a field, did you mean num_inference_steps?',
      code: 'missing_field',
      param: 'prompt',
    });
    expect(await allKeys(test.store)).toEqual(before);
  });

  it.each([
    ['', 'the body is empty, expected a JSON object'],
    ['  ', 'the body is empty, expected a JSON object'],
    ['[]', 'the body is [], expected a JSON object'],
    ['"text"', 'the body is "text", expected a JSON object'],
    ['null', 'the body is null, expected a JSON object'],
  ])('the body %j', async (body, message) => {
    const test = await openTestApi();
    expect(await send(test, body, json)).toEqual({ status: 400, message, code: 'invalid_body', param: null });
  });

  it.each(['{"prompt": ', '{"prompt": "x", "seed": NaN}', "{'prompt': 'x'}"])('invalid JSON: %s', async (body) => {
    const test = await openTestApi();
    expect((await send(test, body, json)).message).toMatch(/^the body is not JSON, expected a JSON object: /);
  });

  it('numbers out of range, and invalid UTF-8', async () => {
    const test = await openTestApi();
    const { message } = await send(test, '{"prompt": "x", "seed": 1e999}', json);
    expect(message).toBe('seed is Infinity, expected a whole number from 0 to 4294967295');
    const bytes = new Uint8Array([0x22, 0xff, 0x22]);
    expect((await send(test, bytes, json)).message).toBe('the body is not UTF-8, expected a JSON object');
  });

  it.each([
    [{}, 'Content-Type is "text/plain;charset=UTF-8", expected application/json or multipart/form-data'],
    [{ 'Content-Type': 'text/json' }, 'Content-Type is "text/json", expected application/json or multipart/form-data'],
    [{ ...json, 'Content-Encoding': 'gzip' }, 'Content-Encoding is "gzip", expected none'],
  ])('other content types: %j', async (headers: Record<string, string>, message) => {
    const test = await openTestApi();
    const answer = await send(test, '{"prompt": "x"}', headers);
    expect(answer).toEqual({ status: 415, message, code: 'unsupported_media_type', param: null });
  });

  it('bodies that are nested deeper than the stack', async () => {
    const test = await openTestApi();
    const refusalOf = async (levels: number) =>
      (await send(test, `{"prompt":${'['.repeat(levels)}${']'.repeat(levels)}}`, json)).message;
    expect(await refusalOf(200)).toMatch(/^prompt is /);
    for (const levels of [201, 30_000])
      expect(await refusalOf(levels)).toBe(
        'the body is nested more than 200 levels deep, expected a JSON object of fields',
      );
  });

  it('bodies that are too large, with and without Content-Length', async () => {
    const test = await openTestApi({ config: { maxBodyBytes: 1024 } });
    const body = JSON.stringify({ prompt: 'x'.repeat(1024) });
    const tooLarge = { status: 413, message: 'the body has more than 1024 bytes', code: 'body_too_large', param: null };
    expect(await send(test, body, { ...json, 'Content-Length': String(body.length) })).toEqual(tooLarge);
    expect(await send(test, body, json)).toEqual(tooLarge);
    let pulled = 0;
    const endless = new ReadableStream({
      pull(controller) {
        pulled++;
        controller.enqueue(new Uint8Array(512));
      },
    });
    const request = { method: 'POST', headers: json, body: endless, duplex: 'half' } as RequestInit;
    expect(await errorOf(await test.api.request('/v1/predict', request))).toEqual(tooLarge);
    expect(pulled).toBeLessThan(10);
  });

  it('unknown models', async () => {
    const test = await openTestApi();
    expect(await errorOf(await test.post({ prompt: 'x', model: 'sdxl' }))).toEqual({
      status: 404,
      message: 'model "sdxl" was not found, expected one of tiny',
      code: 'model_not_found',
      param: 'model',
    });
    const empty = createTestApi({ store: openTestStore() });
    const response = await empty.post({ prompt: 'x' });
    expect(response.headers.get('retry-after')).toBe('5');
    expect(await errorOf(response)).toMatchObject({ status: 503, code: 'no_models' });
  });

  it('requests beyond QUEUE_MAX_LENGTH', async () => {
    const test = await openTestApi({ config: { queueMaxLength: 1 } });
    await test.submit();
    const before = await allKeys(test.store);
    const response = await test.post({ prompt: 'x' });
    expect(response.headers.get('retry-after')).toBe('5');
    const message = 'Service overloaded, try again later.';
    expect(await errorOf(response)).toEqual({ status: 503, message, code: 'overloaded', param: null });
    expect(await allKeys(test.store)).toEqual(before);
  });

  it('models without workers, if so configured', async () => {
    const test = await openTestApi({ config: { unservedModels: 'refuse' } });
    const response = await test.post({ prompt: 'x' });
    expect(response.headers.get('retry-after')).toBe('5');
    expect(await errorOf(response)).toMatchObject({ status: 503, code: 'model_unserved', param: 'model' });
    await startWorker(test.store);
    expect((await test.post({ prompt: 'x' })).status).toBe(202);
  });
});

it('accepts a model that was published a moment ago', async () => {
  const store = openTestStore();
  const test = createTestApi({ store, clock: { now: () => 1_700_000_000_000 } });
  expect((await test.post({ prompt: 'x' })).status).toBe(503);
  await openTestApi({ store });
  expect((await test.post({ prompt: 'x' })).status).toBe(202);
});

it('logs the request with its id, and never a prompt', async () => {
  const test = await openTestApi();
  const id = await test.submit({ prompt: 'my secret wish', negative_prompt: 'my secret fear' });
  await test.post({ prompt: 'my secret wish', seed: 'my secret number' });
  await send(test, '{"prompt": my secret', json);
  expect(JSON.parse(test.lines[0]!)).toMatchObject({
    level: 'info',
    method: 'POST',
    path: '/v1/predict',
    status: 202,
    request_id: id,
  });
  expect(test.lines).toHaveLength(3);
  expect(test.lines.join()).not.toContain('secret');
});
