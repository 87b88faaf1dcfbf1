import { isTerminalState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../api-context.ts';
import { addRoute, type Api, commonErrors, errorAnswer, rateLimitAnswer, submitHeaders } from '../api-route.ts';
import { acceptedSchema, pictureBodySchema, requestSchema } from '../api-schemas.ts';
import { onceStored } from '../once-stored.ts';
import { preferredWaitMs } from '../prefer-wait.ts';
import { readJsonBody } from '../read-json-body.ts';
import { requestUrls } from '../request-urls.ts';
import { requestView } from '../request-view.ts';
import { submitPicture } from '../submit-picture.ts';
import { waitForEnd } from '../wait-for-end.ts';

export function addPredictRoute(api: Api, context: ApiContext): void {
  addRoute(api, predictRoute, async (c) => {
    const waitMs = preferredWaitMs(c.req.header('prefer'));
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    const submitted = await submitPicture(c, context, body);
    const urls = requestUrls(submitted.id);
    c.header('Location', urls.self);
    if (waitMs > 0) {
      c.header('Preference-Applied', `wait=${waitMs / 1000}`);
      const options = { owner: c.get('owner'), waitMs, signal: c.req.raw.signal };
      const request = await onceStored(() => waitForEnd(context, submitted.id, options));
      if (request !== undefined) {
        const view = requestView(request, await context.estimateEnd(request));
        return c.json(view, isTerminalState(request.state) ? 200 : 202);
      }
    }
    const { id, state, position, isPossible, eta } = submitted;
    const accepted = {
      request_id: id,
      status: state,
      queue_position: position ?? null,
      ...(eta === undefined ? {} : { eta_seconds: eta }),
      is_possible: isPossible,
      urls,
    };
    return c.json(accepted, 202);
  });
}

const locationHeader = { description: 'Where to poll.', schema: { type: 'string' as const } };

const responses = {
  ...commonErrors,
  200: {
    description: 'Ended while `Prefer: wait` waited.',
    headers: { Location: locationHeader },
    content: { 'application/json': { schema: requestSchema } },
  },
  202: {
    description: 'Accepted and stored; the whole request with `Prefer: wait`.',
    headers: { Location: locationHeader },
    content: { 'application/json': { schema: z.union([acceptedSchema, requestSchema]) } },
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
  409: errorAnswer('The Idempotency-Key came with another body before.', {
    message: 'This Idempotency-Key came with another body before; a new request needs a new key.',
    code: 'idempotency_conflict',
    param: 'Idempotency-Key',
  }),
  413: errorAnswer('The body is too large.', {
    message: 'the body has more than 1048576 bytes',
    code: 'body_too_large',
  }),
  415: errorAnswer('The body is not application/json.', {
    message: 'Content-Type is "text/plain", expected application/json',
    code: 'unsupported_media_type',
  }),
  429: rateLimitAnswer,
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
    headers: submitHeaders,
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
