/** Encodes the input image and mask of a request, which all its rows share. */
import { DarkroomError, type RowRequest, byteAt } from '@darkroom/core';
import { decodeGrey, decodeRgb, type RawImage } from '@darkroom/imaging';
import type { ImageAttachment } from '@darkroom/kinds';
import type { LatentConfig } from '../model/config/latent-config.ts';
import type { LatentDistribution, VaeEncoder } from '../vae/vae-encoder.ts';
import { sampleOfRgb } from './latents-to-rgb.ts';
import type { ImageRowInput } from './image-request.ts';

/** Mask values from here up are repainted (diffusers: `do_binarize`, at half). */
const minMasked = 128;

/** The encoded input image and mask. The latents are not scaled yet. */
export interface ImageSource {
  /** Absent if it would not influence the result. */
  readonly image?: LatentDistribution;
  /** Per latent pixel: 1 to repaint, 0 to preserve. Absent if the complete image is repainted. */
  readonly mask?: Uint8Array;
  /** The image with the masked area removed, for inpainting denoisers. */
  readonly masked?: LatentDistribution;
}

export interface ReadImageSourceOptions {
  request: ImageRowInput;
  attachments: RowRequest['attachments'];
  encoder: VaeEncoder | undefined;
  latents: LatentConfig;
  /** True if the denoiser was trained for inpainting and reads the mask and the masked image. */
  isForInpainting: boolean;
}

/**
 * Reads and encodes a request's input image and mask. An inpainting denoiser gets a full mask if either is missing.
 *
 * @returns undefined if the request has no input image.
 * @throws DarkroomError `invalid_request` naming an attachment that is missing or invalid; other errors if the encoder
 * fails.
 */
export async function readImageSource(options: ReadImageSourceOptions): Promise<ImageSource | undefined> {
  const { request, attachments, encoder, latents, isForInpainting } = options;
  const { image, mask: hasMask, strength = 1 } = request;
  if (encoder === undefined || (image === undefined && !isForInpainting)) return undefined;
  const read = (name: ImageAttachment): Promise<Uint8Array> => readAttachment(name, { attachments, request });
  const sample =
    image === undefined ? new Float32Array(3 * request.width * request.height) : sampleOfRgb(await read('image'));
  const fullMask = hasMask === true ? binarize(await read('mask')) : undefined;
  if (!isForInpainting) {
    const image = await encoder.encode(sample, request);
    return { image, mask: fullMask && downscaleMask(fullMask, request, latents.factor) };
  }
  const everything = fullMask ?? new Uint8Array(request.width * request.height).fill(1);
  return {
    image: strength < 1 ? await encoder.encode(sample, request) : undefined,
    mask: downscaleMask(everything, request, latents.factor),
    masked: await encoder.encode(removeMasked(sample, everything), request),
  };
}

async function readAttachment(
  name: ImageAttachment,
  { attachments, request: { width, height } }: Pick<ReadImageSourceOptions, 'attachments' | 'request'>,
): Promise<Uint8Array> {
  const file = attachments?.get(name);
  if (file === undefined) throw invalid(`${name}: is missing from the request's attachments`);
  const decode = name === 'mask' ? decodeGrey : decodeRgb;
  const image: RawImage = await decode(file).catch((error: unknown) => {
    throw invalid(`${name}: is not a readable image`, error);
  });
  if (image.width === width && image.height === height) return image.data;
  throw invalid(`${name}: is ${image.width} × ${image.height}; expected ${width} × ${height}, the request's size`);
}

function binarize(mask: Uint8Array): Uint8Array {
  return mask.map((value) => (value >= minMasked ? 1 : 0));
}

/**
 * Downscales the mask to the latents: takes the first pixel of each square, as torch's `interpolate` does by default.
 */
function downscaleMask(
  mask: Uint8Array,
  { width, height }: { width: number; height: number },
  factor: number,
): Uint8Array {
  const columns = width / factor;
  return Uint8Array.from({ length: (height / factor) * columns }, (_, at) => {
    return byteAt(mask, Math.floor(at / columns) * factor * width + (at % columns) * factor);
  });
}

/** Returns the image with the masked area set to grey (0). */
function removeMasked(sample: Float32Array, mask: Uint8Array): Float32Array {
  return sample.map((value, at) => (mask[at % mask.length] === 1 ? 0 : value));
}

function invalid(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'diffusion.create-rows', message, cause);
}
