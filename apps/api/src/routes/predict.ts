import {
  createRequestId,
  DarkroomError,
  type PictureInput,
  pictureShapeKey,
  type RequestEnvelope,
  type ResolvedPicture,
  resolvePicture,
} from '@darkroom/core';
import type { AdmitRequestResult } from '@darkroom/store';
import { admit } from '../admit.ts';
import type { ApiContext } from '../api-context.ts';
import { invalidFields, modelNotFound, modelUnserved, noModels, overloaded } from '../api-error.ts';
import { addRoute, type Api, commonErrors, errorAnswer } from '../api-route.ts';
import { readJsonBody } from '../read-json-body.ts';
import { requestUrls } from '../request-urls.ts';
import { acceptedSchema, pictureBodySchema } from '../api-schemas.ts';

export function addPredictRoute(api: Api, context: ApiContext): void {
  addRoute(api, predictRoute, async (c) => {
    const picture = await resolve(await readJsonBody(c, context.config.maxBodyBytes), context);
    const envelope = createEnvelope(picture, context.clock.now());
    const { position, isPossible } = admitted(await admit(context, envelope), envelope);
    c.set('requestId', envelope.id);
    const urls = requestUrls(envelope.id);
    return c.json(
      { request_id: envelope.id, status: 'queued', queue_position: position, is_possible: isPossible, urls },
      202,
      { Location: urls.self },
    );
  });
}

async function resolve(body: unknown, { models, config, drawSeed }: ApiContext): Promise<ResolvedPicture> {
  const options = {
    defaultModel: config.defaultModel,
    timeoutS: { default: config.requestTimeoutS, max: config.requestTimeoutMaxS },
    drawSeed,
  };
  let cards = await models.list();
  let result = resolvePicture(body, { ...options, cards });
  if (result.status === 'unknown-model') {
    cards = await models.reload();
    result = resolvePicture(body, { ...options, cards });
  }
  if (result.status === 'resolved') return result.picture;
  if (result.status === 'invalid') throw invalidFields(result.problems);
  if (cards.length === 0) throw noModels();
  throw modelNotFound(
    result.model,
    cards.map(({ id }) => id),
  );
}

function createEnvelope(picture: ResolvedPicture, nowMs: number): RequestEnvelope<PictureInput> {
  const { model, input, priority, timeoutS, startTimeoutS } = picture;
  return {
    id: createRequestId({ model, nowMs }),
    model,
    shapeKey: pictureShapeKey(input),
    rows: input.n,
    priority,
    createdAtMs: nowMs,
    deadlineMs: nowMs + Math.ceil(timeoutS * 1000),
    startDeadlineMs: nowMs + Math.ceil(startTimeoutS * 1000),
    input,
  };
}

function admitted(
  result: AdmitRequestResult,
  { model }: RequestEnvelope,
): Extract<AdmitRequestResult, { status: 'admitted' }> {
  switch (result.status) {
    case 'admitted':
      return result;
    case 'overloaded':
      throw overloaded();
    case 'unserved':
      throw modelUnserved(model);
    case 'duplicate':
      // 80 random bits came twice within a millisecond: the source of randomness is broken.
      throw new DarkroomError({ code: 'internal', op: 'api.predict', message: 'A new request id was taken already.' });
  }
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
