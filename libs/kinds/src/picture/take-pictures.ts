/** A request that begins with a picture, as far as the door has to look at the picture itself. */
import type { FieldProblem } from '@darkroom/core';
import type { ResolveResult } from '../kind.ts';
import type { RequestOptions } from '../request-fields.ts';
import { defaultStrength, type PictureAttachment, type PictureCard, type PictureInput } from './picture-input.ts';
import type { PictureRequest } from './picture-schema.ts';
import { fittingSize, type PictureSize } from './picture-size.ts';
import { resolvePicture } from './resolve-picture.ts';

/** What a body says of its pictures: where they are. */
export type PictureSources = Pick<PictureRequest, 'image' | 'mask'> & { image: string };

/** `attachments`: PNGs of exactly that size, the image in RGB, the mask in grey. */
export type PicturesResult =
  | { status: 'read'; size: PictureSize; attachments: ReadonlyMap<PictureAttachment, Uint8Array> }
  | { status: 'invalid'; problems: readonly FieldProblem[] };

/**
 * Gets pictures from where they are and brings them to the size that `sizeOf` says for the image's own. There may be a mask
 * where the body has none: in the image's transparency.
 */
export type ReadPictures = (
  sources: PictureSources,
  sizeOf: (own: PictureSize) => PictureSize,
) => Promise<PicturesResult>;

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
  const hasMask = attachments.has('mask');
  if (hasMask && card.takes?.includes('mask') !== true) {
    const message = `image is transparent in parts, expected an opaque picture: ${card.id} takes no masks`;
    return { status: 'invalid', problems: [{ field: 'image', code: 'invalid_value', message }] };
  }
  const strength = body.strength ?? defaultStrength(hasMask);
  const input: PictureInput = { ...request.input, ...size, ...(hasMask ? { mask: true } : {}), strength };
  return { status: 'resolved', request: { ...request, input, attachments } };
}
