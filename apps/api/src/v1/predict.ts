import { isTerminalState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { awaitEnd, preferredWaitMs } from '../follow/await-end.ts';
import { invalidField, overloaded } from '../http/api-error.ts';
import { commonErrors, errorAnswer, jsonAnswer, type Route } from '../http/api-route.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { requestUrls } from '../http/urls.ts';
import { submitErrors, submitHeaders } from '../submit/submit-document.ts';
import { onceStored, submitRequest } from '../submit/submit-request.ts';
import { acceptedSchema, pictureBodySchema, requestSchema } from './api-schemas.ts';
import { requestAnswer } from './request-answer.ts';

const location = { Location: { description: 'Where to poll.', schema: { type: 'string' as const } } };

export const predictRoute: Route = {
  method: 'post',
  path: '/v1/predict',
  summary: 'Ask for pictures',
  description: 'Answers at once with an id to poll, or to follow as events.',
  request: {
    headers: submitHeaders,
    body: {
      required: true,
      content: {
        'application/json': {
          schema: pictureBodySchema,
          example: { prompt: 'a fox on a green background', num_inference_steps: 12, seed: 7 },
        },
      },
    },
  },
  responses: {
    ...commonErrors,
    ...submitErrors,
    200: jsonAnswer('Ended while `Prefer: wait` waited.', requestSchema, location),
    202: jsonAnswer(
      'Accepted and stored; the whole request with `Prefer: wait`.',
      z.union([acceptedSchema, requestSchema]),
      location,
    ),
    400: errorAnswer(
      'A field is wrong. Nothing is stored.',
      invalidField('num_inference_steps', 'fifty', 'a whole number from 1 to 200'),
    ),
    503: errorAnswer(
      'Too many requests wait (`overloaded`), no worker serves the model (`model_unserved`, where the server is ' +
        'configured to refuse then), no worker has brought any model yet (`no_models`), the model is of a kind that only newer servers know (`kind_unknown`), or Redis is away (`unavailable`).',
      overloaded(),
    ),
  },
  async handle(c, context) {
    const waitMs = preferredWaitMs(c.req.header('prefer'));
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    const { id, state, position, isPossible, eta } = await submitRequest(c, context, { body });
    const urls = requestUrls(id);
    c.header('Location', urls.self);
    if (waitMs > 0) {
      c.header('Preference-Applied', `wait=${waitMs / 1000}`);
      const request = await onceStored(() => awaitEnd(c, context, id, waitMs));
      if (request !== undefined)
        return c.json(await requestAnswer(context, request), isTerminalState(request.state) ? 200 : 202);
    }
    const accepted = {
      request_id: id,
      status: state,
      queue_position: position ?? null,
      ...(eta === undefined ? {} : { eta_seconds: eta }),
      is_possible: isPossible,
      urls,
    };
    return c.json(accepted, 202);
  },
};
