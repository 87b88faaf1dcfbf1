/** The OpenAI SDK with input images, on an API whose worker is played by the test. */
import { type ImageInput, seedOfImage } from '@darkroom/kinds';
import { readAttachments, readRequest } from '@darkroom/store';
import OpenAI, { BadRequestError, toFile } from 'openai';
import sharp, { type Sharp } from 'sharp';
import { describe, expect, it, vi } from 'vitest';
import { runNext, startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { onlyId, storedIds } from '../../apps/api/src/testing/generate.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { dataUrl, endsOf, halfClear, openImageApi, plain, pngOf } from '../../apps/api/src/testing/images.ts';
import type { TestApi } from '../../apps/api/src/testing/test-api.ts';
import { postJson } from '../e2e/client.ts';

const prompt = 'a strawberry on the same background';

async function open() {
  const test = await openImageApi();
  await startWorker(test.store);
  const { url } = await listen(test);
  return { test, url, client: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 }) };
}

const fileOf = async (image: Sharp, name = 'image.png') => toFile(await pngOf(image), name, { type: 'image/png' });

/** Runs the next queued request to its end. */
async function draw({ store }: TestApi): Promise<void> {
  const run = await vi.waitFor(() => runNext(store), { timeout: 10_000 });
  await run.progress(2, Buffer.from('preview'));
  for (let index = 0; index < run.count; index++) await run.output(index, Buffer.from(`image ${index}`));
  await run.finish();
}

/** Returns the validated input and the attachments of a request. */
async function readInput({ store }: TestApi, id: string) {
  const found = await readRequest(store, id);
  if (found.status !== 'found') throw new Error(found.status);
  return { input: found.request.input as ImageInput, attachments: await readAttachments(store, id) };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('images.edit', () => {
  it('repaints where the mask is transparent', async () => {
    const { test, client } = await open();
    const image = await fileOf(plain(128, 64));
    const mask = await fileOf(halfClear(128, 64), 'mask.png');
    const answering = client.images.edit({ image, mask, prompt, n: 2, size: 'auto', user: 'me', quality: 'auto' });
    const id = await onlyId(test.store);
    await draw(test);
    const { data } = await answering;
    expect(data?.map(({ b64_json }) => b64_json)).toEqual([base64('image 0'), base64('image 1')]);
    const { input, attachments } = await readInput(test, id);
    expect(input).toMatchObject({
      width: 128,
      height: 64,
      n: 2,
      image: true,
      mask: true,
      strength: 1,
      previewEvery: 0,
    });
    expect(await endsOf(attachments.get('mask')!)).toEqual([255, 0]);
  });

  it('without a mask, repaints where the image is transparent, or all of an opaque image', async () => {
    const { test, client } = await open();
    const answering = client.images.edit({ image: [await fileOf(halfClear(64, 64))], prompt });
    const id = await onlyId(test.store);
    await draw(test);
    await answering;
    const { input, attachments } = await readInput(test, id);
    expect(input).toMatchObject({ mask: true, strength: 1 });
    expect(await endsOf(attachments.get('mask')!)).toEqual([255, 0]);
    const again = client.images.edit({ image: await fileOf(plain(64, 64)), prompt, response_format: 'url' });
    await draw(test);
    expect((await again).data?.[0]?.url).toMatch(/^http:.*\/images\/0$/);
    const next = (await storedIds(test.store)).find((other) => other !== id)!;
    const opaque = await readInput(test, next);
    expect([opaque.input.strength, [...opaque.attachments.keys()]]).toEqual([0.8, ['image']]);
  });

  it('streams image_edit.partial_image and image_edit.completed', async () => {
    const { test, client } = await open();
    const image = await fileOf(plain(64, 64));
    const stream = await client.images.edit({ image, prompt, stream: true, partial_images: 1 });
    await draw(test);
    const seen: string[] = [];
    for await (const event of stream) seen.push(event.type);
    expect(seen).toEqual(['image_edit.partial_image', 'image_edit.completed']);
  });

  it('accepts image URLs in a JSON body', async () => {
    const { test, url } = await open();
    const images = [{ image_url: await dataUrl(plain(64, 64)) }];
    const mask = { image_url: await dataUrl(halfClear(64, 64)) };
    const send = (body: object): Promise<Response> => postJson(`${url}/v1/images/edits`, { prompt, ...body });
    const answering = send({ images, mask });
    const id = await onlyId(test.store);
    await draw(test);
    expect((await answering).status).toBe(200);
    expect((await readInput(test, id)).input).toMatchObject({ image: true, mask: true });
    const messageOf = async (body: object): Promise<string> =>
      ((await (await send(body)).json()) as { message: string }).message;
    expect(await messageOf({ images: [{ file_id: 'file-1' }] })).toMatch(/^images is .*, expected a list of one /);
    expect(await messageOf({ images: [...images, ...images] })).toMatch(/^images is .*, expected a list of one /);
    expect(await messageOf({ images, mask: { file_id: 'file-1' } })).toMatch(/^mask is .*, expected \{"image_url"/);
    expect(await messageOf({ images, image: 'x' })).toMatch(/^images is .*, expected none beside image$/);
    expect(await messageOf({})).toBe('image is missing, expected an image: a file of a form, or a URL');
  });

  it('reports errors of images by field', async () => {
    const { test, client } = await open();
    const image = await fileOf(plain(64, 64));
    const refusalOf = async (body: object): Promise<unknown[]> => {
      const error: unknown = await client.images.edit({ image, prompt, ...body }).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(BadRequestError);
      const { param, message } = error as BadRequestError;
      return [param, message.replace('400 ', '')];
    };
    expect(await refusalOf({ mask: await fileOf(plain(64, 64)) })).toEqual([
      'mask',
      'mask is fully opaque, expected an image that is transparent where to paint',
    ]);
    expect(await refusalOf({ mask: await fileOf(halfClear(96, 64)) })).toEqual([
      'mask',
      'mask is 96x64, expected 64x64, which is the size of image',
    ]);
    expect(await refusalOf({ image: await toFile(Buffer.from('<svg/>'), 'x.svg', { type: 'image/svg+xml' }) })).toEqual(
      ['image', 'image is an SVG, expected a PNG, JPEG or WebP image'],
    );
    expect(await refusalOf({ image: [image, image] })).toEqual(['image', 'image appears more than once, expected one']);
    expect(await refusalOf({ input_fidelity: 'high' })).toEqual([
      'input_fidelity',
      'input_fidelity is "high", expected low (strength sets how far the image may change)',
    ]);
    expect(await storedIds(test.store)).toEqual([]);
  });
});

describe('images.createVariation', () => {
  it('varies an image without a prompt', async () => {
    const { test, client } = await open();
    const image = await fileOf(plain(128, 128));
    const answering = client.images.createVariation({ image, n: 2, size: '256x256', response_format: 'b64_json' });
    const id = await onlyId(test.store);
    await draw(test);
    expect((await answering).data).toHaveLength(2);
    const { input, attachments } = await readInput(test, id);
    expect(input).toMatchObject({ prompt: ' ', width: 256, height: 256, n: 2, strength: 0.8 });
    expect(await sharp(attachments.get('image')).metadata()).toMatchObject({ width: 256, height: 256 });
    expect(seedOfImage(input.seed, 1)).toBe(43);
  });
});
