/** The npm package `@fal-ai/client` against the running system. */
import { ApiError, createFalClient, type QueueStatus, ValidationError } from '@fal-ai/client';
import { publishModel } from '@darkroom/store';
import { expect, it, onTestFinished } from 'vitest';
import { card } from '../../apps/api/src/testing/test-api.ts';
import { make, fetchImage, poll } from './client.ts';
import { useSharedSystem } from './shared-system.ts';

const endpoint = 'darkroom/emoji-sd';
const prompt = 'a red apple on a white background';
const system = useSharedSystem();
const fal = createFalClient({ credentials: 'id:secret', proxyUrl: { url: `${system.url}/fal/proxy`, when: 'always' } });

interface Images {
  images: { url: string; width: number; height: number; content_type: string; file_size: number }[];
  seed: number;
  prompt: string;
  timings: { inference: number };
}

async function bytesOf(url: string): Promise<Buffer> {
  const response = await fetch(url);
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

async function rejection(work: Promise<unknown>): Promise<ApiError<{ detail: unknown; error_type: string }>> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError<{ detail: unknown; error_type: string }>;
}

it('fal client: submits, polls, and fetches the same images as the native route', async () => {
  const input = { prompt, num_images: 2, num_inference_steps: 4, seed: 7, image_size: { width: 96, height: 64 } };
  const queued = await fal.queue.submit(endpoint, { input });
  const id = queued.request_id;
  expect(queued).toEqual({
    status: 'IN_QUEUE',
    request_id: id,
    queue_position: 0,
    response_url: `${system.url}/fal/queue/${endpoint}/requests/${id}`,
    status_url: `${system.url}/fal/queue/${endpoint}/requests/${id}/status`,
    cancel_url: `${system.url}/fal/queue/${endpoint}/requests/${id}/cancel`,
  });
  const done = await fal.queue.subscribeToStatus(endpoint, { requestId: id, pollInterval: 20 });
  expect(done).toMatchObject({
    status: 'COMPLETED',
    request_id: id,
    metrics: { inference_time: expect.any(Number) },
  });
  const { data, requestId } = await fal.queue.result(endpoint, { requestId: id });
  expect(requestId).toBe(id);
  const { images, ...rest } = data as Images;
  expect(rest).toEqual({ seed: 7, prompt, timings: { inference: expect.any(Number) } });
  for (const [index, image] of images.entries()) {
    const bytes = await bytesOf(image.url);
    expect(bytes.equals(await fetchImage(system.url, id, index))).toBe(true);
    expect(image).toMatchObject({ width: 96, height: 64, content_type: 'image/png', file_size: bytes.length });
  }
  expect(images).toHaveLength(2);
  const native = { prompt, num_inference_steps: 4, seed: 8, size: '96x64' };
  expect((await make(system.url, native)).equals(await bytesOf(images[1]!.url))).toBe(true);
  // The URLs of the response also work without the client.
  expect(await (await fetch(queued.response_url)).json()).toEqual(data);
  expect(await (await fetch(queued.status_url)).json()).toMatchObject({ status: 'COMPLETED' });
});

it.each(['polling', 'streaming'] as const)('fal client: subscribes by %s, with updates and logs', async (mode) => {
  const updates: QueueStatus[] = [];
  let enqueued = '';
  const { data, requestId } = await fal.subscribe(endpoint, {
    // Long enough for a poll to see it running.
    input: { prompt, num_inference_steps: 80, output_format: 'webp', scheduler: 'DPM++ 2M' },
    mode,
    ...(mode === 'polling' && { pollInterval: 20 }),
    logs: true,
    onEnqueue: (id) => (enqueued = id),
    onQueueUpdate: (status) => updates.push(status),
  });
  expect(requestId).toBe(enqueued);
  expect((data as Images).images).toMatchObject([{ content_type: 'image/webp' }]);
  expect(await poll(system.url, requestId)).toMatchObject({ parameters: { scheduler: 'dpmpp_2m' } });
  const seen = new Set(updates.map(({ status }) => status));
  expect([...seen]).toEqual(['IN_QUEUE', 'IN_PROGRESS', 'COMPLETED'].filter((name) => seen.has(name as 'IN_QUEUE')));
  expect(seen).toContain('IN_PROGRESS');
  const last = updates.at(-1)!;
  expect(last.status).toBe('COMPLETED');
  const messages = 'logs' in last ? last.logs.map(({ message }) => message) : [];
  expect(messages.at(-1)).toBe('100%|████████████████████| 80/80');
});

it('fal client: run returns the result without the queue', async () => {
  const { data, requestId } = await fal.run(endpoint, { input: { prompt, num_inference_steps: 3, seed: 5 } });
  const [image] = (data as Images).images;
  expect((await bytesOf(image!.url)).equals(await fetchImage(system.url, requestId))).toBe(true);
});

it('fal client: streams previews, then the result', async () => {
  const stream = await fal.stream(endpoint, { input: { prompt, num_inference_steps: 11 } });
  const seen: Images[] = [];
  for await (const item of stream) seen.push(item as Images);
  const result = (await stream.done()) as Images;
  expect(seen.map(({ images }) => images[0]!.url.slice(0, 16))).toEqual([
    'data:image/jpeg;',
    'data:image/jpeg;',
    result.images[0]!.url.slice(0, 16),
  ]);
  const bytes = await bytesOf(result.images[0]!.url);
  expect(bytes.equals(await fetchImage(system.url, stream.requestId ?? ''))).toBe(true);
});

it('fal client: reports validation errors by field', async () => {
  const input = { prompt, num_images: 20, guidance: 3 };
  const error = (await rejection(fal.subscribe(endpoint, { input }))) as unknown as ValidationError;
  expect(error).toBeInstanceOf(ValidationError);
  expect(error.getFieldErrors('num_images')).toEqual([
    {
      loc: ['body', 'num_images'],
      msg: 'num_images is 20, expected a whole number from 1 to 10',
      type: 'value_error',
    },
  ]);
  expect(error.getFieldErrors('guidance')).toMatchObject([{ type: 'extra_forbidden' }]);
  expect(error.message).toContain('guidance is not a field, did you mean guidance_scale?');
  const large = await rejection(fal.run(endpoint, { input: { prompt, image_size: 'square_hd' } }));
  expect(large.message).toMatch(/^image_size is "1024x1024", expected each side a multiple of \d+ from \d+ to \d+$/);
});

it('fal client: an unknown model is a 404', async () => {
  const error = await rejection(fal.queue.submit('fal-ai/fast-sdxl', { input: { prompt } }));
  expect(error).toMatchObject({
    status: 404,
    message: 'model "fast-sdxl" was not found, expected one of emoji-sd',
    body: { error_type: 'model_not_found' },
  });
});

it('fal client: reports a request that exceeds startTimeout as a user timeout', async () => {
  const id = 'without-worker';
  await publishModel(system.store, { ...card, id });
  onTestFinished(async () => void (await system.store.redis.hdel(`${system.prefix}:models`, id)));
  const error = await rejection(
    fal.subscribe(`darkroom/${id}`, { input: { prompt }, startTimeout: 1.1, pollInterval: 20 }),
  );
  expect(error).toMatchObject({ status: 504, isUserTimeout: true });
});
