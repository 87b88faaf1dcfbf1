/** Bodies that bring pictures: what a model takes of them, in which size, and what is asked for in the end. */
import { describe, expect, it } from 'vitest';
import type { ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { pictureBytes } from './picture-bytes.ts';
import type { PictureAttachment, PictureCard, PictureInput } from './picture-input.ts';
import { fittingSize } from './picture-size.ts';
import { picture } from './picture.ts';
import type { ReadPictures } from './brought-pictures.ts';

const card: PictureCard = {
  id: 'tiny',
  created: 1,
  ownedBy: 'tests',
  kind: 'picture',
  pipeline: 'StableDiffusionPipeline',
  sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 96 } },
  steps: { min: 1, max: 200, default: 12 },
  guidance: { min: 1, max: 20, default: 3 },
  schedulers: ['ddim', 'euler'],
  defaultScheduler: 'ddim',
  maxPromptTokens: 77,
  takes: ['image', 'mask'],
};
const url = 'https://example.com/picture.png';

/** Reads pictures of one size, and whatever it is told of them. */
function reader(own = { width: 100, height: 200 }, names: PictureAttachment[] = ['image']) {
  const asked: object[] = [];
  const readPictures: ReadPictures = async (sources, sizeOf) => {
    asked.push({ image: sources.image, mask: sources.mask });
    return { status: 'read', size: sizeOf(own), attachments: new Map(names.map((name) => [name, new Uint8Array(1)])) };
  };
  return { asked, readPictures };
}

function resolve(
  body: object,
  { model = card, readPictures = reader().readPictures }: { model?: PictureCard; readPictures?: ReadPictures } = {},
): Promise<ResolveResult<PictureInput>> {
  const options: RequestOptions = {
    timeoutS: { default: 600, max: 3600 },
    webhooks: { allowPrivate: false, progressIntervalMs: 1000 },
    drawSeed: () => 42,
    readAsset: () => Promise.reject(new Error('pictures have none')),
    readPictures,
  };
  return Promise.resolve(picture.resolve({ prompt: 'a fox', ...body }, model, options));
}

async function inputOf(...given: Parameters<typeof resolve>): Promise<PictureInput> {
  const result = await resolve(...given);
  if (result.status === 'invalid') throw new Error(result.problems[0]!.message);
  return result.request.input;
}

async function messagesOf(...given: Parameters<typeof resolve>): Promise<string[]> {
  const result = await resolve(...given);
  return result.status === 'invalid' ? result.problems.map(({ message }) => message) : [result.status];
}

