import type { ImageModel } from '@darkroom/client';
import type { ImageSize } from './mask-drawing.ts';

/**
 * Returns the model's best size for an image: about as many pixels as its default size and, among the sizes near that,
 * the nearest aspect ratio, because the excess of the image is cropped.
 */
export function sizeLike(image: ImageSize, { sizes, defaults }: Pick<ImageModel, 'sizes' | 'defaults'>): ImageSize {
  const [defaultWidth = 1, defaultHeight = 1] = defaults.size.split('x').map(Number);
  const scale = Math.sqrt((defaultWidth * defaultHeight) / (image.width * image.height));
  const heights = sidesAround(image.height * scale, sizes);
  const around = sidesAround(image.width * scale, sizes).flatMap((width) =>
    heights.map((height) => ({ width, height })),
  );
  const cutOf = ({ width, height }: ImageSize): number =>
    Math.abs(Math.log((width * image.height) / (height * image.width)));
  return around.reduce((best, size) => (cutOf(size) < cutOf(best) ? size : best));
}

/** Returns the model's next valid sides below and above. */
function sidesAround(pixels: number, { min, max, multiple }: ImageModel['sizes']): number[] {
  const [least, most] = [Math.ceil(min / multiple) * multiple, Math.floor(max / multiple) * multiple];
  return [Math.floor(pixels / multiple), Math.ceil(pixels / multiple)].map((count) =>
    Math.min(Math.max(count * multiple, least), most),
  );
}
