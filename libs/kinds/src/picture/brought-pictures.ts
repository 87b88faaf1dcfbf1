/** What the door of a server has to bring along for bodies that name pictures. */
import type { FieldProblem } from '@darkroom/core';
import type { PictureAttachment } from './picture-input.ts';
import type { PictureSize } from './picture-size.ts';

/** What a body says of its pictures: where they are. */
export interface PictureSources {
  image: string;
  mask?: string | undefined;
}

/** `attachments`: PNGs of exactly that size, the image in RGB, the mask in grey. */
export type PicturesResult =
  | { status: 'read'; size: PictureSize; attachments: ReadonlyMap<PictureAttachment, Uint8Array> }
  | { status: 'invalid'; problems: readonly FieldProblem[] };

/**
 * Gets pictures from where they are and brings them to the size that `sizeOf` says for the image's own. There may be a mask
 * where the body has none: in the image's transparency.
 */
export type ReadPictures = (
  sources: PictureSources,
  sizeOf: (own: PictureSize) => PictureSize,
) => Promise<PicturesResult>;
