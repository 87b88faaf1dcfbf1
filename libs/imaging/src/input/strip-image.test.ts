/** Tests the reduction of files to what a decoder needs: retained parts, removed parts and refusals. */
import { crc32, deflateSync } from 'node:zlib';
import sharp, { type Sharp } from 'sharp';
import { describe, expect, it } from 'vitest';
import { type ImageFormat, stripImage } from './strip-image.ts';
import type { StrippedImage } from './strip-result.ts';

const photo = (): Sharp =>
  sharp({ create: { width: 64, height: 32, channels: 3, noise: { type: 'gaussian', mean: 128, sigma: 60 } } } as never);

function strip(format: ImageFormat, file: Uint8Array): StrippedImage {
  const result = stripImage(format, Buffer.from(file));
  if (result.status !== 'stripped') throw new Error(result.status === 'broken' ? 'broken' : result.received);
  return result;
}

function statusOf(format: ImageFormat, file: Uint8Array): string {
  const result = stripImage(format, Buffer.from(file));
  return result.status === 'refused' ? `${result.received}, expected ${result.expected}` : result.status;
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.byteLength);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

function profile(data: Buffer): Buffer {
  return chunk('iCCP', Buffer.concat([Buffer.from('icc\0\0', 'latin1'), data]));
}

/** Inserts chunks after the header of a PNG. */
function withChunks(png: Buffer, ...chunks: Buffer[]): Buffer {
  return Buffer.concat([png.subarray(0, 33), ...chunks, png.subarray(33)]);
}

function typesOf(png: Buffer): string[] {
  const types: string[] = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) types.push(png.toString('latin1', at + 4, at + 8));
  return types;
}

function segment(marker: number, data: Buffer): Buffer {
  const head = Buffer.from([0xff, marker, 0, 0]);
  head.writeUInt16BE(data.length + 2, 2);
  return Buffer.concat([head, data]);
}

function riff(...chunks: [name: string, data: Buffer][]): Buffer {
  const parts = chunks.flatMap(([name, data]) => {
    const frame = Buffer.from(`${name}\0\0\0\0`, 'latin1');
    frame.writeUInt32LE(data.length, 4);
    return [frame, data, Buffer.alloc(data.length % 2)];
  });
  const head = Buffer.from('RIFF\0\0\0\0WEBP', 'latin1');
  head.writeUInt32LE(Buffer.concat(parts).length + 4, 4);
  return Buffer.concat([head, ...parts]);
}

const zeros = deflateSync(Buffer.alloc(8 * 2 ** 20));

describe('PNG', () => {
  it('loses texts, times, unknown chunks and trailing data, and keeps its pixels', async () => {
    const png = await photo().png().toBuffer();
    const texts = ['tEXt', 'zTXt', 'iTXt', 'tIME', 'sPLT', 'hIST', 'fdAT', 'prVt', 'zzZz'].map((type) =>
      chunk(type, zeros),
    );
    const large = Buffer.concat([withChunks(png, ...texts), ...texts]);
    const { bytes, width, height } = strip('PNG', large);
    expect([bytes.equals(strip('PNG', png).bytes), width, height]).toEqual([true, 64, 32]);
  });

  it('keeps the chunks for colors, transparency and orientation', async () => {
    const png = await photo().withMetadata({ orientation: 6 }).png({ palette: true }).toBuffer();
    const types = typesOf(strip('PNG', png).bytes);
    expect(types).toEqual(typesOf(png).filter((type) => type !== 'pHYs'));
    expect(types).toEqual(expect.arrayContaining(['PLTE', 'iCCP', 'eXIf']));
    expect((await sharp(strip('PNG', png).bytes).metadata()).autoOrient).toMatchObject({ width: 32, height: 64 });
  });

  it('loses a color profile that inflates to more than 4 MiB, and a second profile', async () => {
    const png = await photo().png().toBuffer();
    const small = profile(deflateSync(Buffer.alloc(1000)));
    expect(typesOf(strip('PNG', withChunks(png, profile(zeros), small)).bytes)).not.toContain('iCCP');
    const kept = typesOf(strip('PNG', withChunks(png, small, small)).bytes);
    expect(kept.filter((type) => type === 'iCCP')).toHaveLength(1);
  });

  it.each([
    ['ends before its header', (png: Buffer) => png.subarray(0, 20)],
    ['begins with another chunk', (png: Buffer) => Buffer.concat([png.subarray(0, 8), chunk('tEXt', zeros), png])],
    ['has a chunk longer than the file', (png: Buffer) => withChunks(png, Buffer.from('7fffffff74455874', 'hex'))],
    ['has no end', (png: Buffer) => png.subarray(0, -12)],
  ])('is broken if it %s', async (_what, harm) => {
    expect(statusOf('PNG', harm(await photo().png().toBuffer()))).toBe('broken');
  });
});

