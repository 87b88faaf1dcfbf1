import { isTerminalState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import type { ApiConfig } from '@darkroom/config';
import type { FollowDeps } from '../follow/tail-events.ts';
import { addRoute, type Api, commonErrors, errorAnswer, submitErrors, submitHeaders } from '../http/api-route.ts';
import { acceptedSchema, pictureBodySchema, requestSchema } from './api-schemas.ts';
import { onceStored } from '../submit/once-stored.ts';
import { preferredWaitMs } from '../follow/prefer-wait.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { requestUrls } from '../http/urls.ts';
import { requestAnswer, type RequestAnswerDeps } from './request-answer.ts';
import { submitOverHttp } from '../submit/submit-over-http.ts';
import type { SubmitRequest } from '../submit/submit-request.ts';
import { awaitEnd } from '../follow/await-end.ts';

export interface PredictDeps extends FollowDeps, RequestAnswerDeps {
  config: Pick<ApiConfig, 'maxBodyBytes'>;
  submitRequest: SubmitRequest;
}

export function addPredictRoute(api: Api, deps: PredictDeps): void {
  addRoute(api, predictRoute, async (c) => {
    const waitMs = preferredWaitMs(c.req.header('prefer'));
    const body = await readJsonBody(c, deps.config.maxBodyBytes);
    const submitted = await submitOverHttp(c, deps.submitRequest, { body });
    const urls = requestUrls(submitted.id);
    c.header('Location', urls.self);
    if (waitMs > 0) {
      c.header('Preference-Applied', `wait=${waitMs / 1000}`);
      const options = { owner: c.get('owner'), waitMs, signal: c.req.raw.signal };
      const request = await onceStored(() => awaitEnd(deps, submitted.id, options));
      if (request !== undefined) {
        const view = await requestAnswer(deps, request);
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
  ...submitErrors,
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
  503: errorAnswer(
    'Too many requests wait (`overloaded`), no worker serves the model (`model_unserved`, where the server is ' +
      'configured to refuse then), no worker has brought any model yet (`no_models`), the model is of a kind that only newer servers know (`kind_unknown`), or Redis is away (`unavailable`).',
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
          example: { prompt: 'a fox on a green background', num_inference_steps: 12, seed: 7 },
        },
      },
    },
  },
  responses,
};
