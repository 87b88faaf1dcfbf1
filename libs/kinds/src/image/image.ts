import type { Kind } from '../request/kind.ts';
import { type ImageCard, imageCost, type ImageInput, imageShapeKey, imageSteps } from './image-input.ts';
import { type ImageBody, imageRequestSchema } from './image-request-schema.ts';
import { imageViews } from './image-views.ts';
import { resolveImage } from './resolve-image.ts';
import { takeImages } from './take-images.ts';
import { upscaleSteps } from './upscale.ts';

/** The image kind. */
export const imageKind: Kind<ImageInput, ImageCard> = {
  id: 'image',
  outputs: 'bytes',
  bodySchema: imageRequestSchema,
  resolve(body, card, options) {
    const result = resolveImage(body, card, options);
    if (result.status === 'invalid' || result.request.input.image === undefined) return result;
    return takeImages(result.request, body as ImageBody & { image: string }, card, options);
  },
  demandOf: (input) => ({
    shapeKey: imageShapeKey(input),
    outputs: input.n,
    slots: input.n,
    cost: imageCost(input),
  }),
  stepsOf: (input) => imageSteps(input) + upscaleSteps(input),
  withoutPrivate: ({ prompt: _prompt, negativePrompt: _negativePrompt, ...input }) => input,
  ...imageViews,
};
