import type { ImageCard } from './image-input.ts';

/** Size in pixels. */
export interface ImageSize {
  width: number;
  height: number;
}

/**
 * Returns the output size for an input image: its size, scaled into the limits of the model. Keeps the aspect ratio as
 * far as multiples and limits allow; the image is later scaled to fill the size and cropped.
 */
export function fittingSize({ width, height }: ImageSize, { min, max, multiple }: ImageCard['sizes']): ImageSize {
  const [shortest, longest] = [Math.min(width, height), Math.max(width, height)];
  const scale = longest > max ? max / longest : Math.max(1, min / shortest);
  const sideOf = (pixels: number): number => {
    const floored = Math.floor(Math.round(pixels * scale) / multiple) * multiple;
    const [minSide, maxSide] = [Math.ceil(min / multiple) * multiple, Math.floor(max / multiple) * multiple];
    return Math.min(Math.max(floored, minSide), maxSide);
  };
  return { width: sideOf(width), height: sideOf(height) };
}
