/** `POST /v1/images/generations`: images from prompts. */
import type { Route } from '../../openapi/api-route.ts';
import { readJsonBody } from '../../body/read-json-body.ts';
import { answerImages } from './answer-images.ts';
import { generationsBody, imagesGenerationsDocument } from './openai-images-schema.ts';

export const imagesGenerationsRoute: Route = {
  ...imagesGenerationsDocument,
  async handle(c, context) {
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    return answerImages(c, context, generationsBody.parse(body), { name: 'image_generation' });
  },
};
