import { DarkroomError, type StoredEvent } from '@darkroom/core';
import { type EventHub, readEvents } from '@darkroom/store';
import { describe, expect, it } from 'vitest';
import { drainGraceMs } from '../../answer/follow-stored.ts';
import { checkMs, heartbeatMs } from '../../follow/tail-events.ts';
import { frameBytes } from './image-frames.ts';
import { type RunningRequest, runNext, startWorker, totalSteps } from '../../testing/fake-worker.ts';
import { generate, stateOf } from '../../testing/generate.ts';
import { openHangingRedis } from '../../testing/open-hanging-redis.ts';
import { type Frame, readFrames, type SseReader } from '../../testing/sse-reader.ts';
import { openTestApi, type TestApi, type TestApiOptions } from '../../testing/test-api.ts';

const preview = (step: number): Buffer => Buffer.from(`preview ${step}`);
const base64 = (data: Uint8Array): string => Buffer.from(data).toString('base64');
const done: Frame = { data: '[DONE]' };

interface Stream {
  test: TestApi;
  id: string;
  reader: SseReader;
  run: RunningRequest;
}

/** Opens a stream and leases its request. */
async function open(body: Record<string, unknown>, options?: TestApiOptions): Promise<Stream> {
  const test = await openTestApi(options);
  await startWorker(test.store);
  const response = await generate(test, {
    prompt: 'a fox',
    stream: true,
    num_inference_steps: totalSteps,
    ...body,
  });
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8']);
  const id = response.headers.get('x-request-id')!;
  return { test, id, reader: readFrames(response), run: await runNext(test.store) };
}

function dataOf(frame: Frame | undefined): Record<string, unknown> {
  return JSON.parse(frame?.data ?? 'null') as Record<string, unknown>;
}

/** Returns the time in ms, by Redis's clock, at which the last event of a type was written. */
async function timeOf({ store }: TestApi, id: string, type: StoredEvent['type']): Promise<number> {
  return (await readEvents(store, id, { after: 0, limit: 10_000 })).findLast((event) => event.type === type)!
    .timestampMs;
}

describe('OpenAI’s events', () => {
  it('stream partial images and final images in the order in which workers write them', async () => {
    const { test, id, reader, run } = await open({ n: 2, partial_images: 3, output_format: 'webp' });
    await run.progress(1, preview(1));
    expect(await reader.next()).toEqual({
      event: 'image_generation.partial_image',
      data: JSON.stringify({
        type: 'image_generation.partial_image',
        b64_json: base64(preview(1)),
        partial_image_index: 0,
        created_at: Math.floor((await timeOf(test, id, 'preview')) / 1000),
        size: '128x128',
        quality: 'auto',
        background: 'opaque',
        output_format: 'webp',
        image_index: 0,
        step: 1,
        total_steps: 4,
        progress: 0.25,
        request_id: id,
      }),
    });
    await run.progress(2);
    await run.progress(2, preview(2), 1);
    const second = await reader.next();
    expect(dataOf(second)).toMatchObject({ partial_image_index: 0, image_index: 1, step: 2, progress: 0.5 });
    await run.output(1, Buffer.from('image 1'), 3);
    const { event, data } = (await reader.next())!;
    expect([event, JSON.parse(data!)]).toEqual([
      'image_generation.completed',
      {
        type: 'image_generation.completed',
        b64_json: base64(Buffer.from('image 1')),
        created_at: Math.floor((await timeOf(test, id, 'output')) / 1000),
        size: '128x128',
        quality: 'auto',
        background: 'opaque',
        output_format: 'png',
        usage: {
          input_tokens: 0,
          output_tokens: 0,
          total_tokens: 0,
          input_tokens_details: { text_tokens: 0, image_tokens: 0 },
          steps: 4,
          prompt_tokens_cut: 0,
        },
        image_index: 1,
        step: 4,
        total_steps: 4,
        progress: 1,
        request_id: id,
      },
    ]);
    await run.output(0, Buffer.from('image 0'));
    await run.finish();
    const [first, ...rest] = await reader.rest();
    expect(dataOf(first)).toMatchObject({ image_index: 0, b64_json: base64(Buffer.from('image 0')) });
    expect(rest).toEqual([done]);
    expect([test.hub.size, test.timers(), await stateOf(test.store, id)]).toEqual([0, 0, 'succeeded']);
  });

  it('contain at most partial_images previews, and none twice when steps are repeated', async () => {
    const { reader, run } = await open({ partial_images: 2 });
    for (const step of [1, 2, 1, 2, 3]) await run.progress(step, preview(step));
    // Read them now: previews are deleted when the request ends.
    const partial = [await reader.next(), await reader.next()];
    await run.output(0, Buffer.from('image'));
    await run.output(0, Buffer.from('image'));
    await run.finish();
    const frames = [...partial, ...(await reader.rest()).slice(0, -1)].map((frame) => dataOf(frame));
    expect(frames.map((data) => [data['type'], data['partial_image_index'], data['step']])).toEqual([
      ['image_generation.partial_image', 0, 1],
      ['image_generation.partial_image', 1, 2],
      ['image_generation.completed', undefined, 4],
    ]);
  });

  it.each([
    [0, 50, 0],
    [1, 50, 25],
    [3, 50, 12],
    [3, 4, 1],
    [3, 2, 1],
    [2, 5, 1],
  ])('spread %d partial images over %d steps: a preview every %d steps', async (partialImages, steps, every) => {
    const test = await openTestApi();
    const body = { prompt: 'x', stream: true, partial_images: partialImages, num_inference_steps: steps };
    const response = await generate(test, body);
    const view = await test.api.request(`/v1/predict/${response.headers.get('x-request-id')}`);
    expect(await view.json()).toMatchObject({ parameters: { preview: every === 0 ? 'off' : { every } } });
    await response.body!.cancel();
  });

  it.each([
    [4, 50, 10],
    [10, 50, 4],
    [49, 50, 1],
    [5000, 50, 1],
    ['every', 50, 1],
    ['every', 1, 1],
    [0, 50, 0],
  ])(
    'in chunked format, spread %s partial images over %d steps: a preview every %d steps',
    async (partialImages, steps, every) => {
      const test = await openTestApi();
      const more = { stream: true, stream_format: 'chunked', num_inference_steps: steps };
      const response = await generate(test, { prompt: 'x', partial_images: partialImages, ...more });
      const view = await test.api.request(`/v1/predict/${response.headers.get('x-request-id')}`);
      expect(await view.json()).toMatchObject({ parameters: { preview: every === 0 ? 'off' : { every } } });
      await response.body!.cancel();
    },
  );

  it('with stream_format "chunked" and partial_images "every", contain a frame for every step', async () => {
    const { reader, run } = await open({ stream_format: 'chunked', partial_images: 'every' });
    for (let step = 1; step < totalSteps; step++) {
      await run.progress(step, preview(step));
      expect(dataOf(await reader.next())).toMatchObject({ step, is_final: false, image: base64(preview(step)) });
    }
    await run.output(0, Buffer.from('image'));
    expect(dataOf(await reader.next())).toMatchObject({ step: totalSteps, is_final: true });
    await run.finish();
    expect(await reader.rest()).toEqual([done]);
  });

  it("spread partial images over the model's default steps if the request sets none", async () => {
    const test = await openTestApi();
    const response = await generate(test, { prompt: 'x', stream: true, partial_images: 3 });
    const view = await test.api.request(`/v1/predict/${response.headers.get('x-request-id')}`);
    expect(await view.json()).toMatchObject({ parameters: { num_inference_steps: 12, preview: { every: 3 } } });
    await response.body!.cancel();
  });

  it('contain every image after the event log was trimmed', async () => {
    const { test, id, reader, run } = await open({});
    await run.output(0, Buffer.from('image'));
    await run.finish();
    await test.store.redis.xtrim(test.store.keysOf('tiny').events(id), 'MAXLEN', 1);
    const frames = await reader.rest();
    expect(frames.map(({ event, data }) => event ?? data)).toEqual(['image_generation.completed', '[DONE]']);
  });
});

