/**
 * Reduces a client's image file to what a decoder needs, before decoding it: texts, thumbnails and unknown blocks can
 * expand to gigabytes. Runs in place, in linear time, and decodes nothing.
 */
import { stripJpeg } from './strip-jpeg.ts';
import { stripPng } from './strip-png.ts';
import type { StripResult } from './strip-result.ts';
import { stripWebp } from './strip-webp.ts';

export type ImageFormat = 'PNG' | 'JPEG' | 'WebP';

const strippers: Readonly<Record<ImageFormat, (file: Buffer) => StripResult>> = {
  PNG: stripPng,
  JPEG: stripJpeg,
  WebP: stripWebp,
};

export function stripImage(format: ImageFormat, file: Uint8Array): StripResult {
  return strippers[format](Buffer.from(file.buffer, file.byteOffset, file.byteLength));
}
