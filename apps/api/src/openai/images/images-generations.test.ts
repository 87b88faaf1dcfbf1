import { cancelRequest, readEvents, readRequest } from '@darkroom/store';
import { allKeys } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import { errorSchema } from '../../http/error-response.ts';
import { drainGraceMs } from '../../answer/follow-stored.ts';
import { imagesResponseSchema } from './openai-images-schema.ts';
import { endOverdue } from '../../testing/end-overdue.ts';
import { runNext, startWorker } from '../../testing/fake-worker.ts';
import { generate, onlyId, stateOf, storedIds } from '../../testing/generate.ts';
import { openTestApi, type TestApi } from '../../testing/test-api.ts';

interface Answer {
  status: number;
  message: string;
  code: string;
  type: string;
  param: string | null;
}

async function errorOf(response: Response): Promise<Answer> {
  const { error } = errorSchema.parse(await response.json());
  return { status: response.status, ...error };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Returns the time in seconds, by Redis's clock, at which the last image was written. */
async function drawnAt({ store }: TestApi, id: string): Promise<number> {
  const events = await readEvents(store, id, { after: 0 });
  return Math.floor(events.findLast(({ type }) => type === 'output')!.timestampMs / 1000);
}

/** Runs the next request and writes `count` images, the last one first. */
async function draw(test: TestApi, count: number): Promise<void> {
  const run = await runNext(test.store);
  for (let index = count - 1; index >= 0; index--) await run.output(index, Buffer.from(`image ${index}`), 6);
  await run.finish();
}

describe('an answer without streaming', () => {
  it('is a 400 that no SDK retries when moderation rejects the image', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const answering = generate(test, { prompt: 'a fox' });
    await onlyId(test.store);
    const run = await runNext(test.store);
    const error = { code: 'content_policy_violation', message: 'NSFW content was found in image 0.' };
    await run.finish({ state: 'failed', error });
    const response = await answering;
    expect(response.headers.get('x-should-retry')).toBe('false');
    const type = 'invalid_request_error';
    expect(await errorOf(response)).toMatchObject({ status: 400, type, ...error });
  });

  it('contains all images in order, with the request id in a header, and requests no previews', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const answering = generate(test, { prompt: 'a fox', n: 2, num_inference_steps: 4, user: 'me', quality: 'auto' });
    const id = await onlyId(test.store);
    await draw(test, 2);
    const response = await answering;
    expect([response.status, response.headers.get('x-request-id')]).toEqual([200, id]);
    expect(imagesResponseSchema.parse(await response.json())).toEqual({
      created: await drawnAt(test, id),
      data: [{ b64_json: base64('image 0') }, { b64_json: base64('image 1') }],
      background: 'opaque',
      output_format: 'png',
      size: '128x128',
      usage: {
        input_tokens: 0,
        output_tokens: 0,
        total_tokens: 0,
        input_tokens_details: { text_tokens: 0, image_tokens: 0 },
        steps: 8,
        prompt_tokens_cut: 0,
      },
    });
    const stored = await readRequest(test.store, id);
    expect(stored).toMatchObject({ request: { state: 'succeeded', input: { previewEvery: 0, n: 2 } } });
    expect(JSON.stringify(stored)).not.toContain('me"');
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
  });

  it.each([
    [{}, 'http://localhost'],
    [{ 'X-Forwarded-Proto': 'https', 'X-Forwarded-Host': 'images.example:444, inner' }, 'https://images.example:444'],
    [{ 'X-Forwarded-Proto': 'javascript', 'X-Forwarded-Host': 'a/b?c' }, 'http://localhost'],
  ])('contains absolute URLs: %j', async (headers: Record<string, string>, origin) => {
    const test = await openTestApi();
    await startWorker(test.store);
    const answering = generate(test, { prompt: 'a fox', response_format: 'url' }, { headers });
    const id = await onlyId(test.store);
    await draw(test, 1);
    const { data } = imagesResponseSchema.parse(await (await answering).json());
    expect(data).toEqual([{ url: `${origin}/v1/predict/${id}/images/0` }]);
    const image = await test.api.request(new URL(data[0]!.url!).pathname);
    expect(await image.text()).toBe('image 0');
  });

  it('accepts null as a default, and ignores fields that OpenAI’s clients always send', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const nulls = ['model', 'n', 'size', 'stream', 'partial_images', 'output_format', 'seed', 'style', 'stream_format'];
    const nothing = Object.fromEntries(nulls.map((name) => [name, null]));
    const meant = { background: 'opaque', moderation: 'low', quality: 'standard', size: 'auto' };
    const answering = generate(test, { ...nothing, ...meant, prompt: 'a fox' });
    await onlyId(test.store);
    await draw(test, 1);
    expect((await answering).status).toBe(200);
  });
});

