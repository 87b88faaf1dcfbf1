/**
 * What a file says of how its picture was made. It is put into a finished file and taken out of it again, byte by byte as it was:
 * pixels are neither decoded nor encoded.
 */
import type { PictureRecipe } from '@darkroom/kinds';
import type { EncodedPicture } from '../encode-picture.ts';
import { exifOf } from './exif.ts';
import { withJpegBlocks, withoutJpegBlocks } from './jpeg-blocks.ts';
import { parametersText } from './parameters-text.ts';
import { withoutPngTexts, withPngTexts } from './png-texts.ts';
import { withoutWebpBlocks, withWebpBlocks } from './webp-blocks.ts';
import { xmpOf } from './xmp.ts';

const software = 'Darkroom';

/**
 * Says in a file how its picture was made, in place of whatever it says: in a PNG as texts `parameters` (as of Stable Diffusion web UI) and
 * `darkroom` (JSON, a body for `POST /v1/predict`), in JPEG and WebP as the EXIF UserComment and in XMP. A file of another type stays as it is.
 */
export function withMetadata({ data, contentType }: EncodedPicture, recipe: PictureRecipe): EncodedPicture {
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

/** The file without anything that it says of its picture; the bytes themselves where it says nothing. */
export function withoutMetadata({ data, contentType }: EncodedPicture): EncodedPicture {
  const stripped = strippers[contentType]?.(data) ?? data;
  return { data: stripped, contentType };
}

const strippers: Readonly<Record<string, (file: Uint8Array) => Uint8Array>> = {
  'image/png': withoutPngTexts,
  'image/jpeg': withoutJpegBlocks,
  'image/webp': withoutWebpBlocks,
};
