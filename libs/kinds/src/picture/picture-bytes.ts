/**
 * The most bytes that a picture request may keep in the store at once. Figures are of the worst pictures there are:
 * measured with sharp on noise at quality 100, which is what `outputCompression` can ask for.
 */
import type { OutputFormat, PictureInput } from './picture-input.ts';
import { outputSize, upscaleSteps } from './upscale.ts';

/** Of an encoded file. Measured: png 3.04, jpeg 1.62, webp 1.40. */
const bytesPerPixel: Readonly<Record<OutputFormat, number>> = { png: 3.1, jpeg: 1.8, webp: 1.6 };
/** Of the grey PNG of a mask. */
const maskBytesPerPixel = 1.1;
/** Headers of a small file. */
const fileBytes = 2048;
/** Of the whole picture. A preview has a quarter of its pixels or fewer, and 0.40 bytes for each of noise. */
const previewBytesPerPixel = 0.25;
/** Latents in fp32 and what a scheduler remembers of earlier steps: 16 channels and one array, or 4 channels and six. */
const checkpointBytesPerPixel = 2;
/** The state of the random numbers, as JSON. */
const checkpointBytes = 16_384;
/** What a file says of its picture, for each byte of the request as JSON: in words of two bytes, and in XML where each byte may be five. */
const metadataFactor = 8;
/** An entry of the log with its share of the stream. */
const eventBytes = 256;
/** Events beside those of steps, and the fields of the request. */
const requestBytes = 16_384;

/** `others`: all but the previews. */
function bytesOf(input: PictureInput) {
  const { width, height, n, numInferenceSteps, previewEvery, outputFormat } = input;
  const pixels = width * height;
  const size = outputSize(input);
  const steps = numInferenceSteps + upscaleSteps(input);
  const count = previewEvery === 0 ? 0 : Math.floor((numInferenceSteps - 1) / previewEvery);
  const json = Buffer.byteLength(JSON.stringify(input));
  const metadata = input.metadata ? fileBytes + metadataFactor * json : 0;
  const file = size.width * size.height * bytesPerPixel[outputFormat] + fileBytes + metadata;
  const picture = file + pixels * checkpointBytesPerPixel + checkpointBytes;
  // With prompts and without: where they are not kept, both are stored.
  const brought =
    (input.image ? pixels * bytesPerPixel.png + fileBytes : 0) +
    (input.mask ? pixels * maskBytesPerPixel + fileBytes : 0);
  const request = brought + 2 * json + requestBytes;
  return {
    previews: n * count * (pixels * previewBytesPerPixel + fileBytes),
    others: n * (picture + steps * eventBytes) + request,
  };
}

export function pictureBytes(input: PictureInput): number {
  const { previews, others } = bytesOf(input);
  return Math.ceil(previews + others);
}

/** What to lower when they are too many. */
export function heaviestPictureField(input: PictureInput): 'preview' | 'upscale' | 'n' | 'size' {
  const { previews, others } = bytesOf(input);
  if (previews > others) return 'preview';
  if (input.upscale !== undefined) return 'upscale';
  return input.n > 1 ? 'n' : 'size';
}