describe('a body with a picture', () => {
  it('is drawn in the size of the picture, as far as the model takes it', async () => {
    expect(await inputOf({ image: url })).toMatchObject({ width: 96, height: 192, image: true, strength: 0.8 });
    expect(await inputOf({ image: url, size: 'auto' })).toMatchObject({ width: 96, height: 192 });
    expect(await inputOf({ image: url, size: '64x64', strength: 0.5 })).toMatchObject({
      width: 64,
      height: 64,
      strength: 0.5,
    });
  });

  it('brings what was read along', async () => {
    const { asked, readPictures } = reader(undefined, ['image', 'mask']);
    const result = await resolve({ image: url, mask: 'cid:mask' }, { readPictures });
    expect(asked).toEqual([{ image: url, mask: 'cid:mask' }]);
    expect(result).toMatchObject({
      request: {
        input: { image: true, mask: true, strength: 1 },
        attachments: new Map([
          ['image', new Uint8Array(1)],
          ['mask', new Uint8Array(1)],
        ]),
      },
    });
  });

  it('has a mask where its picture says so by itself', async () => {
    const { readPictures } = reader(undefined, ['image', 'mask']);
    expect(await inputOf({ image: url }, { readPictures })).toMatchObject({ mask: true, strength: 1 });
    const model = { ...card, takes: ['image'] as const };
    expect(await messagesOf({ image: url }, { readPictures, model })).toEqual([
      'image is transparent in parts, expected an opaque picture: tiny takes no masks',
    ]);
  });

  it('is as before without one, and reads nothing', async () => {
    const { asked, readPictures } = reader();
    const input = await inputOf({}, { readPictures });
    expect(Object.keys(input)).not.toEqual(expect.arrayContaining(['image', 'mask', 'strength']));
    expect(['image' in input, 'mask' in input, 'strength' in input]).toEqual([false, false, false]);
    expect(asked).toEqual([]);
  });

  it('is told what the model does not take, before anything is read', async () => {
    const { asked, readPictures } = reader();
    const { takes: _takes, ...without } = card;
    const of = (model: PictureCard) => ({ readPictures, model });
    expect(await messagesOf({ image: url }, of(without))).toEqual([
      `image is "${url}", expected none: tiny draws from prompts only`,
    ]);
    expect(await messagesOf({ image: url, mask: url }, of({ ...card, takes: ['image'] }))).toEqual([
      `mask is "${url}", expected none: tiny takes no masks`,
    ]);
    expect(await messagesOf({ mask: url, strength: 0.5 }, of(card))).toEqual([
      `mask is "${url}", expected none without an image`,
      'strength is 0.5, expected none without an image',
    ]);
    expect(await messagesOf({ image: url, strength: 1.5 }, of(card))).toEqual([
      'strength is 1.5, expected a number from 0 to 1',
    ]);
    const expected = 'expected a picture: a data URL in base64, or an https URL';
    for (const image of ['picture.png', 'ftp://example.com/x', 'data:image/svg+xml,<svg/>', 7])
      expect(await messagesOf({ image }, of(card))).toEqual([`image is ${JSON.stringify(image)}, ${expected}`]);
    expect(asked).toEqual([]);
  });

  it('is told what is wrong with the picture', async () => {
    const problem = { field: 'image', code: 'invalid_value', message: 'image is a GIF' } as const;
    const readPictures: ReadPictures = async () => ({ status: 'invalid', problems: [problem] });
    expect(await messagesOf({ image: url }, { readPictures })).toEqual(['image is a GIF']);
  });

  it('counts the bytes of its pictures', async () => {
    const { readPictures } = reader(undefined, ['image', 'mask']);
    const { mask, ...unmasked } = await inputOf({ image: url, mask: url }, { readPictures });
    expect(mask).toBe(true);
    const { image: _image, strength: _strength, ...plain } = unmasked;
    const pixels = 96 * 192;
    expect(pictureBytes(unmasked) - pictureBytes(plain)).toBeGreaterThan(3.04 * pixels);
    expect(pictureBytes({ ...unmasked, mask: true }) - pictureBytes(unmasked)).toBeGreaterThan(pixels);
  });
});

describe('the size for a picture', () => {
  const sizes = { multiple: 32, min: 64, max: 256, default: { width: 128, height: 128 } };
  it.each([
    ['its own', [128, 96], [128, 96]],
    ['its own, less what is over a multiple', [130, 127], [128, 96]],
    ['smaller where it is too large, in its ratio', [4000, 2000], [256, 128]],
    ['to the last pixel', [3333, 1111], [256, 64]],
    ['larger where it is too small', [10, 20], [64, 128]],
    ['within the limits, whatever its ratio', [10_000, 10], [256, 64]],
    ['of one pixel', [1, 1], [64, 64]],
  ])('is %s: %j', (_what, [width = 0, height = 0], [fittingWidth, fittingHeight]) => {
    expect(fittingSize({ width, height }, sizes)).toEqual({ width: fittingWidth, height: fittingHeight });
  });

  it('is refused where its own size becomes too large to be enlarged', async () => {
    const large = { ...card, sizes: { ...card.sizes, max: 4096 }, upscales: [4] as const };
    const { readPictures } = reader({ width: 4096, height: 4096 });
    expect(await resolve({ prompt: 'x', image: url, upscale: 4 }, { model: large, readPictures })).toMatchObject({
      status: 'invalid',
      problems: [{ field: 'upscale', message: expect.stringContaining('16384x16384') }],
    });
  });
});
