import type { ApiConfig } from '@darkroom/config';
import { createWaitingLine } from './waiting-line.ts';

/** A picture takes its pixels and more while it is decoded. */
const decodedAtOnce = 2;
/** Bytes of a file that no picture needs more than, for each pixel that one may have: red, green, blue and alpha as they are. */
const bytesPerPixel = 4;
/** What stands in a file beside its pixels, such as the profile of its colors. */
const besideBytes = 65_536;

export type PictureDoor = ReturnType<typeof createPictureDoor>;

/** Limits of pictures that come in, and the room that they share in this process. */
export function createPictureDoor({
  maxInputPixels,
  inputAllowPrivate,
}: Pick<ApiConfig, 'maxInputPixels' | 'inputAllowPrivate'>) {
  const maxFileBytes = maxInputPixels * bytesPerPixel + besideBytes;
  return {
    maxPixels: maxInputPixels,
    allowPrivate: inputAllowPrivate,
    maxFileBytes,
    /** Bytes of files in memory: those of one request at least. */
    files: createWaitingLine(2 * maxFileBytes),
    /** Pictures that are being decoded. */
    decoding: createWaitingLine(decodedAtOnce),
  };
}