describe('rejects without storing a request', () => {
  it.each([
    [{ prompt: 'x', n: 11 }, 'n is 11, expected a whole number from 1 to 10'],
    [{ prompt: null }, 'prompt is null, expected text of 1 to 4000 characters'],
    [{ prompt: 'x', num_inference_steps: 999 }, 'num_inference_steps is 999, expected a whole number from 1 to 200'],
    [{ prompt: 'x', size: '1024x1792' }, /^size is "1024x1792", expected "auto" or .* multiple of 32 from 64 to 256$/],
    [{ prompt: 'x', partial_images: 4, stream: true }, 'partial_images is 4, expected a whole number from 0 to 3'],
    [{ prompt: 'x', partial_images: 'every', stream: true }, 'partial_images is "every", expected a whole number'],
    [{ prompt: 'x', partial_images: -1, stream: true, stream_format: 'chunked' }, 'partial_images is -1, expected a'],
    [{ prompt: 'x', partial_images: 1.5, stream: true, stream_format: 'chunked' }, 'partial_images is 1.5, expected a'],
    [
      { prompt: 'x', partial_images: 'all', stream: true, stream_format: 'chunked' },
      'partial_images is "all", expected',
    ],
    [{ prompt: 'x', partial_images: 'every' }, 'partial_images is "every", expected 0 without stream: true'],
    [{ prompt: 'x', partial_images: 1 }, 'partial_images is 1, expected 0 without stream: true'],
    [{ prompt: 'x', stream_format: 'chunked' }, 'stream_format is "chunked", expected none without stream: true'],
    [{ prompt: 'x', stream: true, response_format: 'url' }, /^response_format is "url", expected b64_json with stream/],
    [{ prompt: 'x', stream: 'yes' }, 'stream is "yes", expected true or false'],
    [{ prompt: 'x', background: 'transparent' }, 'background is "transparent", expected auto or opaque'],
    [{ prompt: 'x', quality: 'hd' }, /^quality is "hd", expected auto or standard/],
    [{ prompt: 'x', style: 'natural' }, /^style is "natural", expected vivid/],
    [{ prompt: 'x', guidence_scale: 3 }, 'guidence_scale is not a field, did you mean guidance_scale?'],
    [{ prompt: 'x', priority: 1 }, /^priority is not a field, /],
    [[], 'the body is [], expected a JSON object'],
  ])('%j', async (body, message) => {
    const test = await openTestApi();
    const before = await allKeys(test.store);
    const response = await generate(test, body);
    expect(response.headers.get('x-request-id')).not.toBeNull();
    const error = await errorOf(response);
    expect(error).toMatchObject({ status: 400, type: 'invalid_request_error' });
    expect(error.message).toMatch(message);
    expect(await allKeys(test.store)).toEqual(before);
  });

  it('an unknown model', async () => {
    const test = await openTestApi();
    expect(await errorOf(await generate(test, { prompt: 'x', model: 'dall-e-3' }))).toMatchObject({
      status: 404,
      code: 'model_not_found',
      param: 'model',
    });
  });

  it('a request when the queue is full, with a 503 that SDKs retry', async () => {
    const test = await openTestApi({ config: { queueMaxLength: 1 } });
    await test.submit();
    const response = await generate(test, { prompt: 'x', stream: true });
    expect([response.status, response.headers.get('x-should-retry')]).toEqual([503, null]);
    expect(await storedIds(test.store)).toHaveLength(1);
  });
});

