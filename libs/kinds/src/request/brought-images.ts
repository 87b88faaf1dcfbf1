/** Interface of the API's image loader, for bodies that reference images. */
import type { FieldProblem } from '@darkroom/core';
import { z } from 'zod';

/** `cid:` references a part of the multipart form (RFC 2392). */
const imagePattern = /^(?:data:[^,]{0,100};base64,|https?:\/\/|(?:\/[\w.~-]{1,64}){0,8}?\/v1\/predict\/|cid:)/i;
export const imageExpected = 'an image: a data URL in base64, or an https URL';
/** Reference to an image in a body. */
export const imageSource = z.string({ error: imageExpected }).regex(imagePattern, { error: imageExpected });

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

export type ImageResult =
  /** `data`: an RGB PNG of `size`. */
  { status: 'read'; size: ImageSize; data: Uint8Array } | { status: 'invalid'; problems: readonly FieldProblem[] };

/** Loads one image and resizes it. `field`: its path in the body, for errors. The bytes live until the request ends. */
export type ReadImage = (
  image: { field: string; source: string },
  sizeOf: (own: ImageSize) => ImageSize,
) => Promise<ImageResult>;
