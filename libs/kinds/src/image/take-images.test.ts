/** Bodies with input images: validation, the output size and the resolved input. */
import { imageCard, requestPolicy } from '@darkroom/testing';
import { describe, expect, it } from 'vitest';
import type { ResolveResult } from '../request/kind.ts';
import type { ImageAttachment, ImageCard, ImageInput } from './image-input.ts';
import { imageKind } from './image.ts';
import { fittingSize } from './take-images.ts';
import type { ReadImages } from '../request/brought-images.ts';

const card: ImageCard = {
  ...imageCard,
  sizes: { multiple: 32, min: 64, max: 256, default: { width: 128, height: 96 } },
  takes: ['image', 'mask'],
};
const url = 'https://example.com/image.png';

/** Returns a fake image loader for images of one size, which records its calls. */
function reader(own = { width: 100, height: 200 }, names: ImageAttachment[] = ['image']) {
  const calls: object[] = [];
  const readImages: ReadImages = async (sources, sizeOf) => {
    calls.push({ image: sources.image, mask: sources.mask });
    return { status: 'read', size: sizeOf(own), attachments: new Map(names.map((name) => [name, new Uint8Array(1)])) };
  };
  return { calls, readImages };
}

function resolve(
  body: object,
  { model = card, readImages = reader().readImages }: { model?: ImageCard; readImages?: ReadImages } = {},
): Promise<ResolveResult<ImageInput>> {
  const options = { ...requestPolicy, readImages };
  return Promise.resolve(imageKind.resolve({ prompt: 'a fox', ...body }, model, options));
}

async function inputOf(...given: Parameters<typeof resolve>): Promise<ImageInput> {
  const result = await resolve(...given);
  if (result.status === 'invalid') throw new Error(result.problems[0]!.message);
  return result.request.input;
}

async function messagesOf(...given: Parameters<typeof resolve>): Promise<string[]> {
  const result = await resolve(...given);
  return result.status === 'invalid' ? result.problems.map(({ message }) => message) : [result.status];
}

describe('a body with an input image', () => {
  it('has the size of the image, within the limits of the model', async () => {
    expect(await inputOf({ image: url })).toMatchObject({ width: 96, height: 192, image: true, strength: 0.8 });
    expect(await inputOf({ image: url, size: 'auto' })).toMatchObject({ width: 96, height: 192 });
    expect(await inputOf({ image: url, size: '64x64', strength: 0.5 })).toMatchObject({
      width: 64,
      height: 64,
      strength: 0.5,
    });
  });

  it('has the loaded images as attachments', async () => {
    const { calls, readImages } = reader(undefined, ['image', 'mask']);
    const result = await resolve({ image: url, mask: 'cid:mask' }, { readImages });
    expect(calls).toEqual([{ image: url, mask: 'cid:mask' }]);
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

  it('has a mask if its image has transparency', async () => {
    const { readImages } = reader(undefined, ['image', 'mask']);
    expect(await inputOf({ image: url }, { readImages })).toMatchObject({ mask: true, strength: 1 });
    const model = { ...card, takes: ['image'] as const };
    expect(await messagesOf({ image: url }, { readImages, model })).toEqual([
      'image is partly transparent, expected an opaque image: tiny takes no masks',
    ]);
  });

  it('has no image fields and loads nothing without an image', async () => {
    const { calls, readImages } = reader();
    const input = await inputOf({}, { readImages });
    expect(Object.keys(input)).not.toEqual(expect.arrayContaining(['image', 'mask', 'strength']));
    expect(['image' in input, 'mask' in input, 'strength' in input]).toEqual([false, false, false]);
    expect(calls).toEqual([]);
  });

  it('is rejected before loading if the model does not support it', async () => {
    const { calls, readImages } = reader();
    const { takes: _takes, ...without } = card;
    const of = (model: ImageCard) => ({ readImages, model });
    expect(await messagesOf({ image: url }, of(without))).toEqual([
      `image is "${url}", expected none: tiny draws from prompts only`,
    ]);
    expect(await messagesOf({ image: url, mask: url }, of({ ...card, takes: ['image'] }))).toEqual([
      `mask is "${url}", expected none: tiny takes no masks`,
    ]);
    expect(await messagesOf({ mask: url, strength: 0.5 }, of(card))).toEqual([
      `mask is "${url}", expected an image too: mask needs an image`,
      'strength is 0.5, expected an image too: strength needs an image',
    ]);
    expect(await messagesOf({ image: url, strength: 1.5 }, of(card))).toEqual([
      'strength is 1.5, expected a number from 0 to 1',
    ]);
    const expected = 'expected an image: a data URL in base64, or an https URL';
    for (const image of ['image.png', 'ftp://example.com/x', 'data:image/svg+xml,<svg/>', 7])
      expect(await messagesOf({ image }, of(card))).toEqual([`image is ${JSON.stringify(image)}, ${expected}`]);
    expect(calls).toEqual([]);
  });

  it('is rejected with the problem of the image', async () => {
    const problem = { field: 'image', code: 'invalid_value', message: 'image is a GIF' } as const;
    const readImages: ReadImages = async () => ({ status: 'invalid', problems: [problem] });
    expect(await messagesOf({ image: url }, { readImages })).toEqual(['image is a GIF']);
  });
});

describe('the output size for an input image', () => {
  const sizes = { multiple: 32, min: 64, max: 256, default: { width: 128, height: 128 } };
  it.each([
    ['its own', [128, 96], [128, 96]],
    ['its own, rounded down to a multiple', [130, 127], [128, 96]],
    ['scaled down if too large, with its aspect ratio', [4000, 2000], [256, 128]],
    ['exact to the pixel', [3333, 1111], [256, 64]],
    ['scaled up if too small', [10, 20], [64, 128]],
    ['within the limits for any aspect ratio', [10_000, 10], [256, 64]],
    ['of one pixel', [1, 1], [64, 64]],
  ])('is %s: %j', (_what, [width = 0, height = 0], [fittingWidth, fittingHeight]) => {
    expect(fittingSize({ width, height }, sizes)).toEqual({ width: fittingWidth, height: fittingHeight });
  });

  it('is rejected if it is too large to be upscaled', async () => {
    const large = { ...card, sizes: { ...card.sizes, max: 4096 }, upscales: [4] as const };
    const { readImages } = reader({ width: 4096, height: 4096 });
    expect(await resolve({ prompt: 'x', image: url, upscale: 4 }, { model: large, readImages })).toMatchObject({
      status: 'invalid',
      problems: [{ field: 'upscale', message: expect.stringContaining('16384x16384') }],
    });
  });
});
