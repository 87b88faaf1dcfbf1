/** Decodes image files that Darkroom itself encoded, such as a request's attachments, to raw pixels. */
import { loadSharp } from './load-sharp.ts';

/** 8 bits per channel, interleaved, row by row from the top. */
export interface RawImage {
  readonly data: Uint8Array;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
}

/** Decodes an image to RGB: 3 bytes per pixel. @throws Error if `file` is not an image. */
export function decodeRgb(file: Uint8Array): Promise<RawImage> {
  return decode(file, 3);
}

/** Decodes an image to grey: 1 byte per pixel. @throws Error if `file` is not an image. */
export function decodeGrey(file: Uint8Array): Promise<RawImage> {
  return decode(file, 1);
}

async function decode(file: Uint8Array, channels: 1 | 3): Promise<RawImage> {
  const sharp = await loadSharp();
  const image = sharp(file, { failOn: 'error' }).removeAlpha();
  const converted = channels === 1 ? image.toColourspace('b-w').extractChannel(0) : image.toColourspace('srgb');
  const { data, info } = await converted.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
  if (info.channels !== channels) throw new Error(`the image has ${info.channels} channels, not ${channels}`);
  return { data: new Uint8Array(data.buffer, data.byteOffset, data.length), width: info.width, height: info.height };
}
