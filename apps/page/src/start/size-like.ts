import type { PictureModel } from '@darkroom/client';
import type { PictureSize } from './mask-drawing.ts';

/** The size of a picture's shape that a model draws best: with about as many pixels as those it draws by default. */
export function sizeLike(
  picture: PictureSize,
  { sizes: { min, max, multiple }, defaults }: Pick<PictureModel, 'sizes' | 'defaults'>,
): PictureSize {
  const [defaultWidth = multiple, defaultHeight = multiple] = defaults.size.split('x').map(Number);
  const scale = Math.sqrt((defaultWidth * defaultHeight) / (picture.width * picture.height));
  const sideOf = (pixels: number): number => {
    const nearest = Math.round((pixels * scale) / multiple) * multiple;
    return Math.min(Math.max(nearest, Math.ceil(min / multiple) * multiple), Math.floor(max / multiple) * multiple);
  };
  return { width: sideOf(picture.width), height: sideOf(picture.height) };
}
