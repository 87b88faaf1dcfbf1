/** The OpenAI SDK and the Vercel AI SDK against the real system. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateImage } from 'ai';
import OpenAI, { BadRequestError, NotFoundError, toFile } from 'openai';
import sharp from 'sharp';
import { expect, it } from 'vitest';
import { caller } from './caller-model.ts';
import { fetchImage, poll } from './client.ts';
import { blockWriter, imageReader, useSharedSystem, writer } from './shared-system.ts';

const model = 'emoji-sd';
const prompt = 'a red apple on a white background';
const pngStart = Buffer.from('89504e470d0a1a0a', 'hex');

const system = useSharedSystem();
const client = new OpenAI({ baseURL: `${system.url}/v1`, apiKey: 'none' });
const darkroom = createOpenAICompatible({ name: 'darkroom', baseURL: `${system.url}/v1` });

/** OpenAI SDKs add this property to responses. */
const requestIdKey = '_request_id';

function requestIdOf(answer: object): string {
  return String((answer as { [requestIdKey]?: string })[requestIdKey]);
}

const bytesOf = (base64: string | undefined): Buffer => Buffer.from(base64 ?? '', 'base64');

/** Parameters of this server that the SDK's types do not have. */
const extra = { num_inference_steps: 8, guidance_scale: 3, seed: 7, negative_prompt: 'blue' };

it('OpenAI SDK: generates images; the response id is a request id', async () => {
  const body = { ...extra, model, prompt, n: 2, size: 'auto', quality: 'auto', user: 'a user' } as const;
  const answer = await client.images.generate(body);
  const id = requestIdOf(answer);
  expect(await poll(system.url, id)).toMatchObject({ status: 'succeeded', parameters: extra });
  const files = await Promise.all([0, 1].map((index) => fetchImage(system.url, id, index)));
  expect(answer.data!.map(({ b64_json }) => bytesOf(b64_json))).toEqual(files);
  expect(files[0]!.subarray(0, 8)).toEqual(pngStart);
  expect(answer).toMatchObject({ output_format: 'png', usage: { total_tokens: 0, steps: 16, prompt_tokens_cut: 0 } });
  expect(Math.abs(answer.created - Date.now() / 1000)).toBeLessThan(3600);
});

it('OpenAI SDK: response_format url returns URLs that can be fetched', async () => {
  const images = await client.images.generate({ ...extra, prompt, response_format: 'url' });
  const response = await fetch(images.data![0]!.url!);
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png']);
});

it('OpenAI SDK: streams partial and completed images with the bytes of the unstreamed response', async () => {
  const body = { ...extra, model, prompt, n: 2, num_inference_steps: 12 };
  const { data: stream, request_id } = await client.images
    .generate({ ...body, stream: true, partial_images: 3 })
    .withResponse();
  const seen: [number, string, number | undefined, number][] = [];
  const completed: Buffer[] = [];
  const partials: string[] = [];
  for await (const event of stream) {
    const { image_index, step, ...mine } = event as typeof event & { image_index: number; step: number };
    expect(mine).toMatchObject({ size: '128x128', background: 'opaque', request_id });
    const isPartial = event.type === 'image_generation.partial_image';
    seen.push([image_index, event.type, isPartial ? event.partial_image_index : undefined, step]);
    const bytes = bytesOf(event.b64_json);
    if (isPartial) partials.push(`${event.output_format}: ${bytes.toString('hex', 0, 3)}`);
    else completed[image_index] = bytes;
  }
  expect(new Set(partials)).toEqual(new Set(['jpeg: ffd8ff']));
  for (const index of [0, 1])
    expect(seen.filter(([imageIndex]) => imageIndex === index)).toEqual([
      [index, 'image_generation.partial_image', 0, 3],
      [index, 'image_generation.partial_image', 1, 6],
      [index, 'image_generation.partial_image', 2, 9],
      [index, 'image_generation.completed', undefined, 12],
    ]);
  const answer = await client.images.generate(body);
  expect(answer.data!.map(({ b64_json }) => bytesOf(b64_json))).toEqual(completed);
});

/** Returns the mean absolute difference of two images, 0 to 255, where `isThere` holds. */
async function distance(one: Buffer, other: Buffer, isThere: (x: number, y: number) => boolean): Promise<number> {
  const [left, right] = await Promise.all(
    [one, other].map((file) => sharp(file).removeAlpha().raw().toBuffer({ resolveWithObject: true })),
  );
  const { width, height } = left!.info;
  let [sum, count] = [0, 0];
  for (let at = 0; at < width * height * 3; at++) {
    const pixel = Math.floor(at / 3);
    if (!isThere(pixel % width, Math.floor(pixel / width))) continue;
    sum += Math.abs(left!.data[at]! - right!.data[at]!);
    count++;
  }
  return sum / count;
}

