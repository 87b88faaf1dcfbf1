/**
 * Writes an image's recipe into a finished file and removes it again, without decoding or encoding pixels. Removal
 * restores the file byte by byte.
 */
import type { ImageRecipe } from '@darkroom/kinds';
import type { EncodedImage } from '../codec/encode-image.ts';
import { exifOf } from './exif.ts';
import { withJpegBlocks, withoutJpegBlocks } from './jpeg-blocks.ts';
import { parametersText } from './parameters-text.ts';
import { withoutPngTexts, withPngTexts } from './png-texts.ts';
import { withoutWebpBlocks, withWebpBlocks } from './webp-blocks.ts';
import { xmpOf } from './xmp.ts';

const software = 'Darkroom';

/**
 * Writes the recipe into a file, replacing existing metadata: in PNG as texts `parameters` (as Stable Diffusion web UI)
 * and `darkroom` (JSON, a body for `POST /v1/predict`), in JPEG and WebP as EXIF UserComment and XMP. Files of other
 * types are not changed.
 */
export function withMetadata({ data, contentType }: EncodedImage, recipe: ImageRecipe): EncodedImage {
  const plain = withoutMetadata({ data, contentType }).data;
  const json = JSON.stringify(recipe);
  const parameters = parametersText(recipe);
  const blocks = () => ({
    exif: exifOf({ software, userComment: parameters }),
    xmp: xmpOf({ software, caption: recipe.prompt, json }),
  });
  switch (contentType) {
    case 'image/png':
      return { data: withPngTexts(plain, { parameters, darkroom: json }), contentType };
    case 'image/jpeg':
      return { data: withJpegBlocks(plain, blocks()), contentType };
    case 'image/webp':
      return { data: withWebpBlocks(plain, blocks()), contentType };
    default:
      return { data, contentType };
  }
}

/** Returns the file without metadata; the same bytes if there is none. */
export function withoutMetadata({ data, contentType }: EncodedImage): EncodedImage {
  const stripped = strippers[contentType]?.(data) ?? data;
  return { data: stripped, contentType };
}

const strippers: Readonly<Record<string, (file: Uint8Array) => Uint8Array>> = {
  'image/png': withoutPngTexts,
  'image/jpeg': withoutJpegBlocks,
  'image/webp': withoutWebpBlocks,
};
