import type { ImageInfo } from './request-view.ts';

/** One finished picture. */
export interface Picture extends ImageInfo {
  /** The encoded picture, `bytes` long: a file of the type `content_type`. */
  data: Uint8Array<ArrayBuffer>;
}