const isOutside = (x: number, y: number): boolean => x < 16 || y < 16 || x >= 112 || y >= 112;
const isInside = (x: number, y: number): boolean => x >= 48 && y >= 48 && x < 80 && y < 80;

it("OpenAI SDK: inpainting changes the image inside the mask's hole only", async () => {
  const apple = bytesOf((await client.images.generate({ ...extra, model, prompt })).data![0]!.b64_json);
  const hole = Buffer.from('<svg width="128" height="128"><rect x="32" y="32" width="64" height="64"/></svg>');
  const mask = await sharp({ create: { width: 128, height: 128, channels: 4, background: '#fff' } })
    .composite([{ input: hole, blend: 'dest-out' }])
    .png()
    .toBuffer();
  const request = { ...extra, model, prompt: 'a strawberry on a white background' };
  const { data } = await client.images.edit({
    ...request,
    image: await toFile(apple, 'apple.png', { type: 'image/png' }),
    mask: await toFile(mask, 'mask.png', { type: 'image/png' }),
  });
  const edited = bytesOf(data![0]!.b64_json);
  const [outside, inside] = [await distance(apple, edited, isOutside), await distance(apple, edited, isInside)];
  expect(outside).toBeLessThan(inside / 3);
});

it('OpenAI SDK: edits an image by strength, and varies it', async () => {
  const apple = bytesOf((await client.images.generate({ ...extra, model, prompt })).data![0]!.b64_json);
  const file = (): ReturnType<typeof toFile> => toFile(apple, 'apple.png', { type: 'image/png' });
  const request = { ...extra, seed: 8, model, prompt: 'a strawberry on a white background' };
  const far: number[] = [];
  for (const strength of [0.2, 0.9]) {
    const { data } = await client.images.edit({ ...request, image: await file(), strength } as never);
    far.push(await distance(apple, bytesOf(data![0]!.b64_json), () => true));
  }
  expect(far[0]!).toBeLessThan(far[1]!);
  const varied = await client.images.createVariation({ image: await file(), response_format: 'b64_json' });
  expect(bytesOf(varied.data![0]!.b64_json).subarray(0, 8)).toEqual(pngStart);
});

it('OpenAI SDK: reports errors by parameter and code', async () => {
  const invalid = client.images.generate({ ...extra, prompt, num_inference_steps: 0 } as never);
  await expect(invalid).rejects.toBeInstanceOf(BadRequestError);
  await expect(invalid).rejects.toMatchObject({ status: 400, param: 'num_inference_steps', code: 'invalid_value' });
  const missing = client.images.generate({ prompt, model: 'dall-e-3' });
  await expect(missing).rejects.toBeInstanceOf(NotFoundError);
  await expect(missing).rejects.toMatchObject({ code: 'model_not_found', param: 'model' });
});

it('OpenAI SDK: lists models', async () => {
  const { data } = await client.models.list();
  const all = [imageReader, model, writer, caller, blockWriter];
  expect(data).toMatchObject(all.map((id) => ({ id, object: 'model' })));
  expect(await client.models.retrieve(model)).toMatchObject({ id: model });
});

it('OpenAI SDK: leaving a stream cancels the running request', async () => {
  const { data: stream, request_id } = await client.images
    .generate({ prompt, stream: true, partial_images: 3, num_inference_steps: 60, n: 4 } as never)
    .withResponse();
  for await (const event of stream as unknown as AsyncIterable<{ type: string }>) {
    expect(event.type).toBe('image_generation.partial_image');
    break;
  }
  await expect.poll(() => poll(system.url, request_id!)).toMatchObject({ status: 'canceled' });
});

it('Vercel AI SDK: generates images, with parameters of this server', async () => {
  const { images, responses } = await generateImage({
    model: darkroom.imageModel(model),
    prompt,
    n: 2,
    size: '128x128',
    providerOptions: { darkroom: extra },
  });
  const id = responses[0]!.headers!['x-request-id']!;
  expect(await poll(system.url, id)).toMatchObject({ status: 'succeeded', parameters: extra });
  const files = await Promise.all([0, 1].map((index) => fetchImage(system.url, id, index)));
  expect(images.map(({ uint8Array }) => Buffer.from(uint8Array))).toEqual(files);
  expect(images[0]!.mediaType).toBe('image/png');
});

it('Vercel AI SDK: reports an unknown model', async () => {
  const failing = generateImage({ model: darkroom.imageModel('sdxl'), prompt });
  await expect(failing).rejects.toMatchObject({
    statusCode: 404,
    message: expect.stringContaining('expected one of'),
  });
});
