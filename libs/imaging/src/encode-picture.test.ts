import { outputFormats } from '@darkroom/kinds';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { encodePicture, encodePreview } from './encode-picture.ts';

function gradient(width: number, height: number) {
  const data = new Uint8Array(width * height * 3);
  for (let index = 0; index < data.length; index++) data[index] = (index * 7) % 256;
  return { data, facts: { width, height, seed: 1 } };
}

describe('encoding', () => {
  it.each(outputFormats)('writes %s that says its size, and the same bytes each time', async (outputFormat) => {
    const options = { outputFormat, outputCompression: 100 };
    const picture = await encodePicture(gradient(64, 32), options);
    expect(picture.contentType).toBe(`image/${outputFormat}`);
    expect(await sharp(picture.data).metadata()).toMatchObject({ format: outputFormat, width: 64, height: 32 });
    expect(await encodePicture(gradient(64, 32), options)).toEqual(picture);
  });

  it('keeps every pixel in png', async () => {
    const raw = gradient(64, 32);
    const { data } = await encodePicture(raw, { outputFormat: 'png', outputCompression: 0 });
    expect(new Uint8Array(await sharp(data).raw().toBuffer())).toEqual(raw.data);
  });

  it('chooses a filter for each line of png, and takes the level', async () => {
    // Each line is the one above, one brighter: nothing to a filter that looks up.
    const [width, height] = [128, 128];
    const noise = Array.from({ length: width * 3 }, (_value, at) => (at * at * 7919) % 251);
    const data = Uint8Array.from({ length: width * height * 3 }, (_value, at) => {
      return noise[at % noise.length]! + Math.floor(at / noise.length);
    });
    const sizeAt = async (pngLevel?: number): Promise<number> => {
      const options = { outputFormat: 'png', outputCompression: 100, ...(pngLevel && { pngLevel }) } as const;
      return (await encodePicture({ data, facts: { width, height } }, options)).data.length;
    };
    expect(await sizeAt()).toBeLessThan(width * 3 + 1000);
    expect(await sizeAt(9)).toBeLessThan(await sizeAt(1));
  });

  it.each(['jpeg', 'webp'] as const)('takes the compression as the quality of %s', async (outputFormat) => {
    const sizes: number[] = [];
    for (const outputCompression of [0, 50, 100])
      sizes.push((await encodePicture(gradient(64, 64), { outputFormat, outputCompression })).data.length);
    expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
    expect(new Set(sizes).size).toBe(3);
  });

  it('enlarges previews four times', async () => {
    const { data, contentType } = await encodePreview({
      data: gradient(16, 20).data,
      facts: { width: 16, height: 20 },
    });
    expect(contentType).toBe('image/jpeg');
    expect(await sharp(data).metadata()).toMatchObject({ format: 'jpeg', width: 64, height: 80 });
    expect(data.length).toBeLessThan(8000);
  });

  it('refuses what is not a picture', async () => {
    const text = { data: new Uint8Array(5), facts: {} };
    await expect(encodePreview(text)).rejects.toThrow('is not an RGB picture');
  });
});
