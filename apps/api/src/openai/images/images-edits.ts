/** `POST /v1/images/edits` and `/variations`: pictures of a picture. */
import type { Route } from '../../http/api-route.ts';
import { takeBody } from '../../http/take-body.ts';
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
        const asked = editsBody.parse(fromReferences(body));
        return answerImages(c, context, asked, { name: 'image_edit', uploads, maskBy: 'transparency' });
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
        const { picture, ...asked } = variationsBody.parse(body);
        return answerImages(
          c,
          context,
          { ...asked, picture: { prompt: noPrompt, ...picture } },
          { name: 'image_edit', uploads },
        );
      },
    ),
};
