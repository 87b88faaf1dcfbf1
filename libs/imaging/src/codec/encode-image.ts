/**
 * Encodes raw RGB to image files. Does not load ONNX Runtime: encoding runs in the worker's main process while the
 * engine's process takes the next step.
 */
import type { RowOutput } from '@darkroom/core';
import { contentTypes, type OutputFormat, type ImageInput } from '@darkroom/kinds';
import type { Sharp } from 'sharp';
import { loadSharp } from './load-sharp.ts';

/** An encoded file, ready to store and serve. */
export interface EncodedImage {
  readonly data: Uint8Array;
  /** Such as `image/png`. */
  readonly contentType: string;
}

/** Factor from preview latents to the preview image, in each direction. */
const PREVIEW_SCALE = 4;
const PREVIEW_QUALITY = 75;

/**
 * Encodes a finished image. The same pixels and options produce the same bytes.
 *
 * @param output RGB bytes with the fields `width` and `height`, as returned by an image pipeline's `finish`.
 * @param options `outputCompression` 0–100 is the quality of jpeg and webp, and ignored for png.
 * @throws TypeError if the output is not an image.
 */
export async function encodeImage(
  output: RowOutput,
  { outputFormat, outputCompression }: Pick<ImageInput, 'outputFormat' | 'outputCompression'>,
): Promise<EncodedImage> {
  return encode(await rawImage(output), outputFormat, outputCompression);
}

/**
 * Encodes a preview: enlarged smoothly, one or two kilobytes of JPEG.
 *
 * @param output RGB bytes with the fields `width` and `height`, as returned by an image pipeline's `preview`.
 * @throws TypeError if the output is not an image.
 */
export async function encodePreview(output: RowOutput): Promise<EncodedImage> {
  const { width, height } = sizeOf(output);
  const larger = { width: width * PREVIEW_SCALE, height: height * PREVIEW_SCALE };
  const enlarged = (await rawImage(output)).resize({ ...larger, kernel: 'cubic', fit: 'fill' });
  return encode(enlarged, 'jpeg', PREVIEW_QUALITY);
}

function sizeOf({ data, facts }: RowOutput): { width: number; height: number } {
  const { width, height } = facts;
  if (typeof width === 'number' && typeof height === 'number' && data.length === width * height * 3) {
    return { width, height };
  }
  throw new TypeError(`an output of ${data.length} bytes with facts ${JSON.stringify(facts)} is not an RGB image`);
}

async function rawImage(output: RowOutput): Promise<Sharp> {
  const sharp = await loadSharp();
  return sharp(output.data, { raw: { ...sizeOf(output), channels: 3 } });
}

async function encode(image: Sharp, format: OutputFormat, compression: number): Promise<EncodedImage> {
  // libjpeg and libwebp have no quality 0.
  const quality = Math.min(Math.max(Math.round(compression), 1), 100);
  const data = await writers[format](image, quality).toBuffer();
  return { data, contentType: contentTypes[format] };
}

const writers: Readonly<Record<OutputFormat, (image: Sharp, quality: number) => Sharp>> = {
  // Level 9 takes seven times as long as 4, and makes files 7 % smaller. Adaptive filters make files a third smaller
  // and take a fifth more time.
  png: (image) => image.png({ compressionLevel: 4, adaptiveFiltering: true }),
  jpeg: (image, quality) => image.jpeg({ quality }),
  webp: (image, quality) => image.webp({ quality }),
};
