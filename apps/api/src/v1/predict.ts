import { isTerminalState, type RequestEvent } from '@darkroom/core';
import { text as textKind } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context.ts';
import { awaitEnd, preferredWaitMs } from '../follow/await-end.ts';
import { HeardOutputs } from '../follow/heard-outputs.ts';
import type { ApiCall } from '../http/api-env.ts';
import { invalidField, overloaded } from '../http/api-error.ts';
import { commonErrors, errorAnswer, jsonAnswer, type Route } from '../http/api-route.ts';
import { takeBody, type TakenBody } from '../http/take-body.ts';
import { requestUrls } from '../http/urls.ts';
import { chooseModel } from '../submit/choose-model.ts';
import { formErrors, submitErrors, submitHeaders } from '../submit/submit-document.ts';
import { onceStored, type SubmittedRequest, submitRequest } from '../submit/submit-request.ts';
import { acceptedSchema, bodySchema, pictureFormSchema, requestSchema } from './api-schemas.ts';
import { onlySingleText, isText, streamPlainText, wantsPlainText } from './plain-text.ts';
import { plainTextContent, unfinishedText } from './plain-text-document.ts';
import { requestAnswer } from './request-answer.ts';

const location = { Location: { description: 'Where to poll.', schema: { type: 'string' as const } } };

export const predictRoute: Route = {
  method: 'post',
  path: '/v1/predict',
  summary: 'Ask for pictures or texts',
  description: `Answers at once with an id to poll, or to follow as events. What a body may hold depends on the kind of its model (\`kind\` in
\`/v1/models\`): a \`PictureRequest\` or a \`TextRequest\`.

With \`Accept: text/plain\` the answer to a request of a text model is its text, chunk by chunk as it is written (of block diffusion,
blocks as they are settled), without anything around it; \`Location\` and \`X-Request-Id\` say where the request is. \`n\` must
be 1. A text that does not come to its end breaks the connection off. Whoever goes away cancels nothing.

A picture to begin with, and its mask, may come as files of a form: the fields of the form are those of the JSON body, as text or as JSON.`,
  request: {
    headers: submitHeaders,
    body: {
      required: true,
      content: {
        'application/json': {
          schema: bodySchema,
          examples: {
            picture: { value: { prompt: 'a fox on a green background', num_inference_steps: 12, seed: 7 } },
            text: {
              value: {
                model: 'emoji-writer',
                messages: [{ role: 'user', content: 'something sweet' }],
                max_tokens: 24,
              },
            },
          },
        },
        'multipart/form-data': { schema: pictureFormSchema },
      },
    },
  },
  responses: {
    ...commonErrors,
    ...submitErrors,
    ...formErrors,
    200: {
      ...jsonAnswer(
        'Ended while `Prefer: wait` waited; or the text, with `Accept: text/plain`.',
        requestSchema,
        location,
      ),
      content: { 'application/json': { schema: requestSchema }, ...plainTextContent },
    },
    422: unfinishedText,
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
  handle(c, context) {
    const fieldsOf = async (body: unknown) => (await modelOf(context, body)).kind.bodySchema.shape;
    return takeBody(c, context, fieldsOf, (taken) => predict(c, context, taken));
  },
};

async function predict(c: ApiCall, context: ApiContext, taken: TakenBody): Promise<Response> {
  const waitMs = preferredWaitMs(c.req.header('prefer'));
  const { body } = taken;
  if (wantsPlainText(c) && isText({ kind: (await modelOf(context, body)).kind.id }))
    return streamPlainText(c, context, () => submitSingleText(c, context, taken));
  const { id, state, position, isPossible, eta } = await submitRequest(c, context, taken);
  const urls = requestUrls(id);
  c.header('Location', urls.self);
  if (waitMs > 0) {
    // It has passed the schema of its kind.
    const isInline = (body as { output?: string }).output === 'inline';
    c.header('Preference-Applied', `wait=${waitMs / 1000}`);
    const heard = new HeardOutputs();
    const hear = (event: RequestEvent): void => (isInline ? heard.hear(event) : undefined);
    const request = await onceStored(() => awaitEnd(c, context, id, waitMs, hear));
    if (request !== undefined) {
      const answer = await requestAnswer(context, request, { isInline, heard });
      return c.json(answer, isTerminalState(request.state) ? 200 : 202);
    }
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
}

function modelOf(context: ApiContext, body: unknown) {
  return chooseModel(context, { body, defaultModel: context.config.defaultModel });
}

async function submitSingleText(c: ApiCall, context: ApiContext, taken: TakenBody): Promise<SubmittedRequest> {
  const submitted = await submitRequest(c, context, { ...taken, kind: textKind.id, refine: onlySingleText });
  c.header('Location', requestUrls(submitted.id).self);
  return submitted;
}
