import type { PictureModel } from '@darkroom/client';
import type { PictureSize } from './mask-drawing.ts';

/**
 * The size that a model draws best of a picture's shape: with about as many pixels as those it draws by default. Of the sizes around
 * that it is the one whose shape is nearest, because what is too much of the picture is cut.
 */
export function sizeLike(
  picture: PictureSize,
  { sizes, defaults }: Pick<PictureModel, 'sizes' | 'defaults'>,
): PictureSize {
  const [defaultWidth = 1, defaultHeight = 1] = defaults.size.split('x').map(Number);
  const scale = Math.sqrt((defaultWidth * defaultHeight) / (picture.width * picture.height));
  const heights = sidesAround(picture.height * scale, sizes);
  const around = sidesAround(picture.width * scale, sizes).flatMap((width) =>
    heights.map((height) => ({ width, height })),
  );
  const cutOf = ({ width, height }: PictureSize): number =>
    Math.abs(Math.log((width * picture.height) / (height * picture.width)));
  return around.reduce((best, size) => (cutOf(size) < cutOf(best) ? size : best));
}

/** What the model takes next below and above. */
function sidesAround(pixels: number, { min, max, multiple }: PictureModel['sizes']): number[] {
  const [least, most] = [Math.ceil(min / multiple) * multiple, Math.floor(max / multiple) * multiple];
  return [Math.floor(pixels / multiple), Math.ceil(pixels / multiple)].map((count) =>
    Math.min(Math.max(count * multiple, least), most),
  );
}
