/** Tests clients' image files: supported formats, orientation and fitting, and refusals before decoding. */
import { crc32, deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';
import { describe, expect, it } from 'vitest';
import { fitImage, type FittedImage, readImage, type SourceImage } from './fit-image.ts';

const limits = { maxPixels: 1_000_000 };
const red = { r: 255, g: 0, b: 0 };

/** Draws an image that is red on the left and blue on the right. */
function halves(width: number, height: number): Sharp {
  const blue = { create: { width: width / 2, height, channels: 3, background: '#00f' } } as const;
  return sharp({ create: { width, height, channels: 3, background: red } }).composite([
    { input: blue, left: width / 2, top: 0 },
  ]);
}

async function read(bytes: Uint8Array): Promise<SourceImage> {
  const source = await readImage(bytes, limits);
  if (source.status !== 'read') throw new Error(`${source.received}, expected ${source.expected}`);
  return source;
}

const parts = ['image', 'grey', 'transparency'] as const;

async function fit(bytes: Uint8Array, width: number, height: number): Promise<FittedImage> {
  const fitted = await fitImage(await read(bytes), { size: { width, height }, parts });
  if (fitted.status !== 'fitted') throw new Error(`${fitted.received}, expected ${fitted.expected}`);
  return fitted;
}

async function pixelsOf(
  file: Uint8Array,
): Promise<{ width: number; height: number; channels: number; at(x: number, y: number): number[] }> {
  const { data, info } = await sharp(file).raw().toBuffer({ resolveWithObject: true });
  const { width, height, channels } = info;
  return {
    width,
    height,
    channels,
    at: (x, y) => [...data.subarray((y * width + x) * channels, (y * width + x + 1) * channels)],
  };
}

describe('an image', () => {
  it.each(['png', 'jpeg', 'webp'] as const)(
    'is read from %s, and returned as an RGB PNG of the requested size',
    async (format) => {
      const bytes = await halves(80, 40)
        .toFormat(format, { quality: 100, lossless: true, chromaSubsampling: '4:4:4' })
        .toBuffer();
      expect(await read(bytes)).toMatchObject({ width: 80, height: 40 });
      const { image } = await fit(bytes, 40, 40);
      expect(await sharp(image).metadata()).toMatchObject({
        format: 'png',
        width: 40,
        height: 40,
        channels: 3,
        depth: 'uchar',
      });
      const pixels = await pixelsOf(image!);
      // The crop removes equal parts from the left and the right.
      const [left, right] = [pixels.at(2, 20), pixels.at(37, 20)];
      expect([left[0]! > 240, left[2]! < 15, right[0]! < 15, right[2]! > 240]).toEqual([true, true, true, true]);
    },
  );

  it('is rotated by its EXIF orientation', async () => {
    const bytes = await halves(80, 40).withMetadata({ orientation: 6 }).png().toBuffer();
    expect(await read(bytes)).toMatchObject({ width: 40, height: 80 });
    const pixels = await pixelsOf((await fit(bytes, 40, 80)).image!);
    expect([pixels.at(20, 5), pixels.at(20, 75)]).toEqual([
      [255, 0, 0],
      [0, 0, 255],
    ]);
  });

  // Resized before the crop, it would have 2 million × 512 pixels, twice: rotation needs all of it in memory.
  it('needs no more memory if it is long and thin, and rotated', async () => {
    const bytes = await halves(4000, 1).withMetadata({ orientation: 6 }).png().toBuffer();
    const pixels = await pixelsOf((await fit(bytes, 512, 512)).image!);
    expect([pixels.width, pixels.height]).toEqual([512, 512]);
  });

  it('has three channels of eight bits, whatever the source format', async () => {
    const cmyk = await halves(64, 64).toColourspace('cmyk').jpeg().toBuffer();
    const deep = await halves(64, 64).toColourspace('rgb16').png().toBuffer();
    const grey = await halves(64, 64).greyscale().png().toBuffer();
    const palette = await halves(64, 64).png({ palette: true }).toBuffer();
    for (const bytes of [cmyk, deep, grey, palette]) {
      const { image } = await fit(bytes, 64, 64);
      expect(await sharp(image).metadata()).toMatchObject({ channels: 3, depth: 'uchar', space: 'srgb' });
    }
    expect((await pixelsOf((await fit(deep, 64, 64)).image!)).at(5, 5)).toEqual([255, 0, 0]);
  });

  it('is white where it is transparent, with a mask of the transparent area', async () => {
    const hole = { create: { width: 32, height: 64, channels: 4, background: '#fff' } } as const;
    const bytes = await sharp({ create: { width: 64, height: 64, channels: 4, background: red } })
      .composite([{ input: hole, left: 0, top: 0, blend: 'dest-out' }])
      .png()
      .toBuffer();
    const { image, transparency } = await fit(bytes, 64, 64);
    const pixels = await pixelsOf(image!);
    expect([pixels.at(5, 5), pixels.at(60, 5)]).toEqual([
      [255, 255, 255],
      [255, 0, 0],
    ]);
    const mask = transparency!;
    expect(await sharp(mask).metadata()).toMatchObject({ format: 'png', channels: 1, width: 64, height: 64 });
    const painted = await pixelsOf(mask);
    expect([painted.at(5, 5)[0], painted.at(60, 5)[0]]).toEqual([255, 0]);
    const opaque = await halves(64, 64).ensureAlpha().png().toBuffer();
    expect((await fit(opaque, 64, 64)).transparency).toBeUndefined();
  });

  it('has a grey part with its brightness, which is black where it is transparent', async () => {
    const stroke = { create: { width: 32, height: 64, channels: 4, background: '#fff' } } as const;
    const bytes = await sharp({ create: { width: 64, height: 64, channels: 4, background: { ...red, alpha: 0 } } })
      .composite([{ input: stroke, left: 0, top: 0 }])
      .png()
      .toBuffer();
    const grey = (await fit(bytes, 64, 64)).grey!;
    expect(await sharp(grey).metadata()).toMatchObject({ format: 'png', channels: 1, depth: 'uchar' });
    const mask = await pixelsOf(grey);
    expect([mask.at(5, 5)[0], mask.at(60, 5)[0]]).toEqual([255, 0]);
  });
});

const chunk = (type: string, data: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.byteLength);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
};

