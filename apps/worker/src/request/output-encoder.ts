import { encodePicture, encodePreview } from '@darkroom/diffusion/encode';
import { type PictureInput, picture } from '@darkroom/kinds';
import type { OutputEncoder } from './active-request.ts';

const ofPictures: OutputEncoder = {
  // The API's schema is what wrote it, and the pipeline has checked it by now.
  encodeOutput: (input, output) => encodePicture(output, input as PictureInput),
  encodePreview,
};

/** Texts are UTF-8 as they come. */
const asTheyAre: OutputEncoder = {
  encodeOutput: (_input, { data }) => Promise.resolve({ data, contentType: 'text/plain; charset=utf-8' }),
  encodePreview: ({ data }) => Promise.resolve({ data, contentType: 'text/plain; charset=utf-8' }),
};

/** How outputs of a kind are written. */
export function encoderOf(kind: string): OutputEncoder {
  return kind === picture.id ? ofPictures : asTheyAre;
}
