/**
 * From raw RGB to files. Free of ONNX Runtime: encoding runs in the worker's main process
 * while the engine's process takes the next step.
 */
import type { RowOutput } from '@darkroom/core';
import { contentTypes, type OutputFormat, type PictureInput } from '@darkroom/kinds';
import type { Sharp } from 'sharp';
import { loadSharp } from './load-sharp.ts';

/** A file, ready to be stored and served. */
export interface EncodedPicture {
  readonly data: Uint8Array;
  /** Such as `image/png`. */
  readonly contentType: string;
}

/** Preview latents are this much smaller than what is sent, each way. */
const PREVIEW_SCALE = 4;
const PREVIEW_QUALITY = 75;

/**
 * Encodes a finished picture. The same pixels and options give the same bytes.
 *
 * @param output RGB bytes with the facts `width` and `height`, as a picture pipeline's `finish` gives.
 * @param options `outputCompression` 0–100 is the quality of jpeg and webp; png has none to lose. `pngLevel` 1–9: how hard zlib tries.
 * @throws TypeError if the output is not a picture.
 */
export async function encodePicture(
  output: RowOutput,
  {
    outputFormat,
    outputCompression,
    pngLevel = 4,
  }: Pick<PictureInput, 'outputFormat' | 'outputCompression'> & { pngLevel?: number },
): Promise<EncodedPicture> {
  return encode(await rawPicture(output), outputFormat, { compression: outputCompression, pngLevel });
}

/**
 * Encodes a preview: smoothly enlarged, a kilobyte or two of JPEG.
 *
 * @param output RGB bytes with the facts `width` and `height`, as a picture pipeline's `preview` gives.
 * @throws TypeError if the output is not a picture.
 */
export async function encodePreview(output: RowOutput): Promise<EncodedPicture> {
  const { width, height } = sizeOf(output);
  const larger = { width: width * PREVIEW_SCALE, height: height * PREVIEW_SCALE };
  const enlarged = (await rawPicture(output)).resize({ ...larger, kernel: 'cubic', fit: 'fill' });
  return encode(enlarged, 'jpeg', { compression: PREVIEW_QUALITY });
}

function sizeOf({ data, facts }: RowOutput): { width: number; height: number } {
  const { width, height } = facts;
  if (typeof width === 'number' && typeof height === 'number' && data.length === width * height * 3) {
    return { width, height };
  }
  throw new TypeError(`an output of ${data.length} bytes with facts ${JSON.stringify(facts)} is not an RGB picture`);
}

async function rawPicture(output: RowOutput): Promise<Sharp> {
  const sharp = await loadSharp();
  return sharp(output.data, { raw: { ...sizeOf(output), channels: 3 } });
}

async function encode(
  picture: Sharp,
  format: OutputFormat,
  { compression, pngLevel = 9 }: { compression: number; pngLevel?: number },
): Promise<EncodedPicture> {
  // libjpeg and libwebp have no quality 0.
  const quality = Math.min(Math.max(Math.round(compression), 1), 100);
  const data = await writers[format](picture, { quality, pngLevel }).toBuffer();
  return { data, contentType: contentTypes[format] };
}

type Writer = (picture: Sharp, how: { quality: number; pngLevel: number }) => Sharp;

const writers: Readonly<Record<OutputFormat, Writer>> = {
  // A filter chosen for each line: a third smaller, for a fifth more time.
  png: (picture, { pngLevel }) => picture.png({ compressionLevel: pngLevel, adaptiveFiltering: true }),
  jpeg: (picture, { quality }) => picture.jpeg({ quality }),
  webp: (picture, { quality }) => picture.webp({ quality }),
};
