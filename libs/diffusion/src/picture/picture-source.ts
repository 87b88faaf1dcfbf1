/** The picture that a request starts from, as latents: what all its rows have in common. */
import { DarkroomError, type RowRequest } from '@darkroom/core';
import { decodeGrey, decodeRgb, type RawPicture } from '@darkroom/imaging';
import type { PictureAttachment } from '@darkroom/kinds';
import type { LatentFacts } from '../model/facts/latent-facts.ts';
import type { LatentDistribution, VaeEncoder } from '../vae/vae-encoder.ts';
import { sampleOfRgb } from './latents-to-rgb.ts';
import type { PictureRequest } from './picture-request.ts';

/** What is this and more in a mask is painted anew (diffusers: `do_binarize`, at half). */
const leastMasked = 128;

/** Latents of it are not scaled yet. */
export interface PictureSource {
  /** Absent where it makes no difference. */
  readonly picture?: LatentDistribution;
  /** For each pixel of the latents: 1 where it is painted anew, 0 where it stays. Absent where all of it is drawn over. */
  readonly mask?: Uint8Array;
  /** The picture without what the mask takes away, for denoisers that read it. */
  readonly masked?: LatentDistribution;
}

export interface ReadPictureSourceOptions {
  request: PictureRequest;
  attachments: RowRequest['attachments'];
  encoder: VaeEncoder | undefined;
  latents: LatentFacts;
  /** Whether the denoiser was made for inpainting, and reads the mask and the masked picture. */
  isForInpainting: boolean;
}

/**
 * Reads and encodes what came with a request. Without a picture, or without a mask, a denoiser that reads both is told that all
 * is masked.
 *
 * @returns undefined if the request starts from nothing.
 * @throws DarkroomError `invalid_request` naming the attachment that is missing or not what it should be; others if the encoder
 * fails.
 */
export async function readPictureSource(options: ReadPictureSourceOptions): Promise<PictureSource | undefined> {
  const { request, attachments, encoder, latents, isForInpainting } = options;
  const { image, mask: hasMask, strength = 1 } = request;
  if (encoder === undefined || (image === undefined && !isForInpainting)) return undefined;
  const read = (name: PictureAttachment): Promise<Uint8Array> => readAttachment(name, { attachments, request });
  const sample =
    image === undefined ? new Float32Array(3 * request.width * request.height) : sampleOfRgb(await read('image'));
  const fullMask = hasMask === true ? binarize(await read('mask')) : undefined;
  if (!isForInpainting) {
    const picture = await encoder.encode(sample, request);
    return { picture, ...(fullMask !== undefined && { mask: shrink(fullMask, request, latents.factor) }) };
  }
  const everything = fullMask ?? new Uint8Array(request.width * request.height).fill(1);
  return {
    ...(strength < 1 && { picture: await encoder.encode(sample, request) }),
    mask: shrink(everything, request, latents.factor),
    masked: await encoder.encode(without(sample, everything), request),
  };
}

async function readAttachment(
  name: PictureAttachment,
  { attachments, request: { width, height } }: Pick<ReadPictureSourceOptions, 'attachments' | 'request'>,
): Promise<Uint8Array> {
  const file = attachments?.get(name);
  if (file === undefined) throw invalid(`${name}: did not come with the request`);
  const decode = name === 'mask' ? decodeGrey : decodeRgb;
  const picture: RawPicture = await decode(file).catch((error: unknown) => {
    throw invalid(`${name}: is no picture that can be read`, error);
  });
  if (picture.width === width && picture.height === height) return picture.data;
  throw invalid(`${name}: is ${picture.width} × ${picture.height}; expected ${width} × ${height}, the request's size`);
}

function binarize(mask: Uint8Array): Uint8Array {
  return mask.map((value) => (value >= leastMasked ? 1 : 0));
}

/** The mask at the resolution of the latents: the first pixel of each square, as torch's `interpolate` takes it by default. */
function shrink(mask: Uint8Array, { width, height }: { width: number; height: number }, factor: number): Uint8Array {
  const columns = width / factor;
  return Uint8Array.from({ length: (height / factor) * columns }, (_, at) => {
    return mask[Math.floor(at / columns) * factor * width + (at % columns) * factor]!;
  });
}

/** The picture with grey, 0, where the mask is. */
function without(sample: Float32Array, mask: Uint8Array): Float32Array {
  return sample.map((value, at) => (mask[at % mask.length] === 1 ? 0 : value));
}

function invalid(message: string, cause?: unknown): DarkroomError {
  return new DarkroomError('invalid_request', 'diffusion.create-rows', message, cause);
}
