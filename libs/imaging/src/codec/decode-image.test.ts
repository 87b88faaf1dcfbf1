import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { decodeGrey, decodeRgb } from './decode-image.ts';
import { encodeImage } from './encode-image.ts';

const [width, height] = [24, 16];
const png = { outputFormat: 'png', outputCompression: 100 } as const;

describe('decoding', () => {
  it('returns every pixel of an RGB file', async () => {
    const data = Uint8Array.from({ length: width * height * 3 }, (_value, at) => (at * 7) % 256);
    const file = await encodeImage({ data, facts: { width, height } }, png);
    expect(await decodeRgb(file.data)).toEqual({ data, width, height });
  });

  it('returns every pixel of a grey file', async () => {
    const data = Uint8Array.from({ length: width * height }, (_value, at) => (at * 5) % 256);
    const file = await sharp(data, { raw: { width, height, channels: 1 } })
      .png()
      .toBuffer();
    expect(await decodeGrey(file)).toEqual({ data, width, height });
  });

  it('returns three channels for a grey file, and one for an RGB file', async () => {
    const grey = await sharp({ create: { width, height, channels: 3, background: '#404040' } })
      .toColourspace('b-w')
      .png()
      .toBuffer();
    expect(await decodeRgb(grey)).toEqual({ data: new Uint8Array(width * height * 3).fill(0x40), width, height });
    const white = await encodeImage(
      { data: new Uint8Array(width * height * 3).fill(255), facts: { width, height } },
      png,
    );
    expect(await decodeGrey(white.data)).toEqual({ data: new Uint8Array(width * height).fill(255), width, height });
  });

  it.each([
    ['a text', Buffer.from('not an image')],
    ['nothing', new Uint8Array()],
    ['a file cut short', undefined],
  ])('refuses %s', async (_name, bytes) => {
    const data = Uint8Array.from({ length: width * height * 3 }, (_value, at) => (at * at) % 251);
    const file = bytes ?? (await encodeImage({ data, facts: { width, height } }, png)).data.subarray(0, 300);
    await expect(decodeRgb(file)).rejects.toThrow(/./);
  });
});
