import type { ImageRefusal, ImageSize } from './image-refusal.ts';

/** Maximum size of a color profile, uncompressed. Printing press profiles have up to 3 MB. */
export const maxProfileBytes = 4 * 2 ** 20;
/** Maximum size of an EXIF block: one segment of a JPEG file. */
export const maxExifBytes = 65_535;

export interface StrippedImage extends ImageSize {
  readonly status: 'stripped';
  readonly isAnimated: boolean;
  /** A view of the beginning of the input's memory, which is overwritten. */
  readonly bytes: Buffer;
}

/**
 * `broken`: a length or a marker is wrong. A refusal means that the file is too complex, such as `a JPEG of 50 scans`.
 */
export type StripResult = StrippedImage | { status: 'broken' } | ImageRefusal;

export const broken = { status: 'broken' } as const;

/** Chunks or segments of a file: each takes time however short it is, and honest files have a few thousand. */
export const maxParts = 200_000;
