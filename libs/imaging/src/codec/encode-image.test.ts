import { outputFormats } from '@darkroom/kinds';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { encodeImage, encodePreview } from './encode-image.ts';

function gradient(width: number, height: number) {
  const data = new Uint8Array(width * height * 3);
  for (let index = 0; index < data.length; index++) data[index] = (index * 7) % 256;
  return { data, facts: { width, height, seed: 1 } };
}

describe('encoding', () => {
  it.each(outputFormats)(
    'writes %s with its size in the header, and the same bytes each time',
    async (outputFormat) => {
      const options = { outputFormat, outputCompression: 100 };
      const image = await encodeImage(gradient(64, 32), options);
      expect(image.contentType).toBe(`image/${outputFormat}`);
      expect(await sharp(image.data).metadata()).toMatchObject({ format: outputFormat, width: 64, height: 32 });
      expect(await encodeImage(gradient(64, 32), options)).toEqual(image);
    },
  );

  it('preserves every pixel in png', async () => {
    const raw = gradient(64, 32);
    const { data } = await encodeImage(raw, { outputFormat: 'png', outputCompression: 0 });
    expect(new Uint8Array(await sharp(data).raw().toBuffer())).toEqual(raw.data);
  });

  it('uses adaptive filters for png', async () => {
    // Each row equals the one above plus one: constant after a filter that subtracts the row above.
    const [width, height] = [128, 128];
    const noise = Array.from({ length: width * 3 }, (_value, at) => (at * at * 7919) % 251);
    const data = Uint8Array.from({ length: width * height * 3 }, (_value, at) => {
      return noise[at % noise.length]! + Math.floor(at / noise.length);
    });
    const options = { outputFormat: 'png', outputCompression: 100 } as const;
    const file = await encodeImage({ data, facts: { width, height } }, options);
    expect(file.data.length).toBeLessThan(width * 3 + 1000);
  });

  it.each(['jpeg', 'webp'] as const)('uses the compression as the quality of %s', async (outputFormat) => {
    const sizes: number[] = [];
    for (const outputCompression of [0, 50, 100])
      sizes.push((await encodeImage(gradient(64, 64), { outputFormat, outputCompression })).data.length);
    expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
    expect(new Set(sizes).size).toBe(3);
  });

  it('upscales previews four times', async () => {
    const { data, contentType } = await encodePreview({
      data: gradient(16, 20).data,
      facts: { width: 16, height: 20 },
    });
    expect(contentType).toBe('image/jpeg');
    expect(await sharp(data).metadata()).toMatchObject({ format: 'jpeg', width: 64, height: 80 });
    expect(data.length).toBeLessThan(8000);
  });

  it('refuses data that is not an image', async () => {
    const text = { data: new Uint8Array(5), facts: {} };
    await expect(encodePreview(text)).rejects.toThrow('is not an RGB image');
  });
});
