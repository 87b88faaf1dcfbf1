/** `POST /v1/images/edits` and `/variations`: images from an input image. */
import type { Route } from '../../openapi/api-route.ts';
import { takeBody } from '../../submit/take-body.ts';
import { answerImages } from './answer-images.ts';
import {
  editsBody,
  fromReferences,
  imagesEditsDocument,
  imagesVariationsDocument,
  noPrompt,
  variationsBody,
} from './images-edits-schema.ts';

export const imagesEditsRoute: Route = {
  ...imagesEditsDocument,
  handle: (c, context) =>
    takeBody(
      c,
      context,
      () => editsBody.fields,
      ({ body, uploads }) => {
        const parsed = editsBody.parse(fromReferences(body));
        return answerImages(c, context, parsed, { name: 'image_edit', uploads, maskBy: 'transparency' });
      },
    ),
};

export const imagesVariationsRoute: Route = {
  ...imagesVariationsDocument,
  handle: (c, context) =>
    takeBody(
      c,
      context,
      () => variationsBody.fields,
      ({ body, uploads }) => {
        const { image, ...others } = variationsBody.parse(body);
        return answerImages(
          c,
          context,
          { ...others, image: { prompt: noPrompt, ...image } },
          { name: 'image_edit', uploads },
        );
      },
    ),
};
