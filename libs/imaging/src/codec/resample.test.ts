import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { decodeRgb, type RawImage } from './decode-image.ts';
import { resample, type ResampleFilter } from './resample.ts';

const vectors = resolve(import.meta.dirname, '../../../../tools/golden/vectors/vision');

function resized(...given: Parameters<typeof resample>): { image: RawImage; parts: number } {
  const parts = resample(...given);
  for (let count = 1; ; count++) {
    const part = parts.next();
    if (part.done === true) return { image: part.value, parts: count };
  }
}

it('has the bytes of Pillow: tools/golden/record-vision.py', async () => {
  const rows = JSON.parse(await readFile(join(vectors, 'resized.json'), 'utf8')) as [
    number,
    number,
    number,
    ResampleFilter,
    string,
  ][];
  expect(rows.length).toBeGreaterThan(50);
  for (const [at, width, height, filter, hash] of rows) {
    const source = await decodeRgb(await readFile(join(vectors, `image-${at}.png`)));
    const { image } = resized(source, { width, height }, filter);
    expect({ at, filter, ...image, data: createHash('sha256').update(image.data).digest('hex') }).toEqual({
      at,
      filter,
      width,
      height,
      data: hash,
    });
  }
});

it('resizes large images in parts, and returns an image of the same size as it is', () => {
  const image = { data: new Uint8Array(3 * 1500 * 1500).fill(200), width: 1500, height: 1500 };
  const large = resized(image, { width: 2048, height: 2048 }, 'lanczos');
  expect(large.parts).toBeGreaterThan(10);
  expect(large.image.data.every((value) => value === 200)).toBe(true);
  expect(resized(image, image, 'lanczos').image).toBe(image);
});

it('a window has the pixels of the full image, without computing the rest', async () => {
  const source = await decodeRgb(await readFile(join(vectors, 'image-3.png')));
  const size = { width: 97, height: 120 };
  const full = resized(source, size, 'bicubic').image;
  const [columns, rows] = [
    { first: 5, end: 60 },
    { first: 100, end: 120 },
  ];
  const { image } = resized(source, size, 'bicubic', { columns, rows });
  expect([image.width, image.height]).toEqual([55, 20]);
  const expected = Array.from({ length: 20 }, (_, y) =>
    full.data.subarray(3 * ((100 + y) * 97 + 5), 3 * ((100 + y) * 97 + 60)),
  );
  expect(Buffer.from(image.data).equals(Buffer.concat(expected))).toBe(true);
});
