/** A request that begins with a picture, as far as the door has to look at the picture itself. */
import type { ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { defaultStrength, type PictureCard, type PictureInput } from './picture-input.ts';
import type { PictureRequest } from './picture-schema.ts';
import { fittingSize } from './picture-size.ts';
import { resolvePicture } from './resolve-picture.ts';
import { maxUpscaledSide, outputSize } from './upscale.ts';

/** As `resolvePicture`; then, if all is well, with the pictures of a body that has any. */
export function resolveWithPictures(
  body: unknown,
  card: PictureCard,
  options: RequestOptions,
): ResolveResult<PictureInput> | Promise<ResolveResult<PictureInput>> {
  const result = resolvePicture(body, card, options);
  if (result.status === 'invalid' || result.request.input.image === undefined) return result;
  return takePictures(result.request, body as PictureRequest & { image: string }, card, options);
}

async function takePictures(
  request: Extract<ResolveResult<PictureInput>, { status: 'resolved' }>['request'],
  body: PictureRequest & { image: string },
  card: PictureCard,
  { readPictures }: RequestOptions,
): Promise<ResolveResult<PictureInput>> {
  if (readPictures === undefined) throw new TypeError('nobody reads pictures here');
  const { width, height } = request.input;
  const isAuto = (body.size ?? 'auto') === 'auto';
  const result = await readPictures(body, (own) => (isAuto ? fittingSize(own, card.sizes) : { width, height }));
  if (result.status === 'invalid') return result;
  const { size, attachments } = result;
  const large = outputSize({ ...size, upscale: request.input.upscale });
  if (Math.max(large.width, large.height) > maxUpscaledSide) {
    const message = `upscale makes ${large.width}x${large.height} of image, expected no side of more than ${maxUpscaledSide} pixels: give a size`;
    return { status: 'invalid', problems: [{ field: 'upscale', code: 'invalid_value', message }] };
  }
  const hasMask = attachments.has('mask');
  if (hasMask && card.takes?.includes('mask') !== true) {
    const message = `image is transparent in parts, expected an opaque picture: ${card.id} takes no masks`;
    return { status: 'invalid', problems: [{ field: 'image', code: 'invalid_value', message }] };
  }
  const strength = body.strength ?? defaultStrength(hasMask);
  const input: PictureInput = { ...request.input, ...size, ...(hasMask ? { mask: true } : {}), strength };
  return { status: 'resolved', request: { ...request, input, attachments } };
}