describe('chunked frames', () => {
  it('split an image of more than 400 KB so that the base64 chunks can be concatenated', async () => {
    const { test, id, reader, run } = await open({ stream_format: 'chunked', partial_images: 1 });
    await run.progress(2, preview(2));
    const first = await reader.next();
    const image = Buffer.from(Uint8Array.from({ length: 2 * frameBytes + 1 }, (_value, index) => index % 251));
    await run.output(0, image, 999);
    await run.finish();
    const frames = [first!, ...(await reader.rest())];
    expect(frames.at(-1)).toEqual(done);
    expect(new Set(frames.map(({ event }) => event))).toEqual(new Set([undefined]));
    const [partial, ...chunks] = frames.slice(0, -1).map((frame) => dataOf(frame));
    expect(partial).toEqual({
      step: 2,
      total_steps: 4,
      progress: 0.5,
      image: base64(preview(2)),
      timestamp: (await timeOf(test, id, 'preview')) / 1000,
      is_final: false,
      is_chunked: false,
      chunk_id: `${id}-0-2`,
      chunk_index: 0,
      total_chunks: 1,
      output_format: 'webp',
      image_index: 0,
      request_id: id,
    });
    const timestamp = (await timeOf(test, id, 'output')) / 1000;
    expect(chunks.map(({ image: _image, ...rest }) => rest)).toEqual(
      [0, 1, 2].map((chunkIndex) => ({
        step: 4,
        total_steps: 4,
        progress: 1,
        timestamp,
        is_final: true,
        is_chunked: true,
        chunk_id: `${id}-0-4`,
        chunk_index: chunkIndex,
        total_chunks: 3,
        output_format: 'png',
        image_index: 0,
        request_id: id,
      })),
    );
    expect(Buffer.from(chunks.map(({ image }) => String(image)).join(''), 'base64').equals(image)).toBe(true);
    const sizes = chunks.map(({ image }) => Buffer.from(String(image), 'base64').byteLength);
    expect(sizes).toEqual([409_599, 409_599, 1]);
  });

  it('do not split an image of 400 KB', async () => {
    const { reader, run } = await open({ stream_format: 'chunked' });
    await run.output(0, Buffer.alloc(frameBytes, 1));
    await run.finish();
    const [frame, ...rest] = await reader.rest();
    expect(dataOf(frame)).toMatchObject({ is_chunked: false, total_chunks: 1, is_final: true });
    expect(rest).toEqual([done]);
  });
});

