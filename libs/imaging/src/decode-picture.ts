/** From files that we wrote ourselves, as requests bring them to a worker, to raw pixels. */
import { loadSharp } from './load-sharp.ts';

/** 8 bits a channel, interleaved, row by row from the top. */
export interface RawPicture {
  readonly data: Uint8Array;
  /** Pixels. */
  readonly width: number;
  readonly height: number;
}

/** Reads a picture as red, green and blue: 3 bytes a pixel. @throws Error if it is none. */
export function decodeRgb(file: Uint8Array): Promise<RawPicture> {
  return decode(file, 3);
}

/** Reads a picture as grey: 1 byte a pixel. @throws Error if it is none. */
export function decodeGrey(file: Uint8Array): Promise<RawPicture> {
  return decode(file, 1);
}

async function decode(file: Uint8Array, channels: 1 | 3): Promise<RawPicture> {
  const sharp = await loadSharp();
  const picture = sharp(file, { failOn: 'error' }).removeAlpha();
  const inColors = channels === 1 ? picture.toColourspace('b-w').extractChannel(0) : picture.toColourspace('srgb');
  const { data, info } = await inColors.raw({ depth: 'uchar' }).toBuffer({ resolveWithObject: true });
  if (info.channels !== channels) throw new Error(`the picture has ${info.channels} channels, not ${channels}`);
  return { data: new Uint8Array(data.buffer, data.byteOffset, data.length), width: info.width, height: info.height };
}