/** Builds a PNG of any size that takes at most one kilobyte. */
function bomb(width: number, height: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([1, 0], 8);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.alloc(100_000))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

const cameOf = async (bytes: Uint8Array | string): Promise<string> => {
  const result = await readImage(Buffer.from(bytes), limits);
  return result.status === 'refused' ? `${result.received}, expected ${result.expected}` : result.status;
};

describe('refused', () => {
  it.each([
    ['hello', 'not an image (5 bytes)'],
    ['', 'not an image (0 bytes)'],
    ['<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"/>', 'an SVG'],
    ['<?xml version="1.0"?>\n<!-- made by hand -->\n<svg width="64" height="64"></svg>', 'an SVG'],
    ['GIF89a', 'a GIF'],
    ['%PDF-1.7', 'a PDF'],
    ['\0\0\0\x20ftypavif', 'an AVIF or HEIC'],
    ['\x89PNG\r\n\x1a\n'.slice(1), 'not an image (7 bytes)'],
  ])('%j', async (text, came) => {
    expect(await cameOf(Buffer.from(text, 'latin1'))).toBe(`${came}, expected a PNG, JPEG or WebP image`);
  });

  it('a decompression bomb, by the size in its header', async () => {
    const bytes = bomb(100_000, 100_000);
    expect(bytes.byteLength).toBeLessThan(1024);
    expect(await cameOf(bytes)).toBe('100000x100000 pixels, expected at most 1000000 pixels');
    expect(await cameOf(bomb(1000, 1001))).toBe('1000x1001 pixels, expected at most 1000000 pixels');
  });

  it.each(['png', 'jpeg', 'webp'] as const)('a truncated %s', async (format) => {
    const noise = {
      create: { width: 200, height: 200, channels: 3, noise: { type: 'gaussian', mean: 128, sigma: 60 } },
    } as const;
    const bytes = await sharp(noise as never)
      .toFormat(format)
      .toBuffer();
    const source = await readImage(bytes.subarray(0, bytes.byteLength / 2), limits);
    const result =
      source.status === 'read' ? await fitImage(source, { size: { width: 64, height: 64 }, parts }) : source;
    expect(result).toMatchObject({
      status: 'refused',
      received: expect.stringMatching(/ that is broken or cut short$/),
    });
    expect(await readImage(bytes.subarray(0, 20), limits)).toMatchObject({ status: 'refused' });
  });

  it('an animated image', async () => {
    const frames = { raw: { width: 64, height: 128, channels: 3, pageHeight: 64 } } as const;
    const pixels = Buffer.alloc(64 * 128 * 3, 0);
    pixels.fill(255, 0, 64 * 64 * 3);
    const webp = await sharp(pixels, frames as never)
      .webp({ loop: 0, delay: [100, 100] })
      .toBuffer();
    expect(await cameOf(webp)).toBe('an animated WebP, expected a single image');
    const png = await halves(64, 64).png().toBuffer();
    const actl = Buffer.concat([
      png.subarray(0, 33),
      Buffer.from('000000086163544c000000020000000000000000', 'hex'),
      png.subarray(33),
    ]);
    expect(await cameOf(actl)).toBe('an animated PNG, expected a single image');
    expect(await cameOf(png)).toBe('read');
  });
});