/** Sends a request, runs `happen` while the client waits, and returns the error that the client receives. */
async function outcome(test: TestApi, happen: (id: string) => Promise<unknown>): Promise<Answer & { id: string }> {
  await startWorker(test.store);
  const answering = generate(test, { prompt: 'a fox' });
  const id = await onlyId(test.store);
  await expect.poll(() => test.timers()).toBe(3);
  await happen(id);
  const response = await answering;
  expect(response.headers.get('x-request-id')).toBe(id);
  expect(response.headers.get('x-should-retry')).toBe('false');
  return { ...(await errorOf(response)), id };
}

describe('after the request is stored', () => {
  it('answers a failed request with its error and a status that no SDK retries', async () => {
    const test = await openTestApi();
    const error = { code: 'engine_failed', message: 'Nothing came of it.' };
    const { id, ...answer } = await outcome(test, async () =>
      (await runNext(test.store)).finish({ state: 'failed', error }),
    );
    const message = `Request ${id} failed: Nothing came of it.`;
    expect(answer).toEqual({ status: 422, message, type: 'generation_error', code: 'engine_failed', param: null });
  });

  it('answers a canceled or expired request with request_canceled or request_expired', async () => {
    const one = await openTestApi();
    const canceled = await outcome(one, (id) => cancelRequest(one.store, id));
    expect(canceled).toMatchObject({ status: 422, code: 'request_canceled' });
    const two = await openTestApi();
    const expired = await outcome(two, (id) => endOverdue(two.store, id));
    expect(expired).toMatchObject({ status: 422, code: 'request_expired' });
  });

  it('answers an internal error with 422 instead of 5xx, and logs it', async () => {
    const test = await openTestApi();
    const answer = await outcome(test, async (id) => {
      const run = await runNext(test.store);
      const { redis } = test.store;
      await run.output(0, Buffer.from('x'));
      const key = test.store.keysOf('tiny').events(id);
      await redis.del(key);
      await redis.set(key, 'no log');
      await run.progress(3).catch(() => {});
      test.tick(5000);
    });
    expect(answer).toMatchObject({ status: 422, code: 'internal' });
    expect(test.lines.join()).toContain('"answer failed"');
  });

  it('keeps waiting during the grace time of a shutdown, then names the request', async () => {
    const test = await openTestApi();
    const answer = await outcome(test, async () => {
      test.draining.abort();
      test.tick(drainGraceMs);
    });
    expect(answer).toMatchObject({ status: 422, code: 'server_stopping' });
    expect(answer.message).toContain(`request ${answer.id} continues. Fetch it by its id`);
    expect(await stateOf(test.store, answer.id)).toBe('queued');
    expect([test.hub.size, test.timers()]).toEqual([0, 0]);
  });

  it('tells a client with an Idempotency-Key to retry on shutdown; the next replica finds the same request', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const body = { prompt: 'a fox', n: 2 };
    const headers = { 'Idempotency-Key': 'k-1' };
    const answering = generate(test, body, { headers });
    const id = await onlyId(test.store);
    await expect.poll(() => test.timers()).toBe(3);
    test.draining.abort();
    test.tick(drainGraceMs);
    const stopped = await answering;
    expect([stopped.status, stopped.headers.get('x-should-retry')]).toEqual([422, 'true']);
    const replica = test.replica();
    const again = generate(replica, body, { headers });
    await expect.poll(() => replica.timers()).toBe(3);
    await draw(test, 2);
    expect((await again).headers.get('x-request-id')).toBe(id);
    const afterTheEnd = await generate(replica, body, { headers });
    expect(await afterTheEnd.json()).toEqual(await (await again).json());
  });

  it('answers normally if the request ends soon after the shutdown begins', async () => {
    const test = await openTestApi();
    await startWorker(test.store);
    const answering = generate(test, { prompt: 'a fox' });
    await onlyId(test.store);
    test.draining.abort();
    await draw(test, 1);
    expect((await answering).status).toBe(200);
  });

  it('answers end_unknown long after the timeout if no process has ended the request', async () => {
    const test = await openTestApi({ config: { requestTimeoutS: 20 } });
    const answer = await outcome(test, async () => test.tick(35_000));
    expect(answer).toMatchObject({ status: 422, code: 'end_unknown' });
  });
});
