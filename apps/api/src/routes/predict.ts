import type { ApiContext } from '../api-context.ts';
import { addRoute, type Api, commonErrors, errorAnswer } from '../api-route.ts';
import { acceptedSchema, pictureBodySchema } from '../api-schemas.ts';
import { readJsonBody } from '../read-json-body.ts';
import { requestUrls } from '../request-urls.ts';
import { submitPicture } from '../submit-picture.ts';

export function addPredictRoute(api: Api, context: ApiContext): void {
  addRoute(api, predictRoute, async (c) => {
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    const { id, position, isPossible } = await submitPicture(c, context, body);
    const urls = requestUrls(id);
    return c.json({ request_id: id, status: 'queued', queue_position: position, is_possible: isPossible, urls }, 202, {
      Location: urls.self,
    });
  });
}

const responses = {
  ...commonErrors,
  202: {
    description: 'Accepted and stored.',
    headers: { Location: { description: 'Where to poll.', schema: { type: 'string' as const } } },
    content: { 'application/json': { schema: acceptedSchema } },
  },
  400: errorAnswer('A field is wrong. Nothing is stored.', {
    message: 'num_inference_steps is "fifty", expected a whole number from 1 to 200',
    code: 'invalid_value',
    param: 'num_inference_steps',
  }),
  404: errorAnswer('No such model.', {
    message: 'model "sdxl" is not here, expected one of emoji-sd',
    code: 'model_not_found',
    param: 'model',
  }),
  413: errorAnswer('The body is too large.', {
    message: 'the body has more than 1048576 bytes',
    code: 'body_too_large',
  }),
  415: errorAnswer('The body is not application/json.', {
    message: 'Content-Type is "text/plain", expected application/json',
    code: 'unsupported_media_type',
  }),
  503: errorAnswer(
    'Too many requests wait (`overloaded`), no worker serves the model (`model_unserved`, where the server is ' +
      'configured to refuse then), no worker has brought any model yet (`no_models`), or Redis is away (`unavailable`).',
    { message: 'Service overloaded, try again later.', code: 'overloaded' },
    true,
  ),
};

const predictRoute = {
  method: 'post' as const,
  path: '/v1/predict',
  summary: 'Ask for pictures',
  description: 'Answers at once with an id to poll, or to follow as events.',
  request: {
    body: {
      required: true,
      content: {
        'application/json': {
          schema: pictureBodySchema,
          example: { prompt: 'a red fox on a teal background', num_inference_steps: 12, seed: 7 },
        },
      },
    },
  },
  responses,
};
