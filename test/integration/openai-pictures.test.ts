/** OpenAI's SDK as it comes, with pictures to begin with, on an API whose worker is played. */
import { type PictureInput, seedOfPicture } from '@darkroom/kinds';
import { readAttachments, readRequest } from '@darkroom/store';
import OpenAI, { BadRequestError, toFile } from 'openai';
import sharp, { type Sharp } from 'sharp';
import { describe, expect, it, vi } from 'vitest';
import { runNext, startWorker } from '../../apps/api/src/testing/fake-worker.ts';
import { onlyId, storedIds } from '../../apps/api/src/testing/generate.ts';
import { listen } from '../../apps/api/src/testing/listen.ts';
import { dataUrl, endsOf, halfClear, openPictureApi, plain, pngOf } from '../../apps/api/src/testing/pictures.ts';
import type { TestApi } from '../../apps/api/src/testing/test-api.ts';

const prompt = 'a strawberry on the same background';

async function open() {
  const test = await openPictureApi();
  await startWorker(test.store);
  const { url } = await listen(test);
  return { test, url, client: new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0 }) };
}

const fileOf = async (picture: Sharp, name = 'picture.png') =>
  toFile(await pngOf(picture), name, { type: 'image/png' });

/** Draws what waits, for whoever waits for it. */
async function draw({ store }: TestApi): Promise<void> {
  const run = await vi.waitFor(() => runNext(store), { timeout: 10_000 });
  await run.progress(2, Buffer.from('preview'));
  for (let index = 0; index < run.count; index++) await run.output(index, Buffer.from(`picture ${index}`));
  await run.finish();
}

/** What an answer was made of. */
async function askedOf({ store }: TestApi, id: string) {
  const found = await readRequest(store, id);
  if (found.status !== 'found') throw new Error(found.status);
  return { input: found.request.input as PictureInput, attachments: await readAttachments(store, id) };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('images.edit', () => {
  it('paints anew what is transparent in the mask', async () => {
    const { test, client } = await open();
    const image = await fileOf(plain(128, 64));
    const mask = await fileOf(halfClear(128, 64), 'mask.png');
    const answering = client.images.edit({ image, mask, prompt, n: 2, size: 'auto', user: 'me', quality: 'auto' });
    const id = await onlyId(test.store);
    await draw(test);
    const { data } = await answering;
    expect(data?.map(({ b64_json }) => b64_json)).toEqual([base64('picture 0'), base64('picture 1')]);
    const { input, attachments } = await askedOf(test, id);
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

  it('paints anew what is transparent in the picture, where there is no mask, and all of it where nothing is', async () => {
    const { test, client } = await open();
    const answering = client.images.edit({ image: [await fileOf(halfClear(64, 64))], prompt });
    const id = await onlyId(test.store);
    await draw(test);
    await answering;
    const { input, attachments } = await askedOf(test, id);
    expect(input).toMatchObject({ mask: true, strength: 1 });
    expect(await endsOf(attachments.get('mask')!)).toEqual([255, 0]);
    const again = client.images.edit({ image: await fileOf(plain(64, 64)), prompt, response_format: 'url' });
    await draw(test);
    expect((await again).data?.[0]?.url).toMatch(/^http:.*\/images\/0$/);
    const next = (await storedIds(test.store)).find((other) => other !== id)!;
    const opaque = await askedOf(test, next);
    expect([opaque.input.strength, [...opaque.attachments.keys()]]).toEqual([0.8, ['image']]);
  });

  it('streams partial pictures and pictures, under the names that edits have', async () => {
    const { test, client } = await open();
    const image = await fileOf(plain(64, 64));
    const stream = await client.images.edit({ image, prompt, stream: true, partial_images: 1 });
    await draw(test);
    const seen: string[] = [];
    for await (const event of stream) seen.push(event.type);
    expect(seen).toEqual(['image_edit.partial_image', 'image_edit.completed']);
  });

  it('takes references in JSON', async () => {
    const { test, url } = await open();
    const images = [{ image_url: await dataUrl(plain(64, 64)) }];
    const mask = { image_url: await dataUrl(halfClear(64, 64)) };
    const send = (body: object): Promise<Response> =>
      fetch(`${url}/v1/images/edits`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ prompt, ...body }),
      });
    const answering = send({ images, mask });
    const id = await onlyId(test.store);
    await draw(test);
    expect((await answering).status).toBe(200);
    expect((await askedOf(test, id)).input).toMatchObject({ image: true, mask: true });
    const messageOf = async (body: object): Promise<string> =>
      ((await (await send(body)).json()) as { message: string }).message;
    expect(await messageOf({ images: [{ file_id: 'file-1' }] })).toMatch(/^images is .*, expected a list of one /);
    expect(await messageOf({ images: [...images, ...images] })).toMatch(/^images is .*, expected a list of one /);
    expect(await messageOf({ images, mask: { file_id: 'file-1' } })).toMatch(/^mask is .*, expected \{"image_url"/);
    expect(await messageOf({ images, image: 'x' })).toMatch(/^images is .*, expected none beside image$/);
    expect(await messageOf({})).toBe('image is missing, expected a picture: a file of a form, or its URL');
  });

  it('is told what is wrong with the pictures, by the field', async () => {
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
      'mask is opaque everywhere, expected a picture that is transparent where to paint anew',
    ]);
    expect(await refusalOf({ mask: await fileOf(halfClear(96, 64)) })).toEqual([
      'mask',
      'mask is 96x64, expected 64x64, which is the size of image',
    ]);
    expect(await refusalOf({ image: await toFile(Buffer.from('<svg/>'), 'x.svg', { type: 'image/svg+xml' }) })).toEqual(
      ['image', 'image is an SVG, expected a PNG, JPEG or WebP picture'],
    );
    expect(await refusalOf({ image: [image, image] })).toEqual(['image', 'image comes more than once, expected one']);
    expect(await refusalOf({ input_fidelity: 'high' })).toEqual([
      'input_fidelity',
      'input_fidelity is "high", expected low (strength says how much of the picture stays)',
    ]);
    expect(await storedIds(test.store)).toEqual([]);
  });
});

describe('images.createVariation', () => {
  it('draws others like the picture, without a prompt', async () => {
    const { test, client } = await open();
    const image = await fileOf(plain(128, 128));
    const answering = client.images.createVariation({ image, n: 2, size: '256x256', response_format: 'b64_json' });
    const id = await onlyId(test.store);
    await draw(test);
    expect((await answering).data).toHaveLength(2);
    const { input, attachments } = await askedOf(test, id);
    expect(input).toMatchObject({ prompt: ' ', width: 256, height: 256, n: 2, strength: 0.8 });
    expect(await sharp(attachments.get('image')).metadata()).toMatchObject({ width: 256, height: 256 });
    expect(seedOfPicture(input.seed, 1)).toBe(43);
  });
});
