/** Small image files that cost a decoder gigabytes or minutes (decompression bombs). */
import { crc32, deflateSync } from 'node:zlib';
import { expect } from 'vitest';
import sharp from 'sharp';
import { type AttackGroup, post, type Target } from './attack.ts';

const side = 4096;
const atOnce = 12;

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(data.byteLength);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

/** Builds a PNG with all pixels 0, which compress to almost nothing. */
function png(options: {
  bits?: number;
  isInterlaced?: boolean;
  more?: readonly Buffer[];
  chunkBytes?: number;
}): Buffer {
  const { bits = 8, isInterlaced = false, more = [], chunkBytes = Infinity } = options;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header.set([bits, 6, 0, 0, isInterlaced ? 1 : 0], 8);
  const data = deflateSync(Buffer.alloc((side * side * 4 * bits) / 8 + 2 * side));
  const parts: Buffer[] = [];
  for (let at = 0; at < data.length; at += chunkBytes) parts.push(chunk('IDAT', data.subarray(at, at + chunkBytes)));
  const signature = Buffer.from('89504e470d0a1a0a', 'hex');
  return Buffer.concat([signature, chunk('IHDR', header), ...more, ...parts, chunk('IEND', Buffer.alloc(0))]);
}

/** Builds ten chunks of 30 MB each, compressed to 30 KB. */
function texts(type: 'iTXt' | 'zTXt' | 'iCCP'): Buffer[] {
  const zeros = deflateSync(Buffer.alloc(30e6));
  const heads = { iTXt: 'a\0\x01\0\0\0', zTXt: 'a\0\0', iCCP: 'icc\0\0' };
  return Array.from({ length: 10 }, () => chunk(type, Buffer.concat([Buffer.from(heads[type], 'latin1'), zeros])));
}

async function scansJpeg(): Promise<Buffer> {
  const image = sharp({ create: { width: side, height: side, channels: 3, background: '#888' } });
  const jpeg = await image.jpeg({ progressive: true }).toBuffer();
  const last = jpeg.lastIndexOf(Buffer.from('ffda', 'hex'));
  // A scan of few bytes still costs a pass over all pixels.
  const scan = jpeg.subarray(last, last + 40);
  return Buffer.concat([jpeg.subarray(0, -2), ...Array.from({ length: 4000 }, () => scan), jpeg.subarray(-2)]);
}

function flat(channels: 3 | 4) {
  return sharp({ create: { width: side, height: side, channels, background: channels === 3 ? '#888' : '#8888' } });
}

/** Posts the file many times at once, as a form and, if small, as a data URL; no answer may be a 500. */
async function postAll(target: Target, file: Buffer): Promise<void> {
  const inForm = async (): Promise<number> => {
    const body = new FormData();
    body.set('model', 'emoji-sd');
    body.set('prompt', 'a fox');
    body.set('image', new Blob([new Uint8Array(file)], { type: 'image/png' }), 'image.png');
    const response = await fetch(`${target.url}/v1/predict`, { method: 'POST', headers: target.headers, body });
    await response.arrayBuffer();
    return response.status;
  };
  const asUrl = async (): Promise<number> => {
    const image = `data:image/png;base64,${file.toString('base64')}`;
    return (await post(target, '/v1/predict', { model: 'emoji-sd', prompt: 'a fox', image })).status;
  };
  const isSmall = file.length < 700_000;
  const sent = Array.from({ length: atOnce }, (_, index) => (isSmall && index % 2 === 0 ? asUrl() : inForm()));
  for (const status of await Promise.all(sent)) expect([200, 202, 400, 429, 503]).toContain(status);
}

/** Builders of the files; lazy, because some take seconds. */
const files: Readonly<Record<string, () => Buffer | Promise<Buffer>>> = {
  'PNGs with compressed texts of 300 MB': () => png({ more: texts('iTXt') }),
  'PNGs with zTXt chunks of 300 MB': () => png({ more: texts('zTXt') }),
  'PNGs with color profiles of 300 MB': () => png({ more: texts('iCCP') }),
  'interlaced PNGs of 16 bits': () => png({ bits: 16, isInterlaced: true }),
  'PNGs with a chunk for each byte': () => png({ bits: 16, chunkBytes: 1 }),
  'PNGs with a million empty chunks': () =>
    png({ more: [Buffer.concat(Array.from({ length: 1_000_000 }, () => chunk('teXt', Buffer.alloc(0))))] }),
  'progressive JPEGs of 4000 scans': scansJpeg,
  'progressive JPEGs of 16 million pixels': () => flat(3).jpeg({ progressive: true, mozjpeg: true }).toBuffer(),
  'lossless WebPs of 16 million pixels': () => flat(4).webp({ lossless: true }).toBuffer(),
  'WebPs of 16 million pixels with transparency': () => flat(4).webp({ effort: 0 }).toBuffer(),
};

export const images: AttackGroup = {
  topic: 'images',
  attacks: Object.entries(files).map(([name, make]) => ({
    title: `reads or refuses ${name}`,
    run: async (target) => postAll(target, await make()),
  })),
};
