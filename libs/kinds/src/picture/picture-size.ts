import type { PictureCard } from './picture-input.ts';

/** Pixels. */
export interface PictureSize {
  width: number;
  height: number;
}

/**
 * The size to draw in for a picture of its own size: that, within what the model takes. Its ratio is kept but for what multiples and
 * limits do not allow: the picture is to fill the size, and what is too much is cut.
 */
export function fittingSize({ width, height }: PictureSize, { min, max, multiple }: PictureCard['sizes']): PictureSize {
  const [shortest, longest] = [Math.min(width, height), Math.max(width, height)];
  const scale = longest > max ? max / longest : Math.max(1, min / shortest);
  const sideOf = (pixels: number): number => {
    const floored = Math.floor(Math.round(pixels * scale) / multiple) * multiple;
    const [least, most] = [Math.ceil(min / multiple) * multiple, Math.floor(max / multiple) * multiple];
    return Math.min(Math.max(floored, least), most);
  };
  return { width: sideOf(width), height: sideOf(height) };
}
