import type { ResolveResult } from '../request/kind.ts';
import type { RequestPolicy } from '../request/request-fields.ts';
import { defaultStrength, type ImageCard, type ImageInput } from './image-input.ts';
import type { ImageBody } from './image-request-schema.ts';
import type { ImageSize } from '../request/brought-images.ts';
import { maxUpscaledSide, outputSize } from './upscale.ts';

/** Loads the images of a valid request, and validates it with their sizes. */
export async function takeImages(
  request: Extract<ResolveResult<ImageInput>, { status: 'resolved' }>['request'],
  body: ImageBody & { image: string },
  card: ImageCard,
  { readImages }: RequestPolicy,
): Promise<ResolveResult<ImageInput>> {
  if (readImages === undefined) throw new TypeError('readImages is missing: this process loads no images');
  const { width, height } = request.input;
  const isAuto = (body.size ?? 'auto') === 'auto';
  const result = await readImages(body, (own) => (isAuto ? fittingSize(own, card.sizes) : { width, height }));
  if (result.status === 'invalid') return result;
  const { size, attachments } = result;
  const large = outputSize({ ...size, upscale: request.input.upscale });
  if (Math.max(large.width, large.height) > maxUpscaledSide) {
    const message = `upscale makes ${large.width}x${large.height} of image, expected no side of more than ${maxUpscaledSide} pixels: give a size`;
    return { status: 'invalid', problems: [{ field: 'upscale', code: 'invalid_value', message }] };
  }
  const hasMask = attachments.has('mask');
  if (hasMask && card.takes?.includes('mask') !== true) {
    const message = `image is partly transparent, expected an opaque image: ${card.id} takes no masks`;
    return { status: 'invalid', problems: [{ field: 'image', code: 'invalid_value', message }] };
  }
  const strength = body.strength ?? defaultStrength(hasMask);
  const input: ImageInput = { ...request.input, ...size, ...(hasMask ? { mask: true } : {}), strength };
  return { status: 'resolved', request: { ...request, input, attachments } };
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
