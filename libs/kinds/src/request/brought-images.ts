/** Interface of the API's image loader, for bodies that reference images. */
import type { FieldProblem } from '@darkroom/core';

/** Size in pixels. */
export interface ImageSize {
  width: number;
  height: number;
}

/** References to images in a body: URLs or parts of the form. */
export interface ImageSources {
  image: string;
  mask?: string | undefined;
}

/** Loaded images. `attachments`: PNGs of exactly `size`, the image in RGB, the mask in grayscale. */
export type ImagesResult =
  | { status: 'read'; size: ImageSize; attachments: ReadonlyMap<'image' | 'mask', Uint8Array> }
  | { status: 'invalid'; problems: readonly FieldProblem[] };

/**
 * Loads images and resizes them; `sizeOf` maps the image's original size to the target size. An image with transparency
 * yields a mask even if the body has none.
 */
export type ReadImages = (sources: ImageSources, sizeOf: (own: ImageSize) => ImageSize) => Promise<ImagesResult>;