async function errorAtEnd(reader: SseReader): Promise<Record<string, unknown>> {
  const frames = await reader.rest();
  expect(frames.map(({ event }) => event)).toEqual(['error']);
  return dataOf(frames[0]);
}

/** Drops all published wake-ups. */
const silent = (hub: EventHub): EventHub => ({ ...hub, subscribe: (id) => hub.subscribe(id, () => {}) });

describe('the end of a stream', () => {
  it.each(['openai', 'chunked'])('is an error event if the request fails: %s', async (format) => {
    const { id, reader, run } = await open({ stream_format: format });
    await run.finish({ state: 'failed', error: { code: 'engine_failed', message: 'Nothing came of it.' } });
    const message = `Request ${id} failed: Nothing came of it.`;
    expect(await errorAtEnd(reader)).toEqual({
      message,
      error: { message, type: 'generation_error', code: 'engine_failed', param: null },
      request_id: id,
    });
  });

  it('is an error that names the request if the process stops, and does not cancel the request', async () => {
    const { test, id, reader } = await open({});
    const ending = errorAtEnd(reader);
    await expect.poll(() => test.hub.size).toBe(1);
    test.draining.abort();
    test.tick(drainGraceMs);
    const { message, error } = await ending;
    expect(error).toMatchObject({ code: 'server_stopping' });
    expect(message).toContain(`request ${id} continues. Fetch it by its id`);
    expect([test.hub.size, test.timers(), await stateOf(test.store, id)]).toEqual([0, 0, 'running']);
  });

  it('is a request_gone error if the results have expired', async () => {
    const { test, id, reader } = await open({}, { wrapHub: silent });
    const ending = errorAtEnd(reader);
    await expect.poll(() => test.timers()).toBe(3);
    const keys = test.store.keysOf('tiny');
    await test.store.redis.del(keys.request(id), keys.events(id));
    test.tick(checkMs);
    expect((await ending)['error']).toMatchObject({ code: 'request_gone' });
  });

  it('is preceded by heartbeat comments while the request runs', async () => {
    const { test, reader, run } = await open({});
    const next = reader.next();
    await expect.poll(() => test.timers()).toBe(3);
    test.tick(heartbeatMs);
    expect(await next).toEqual({ comment: 'heartbeat' });
    await run.finish({ state: 'failed', error: { code: 'worker_lost', message: 'The workers were lost.' } });
    expect((await errorAtEnd(reader))['error']).toMatchObject({ code: 'worker_lost' });
  });

  it('can be followed by a disconnect that cancels nothing', async () => {
    const { test, id, reader, run } = await open({});
    await run.output(0, Buffer.from('image'));
    await run.finish();
    expect((await reader.next())?.event).toBe('image_generation.completed');
    expect(await reader.next()).toEqual(done);
    await reader.cancel();
    expect([test.hub.size, test.timers(), await stateOf(test.store, id)]).toEqual([0, 0, 'succeeded']);
    expect(test.lines.join()).not.toContain('client disconnected');
  });
});

it('resumes the stream after Redis hangs, without lost or repeated events', async () => {
  const { store, goOn, runOut, hangAtOutput: wrapHub, hangs } = await openHangingRedis(300);
  const { test, reader, run } = await open({ partial_images: 3 }, { store, wrapHub, storeWaitMs: 300 });
  await run.progress(1, preview(1));
  expect(dataOf(await reader.next())).toMatchObject({ partial_image_index: 0 });
  const waiting = reader.next();
  await expect.poll(() => test.timers()).toBe(3);
  // Too large to be stored in its event.
  const writing = run.output(0, Buffer.alloc(100_000));
  await hangs;
  expect(await runOut(waiting)).toEqual({ comment: 'heartbeat' });
  const rest = reader.rest();
  await expect.poll(() => test.timers()).toBe(2);
  goOn();
  await writing;
  await run.finish();
  test.tick(checkMs);
  const frames = (await rest).map(({ event, data }) => event ?? data);
  expect(frames).toEqual(['image_generation.completed', '[DONE]']);
});

it('answers although Redis is unavailable when the wait begins', async () => {
  let failures = 0;
  const wrapHub = (hub: EventHub): EventHub => ({
    ...hub,
    async subscribe(id, listener) {
      if (failures++ === 0) throw new DarkroomError('unavailable', 'test', 'away');
      return hub.subscribe(id, listener);
    },
  });
  const test = await openTestApi({ wrapHub });
  await startWorker(test.store);
  const answering = generate(test, { prompt: 'a fox' });
  await expect.poll(() => test.timers()).toBe(2);
  const run = await runNext(test.store);
  await run.output(0, Buffer.from('image'));
  await run.finish();
  test.tick(checkMs);
  const response = await answering;
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ data: [{ b64_json: base64(Buffer.from('image')) }] });
  expect(failures).toBe(2);
});