describe('JPEG', () => {
  it('loses comments, XMP, thumbnails and trailing data, and keeps EXIF, profile and pixels', async () => {
    const jpeg = await photo().withMetadata({ orientation: 6 }).jpeg().toBuffer();
    const full = Buffer.alloc(65_000, 0x20);
    const junk = [0xfe, 0xe1, 0xe3, 0xed, 0xef].map((marker) => segment(marker, full));
    const large = Buffer.concat([jpeg.subarray(0, 2), ...junk, jpeg.subarray(2), ...junk, full]);
    const { bytes, width, height } = strip('JPEG', large);
    expect([bytes.equals(jpeg), width, height]).toEqual([true, 64, 32]);
    expect(await sharp(bytes).metadata()).toMatchObject({ orientation: 6, hasProfile: true });
  });

  it('of common programs is unchanged: progressive, CMYK, restarts', async () => {
    const progressive = await photo().jpeg({ progressive: true, mozjpeg: true }).toBuffer();
    const cmyk = await photo().toColourspace('cmyk').jpeg().toBuffer();
    for (const jpeg of [progressive, cmyk]) expect(strip('JPEG', jpeg).bytes.equals(jpeg)).toBe(true);
  });

  it('is refused with more than 32 scans', async () => {
    const jpeg = await photo().jpeg({ progressive: true }).toBuffer();
    const last = jpeg.lastIndexOf(Buffer.from('ffda', 'hex'));
    const scan = jpeg.subarray(last, -2);
    const many = Buffer.concat([jpeg.subarray(0, -2), ...Array.from({ length: 1000 }, () => scan), jpeg.subarray(-2)]);
    expect(statusOf('JPEG', many)).toMatch(/^a JPEG of 10\d\d scans, expected at most 32 scans$/);
  });

  it('is refused with a profile of more than 4 MiB', async () => {
    const jpeg = await photo().jpeg().toBuffer();
    const part = segment(0xe2, Buffer.concat([Buffer.from('ICC_PROFILE\0', 'latin1'), Buffer.alloc(65_000)]));
    const large = Buffer.concat([jpeg.subarray(0, 2), ...Array.from({ length: 100 }, () => part), jpeg.subarray(2)]);
    expect(statusOf('JPEG', large)).toMatch(/^a JPEG with too large a color profile/);
  });

  it.each([
    ['a segment longer than the file', 'ffd8ffe1ffff'],
    ['a segment without length', 'ffd8ffe10000ffd9'],
    ['no frame', 'ffd8ffd9'],
    ['nothing', 'ffd8ff'],
    ['fill bytes only', `ffd8${'ff'.repeat(100_000)}`],
  ])('is broken with %s', (_what, hex) => {
    expect(statusOf('JPEG', Buffer.from(hex, 'hex'))).toBe('broken');
  });
});

describe('WebP', () => {
  it("loses XMP and unknown chunks, updates the header's flags, and keeps EXIF, profile and pixels", async () => {
    const webp = await photo().withMetadata({ orientation: 6 }).webp({ lossless: true }).toBuffer();
    const large = Buffer.concat([webp, riff(['XMP ', zeros], ['JUNK', zeros], ['EXIF', zeros]).subarray(12)]);
    large[20] = large[20]! | 0x04;
    large.writeUInt32LE(large.length - 8, 4);
    const { bytes, width, height } = strip('WebP', large);
    expect([bytes.equals(webp), width, height]).toEqual([true, 64, 32]);
    expect(await sharp(bytes).metadata()).toMatchObject({ orientation: 6, hasProfile: true });
    const simple = await photo().webp().toBuffer();
    expect(strip('WebP', simple)).toMatchObject({ bytes: simple, width: 64, height: 32 });
  });

  it('has the larger of the sizes in its header and its image', async () => {
    const webp = await photo().webp({ lossless: true }).toBuffer();
    const image = webp.subarray(20, 20 + webp.readUInt32LE(16));
    const header = Buffer.alloc(10);
    expect(strip('WebP', riff(['VP8X', header], ['VP8L', image]))).toMatchObject({ width: 64, height: 32 });
  });

  it.each([
    ['a chunk longer than the file', Buffer.concat([riff(), Buffer.from('VP8L\xff\xff\xff\x7f', 'latin1')])],
    ['no image', riff(['JUNK', zeros])],
    ['a header that comes late', riff(['ICCP', zeros], ['VP8X', Buffer.alloc(10)], ['VP8L', Buffer.alloc(20)])],
  ])('is broken with %s', (_what, file) => {
    expect(statusOf('WebP', file)).toBe('broken');
  });
});

it.each([
  ['fffe0002', 'broken'],
  ['ffd0', 'broken'],
  // Fill bytes, which may be any number, and are skipped at once.
  ['ffff', 'stripped'],
])('bounds the parts %s of a JPEG: %s', (part, status) => {
  const head = Buffer.from('ffd8ffc0000b080001000101011100', 'hex');
  const parts = Buffer.alloc(4_000_000).fill(Buffer.from(part, 'hex'));
  const file = Buffer.concat([head, parts, Buffer.from('ffda0008010100003f00ffd9', 'hex')]);
  expect(stripImage('JPEG', file)).toMatchObject({ status });
});

it('refuses a PNG of more chunks than honest ones have', () => {
  const header = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex');
  const empty = Buffer.concat([Buffer.alloc(4), Buffer.from('teXt'), Buffer.alloc(4)]);
  const end = Buffer.concat([Buffer.alloc(4), Buffer.from('IEND'), Buffer.alloc(4)]);
  const file = Buffer.concat([header, Buffer.alloc(4), Buffer.alloc(300_000 * 12).fill(empty), end]);
  expect(stripImage('PNG', file)).toMatchObject({ status: 'broken' });
});
