/** `POST /v1/images/generations`: pictures of prompts. */
import type { Route } from '../../http/api-route.ts';
import { readJsonBody } from '../../http/read-json-body.ts';
import { answerImages } from './answer-images.ts';
import { generationsBody, imagesGenerationsDocument } from './openai-images-schema.ts';

export const imagesGenerationsRoute: Route = {
  ...imagesGenerationsDocument,
  async handle(c, context) {
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    return answerImages(c, context, generationsBody.parse(body), { name: 'image_generation' });
  },
};
