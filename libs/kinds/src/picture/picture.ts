import type { Kind } from '../kind.ts';
import { heaviestPictureField, pictureBytes } from './picture-bytes.ts';
import { type PictureCard, pictureCost, type PictureInput, pictureShapeKey, pictureSteps } from './picture-input.ts';
import { pictureSchema } from './picture-schema.ts';
import { pictureViews } from './picture-views.ts';
import { resolveWithPictures } from './take-pictures.ts';
import { upscaleSteps } from './upscale.ts';

/** Pictures, drawn step by step. */
export const picture: Kind<PictureInput, PictureCard> = {
  id: 'picture',
  outputs: 'bytes',
  bodySchema: pictureSchema,
  resolve: resolveWithPictures,
  demandOf: (input) => ({
    shapeKey: pictureShapeKey(input),
    outputs: input.n,
    slots: input.n,
    cost: pictureCost(input),
    bytes: pictureBytes(input),
  }),
  heaviestField: heaviestPictureField,
  stepsOf: (input) => pictureSteps(input) + upscaleSteps(input),
  withoutPrivate: ({ prompt: _prompt, negativePrompt: _negativePrompt, ...input }) => input,
  ...pictureViews,
};
