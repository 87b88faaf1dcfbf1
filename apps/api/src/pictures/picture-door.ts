import type { ApiConfig } from '@darkroom/config';
import { createWaitingLine } from './waiting-line.ts';

/** A picture takes its pixels and more while it is decoded. */
const decodedAtOnce = 2;
/** Bytes of a file that no picture needs more than, for each pixel that one may have: red, green, blue and alpha as they are. */
const bytesPerPixel = 4;
/** What stands in a file beside its pixels, such as the profile of its colors. */
const besideBytes = 65_536;
/** For room for a file, and again to be decoded. */
const waitMs = 120_000;

export type PictureDoor = ReturnType<typeof createPictureDoor>;

/** The most that a file of so many pixels may have. */
export function fileBytesOf(pixels: number): number {
  return pixels * bytesPerPixel + besideBytes;
}

/** Limits of pictures that come in, and the room that they share in this process. */
export function createPictureDoor({
  maxInputPixels,
  inputAllowPrivate,
}: Pick<ApiConfig, 'maxInputPixels' | 'inputAllowPrivate'>) {
  const maxFileBytes = fileBytesOf(maxInputPixels);
  return {
    maxPixels: maxInputPixels,
    allowPrivate: inputAllowPrivate,
    /** Of one file, and of all files of a form together. */
    maxFileBytes,
    /** Bytes of files in memory. A request never needs more than half of it, and no owner gets more. */
    files: createWaitingLine({ room: 2 * maxFileBytes, perOwner: maxFileBytes, limitMs: waitMs }),
    /** Pictures that are being decoded. */
    decoding: createWaitingLine({ room: decodedAtOnce, limitMs: waitMs }),
  };
}
