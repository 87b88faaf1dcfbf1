import { isTerminalState, type StoredEvent } from '@darkroom/core';
import { text as textKind } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import type { ApiContext } from '../context/context.ts';
import { awaitEnd, preferredWaitMs } from '../follow/await-end.ts';
import { ReceivedOutputs } from '../follow/received-outputs.ts';
import type { ApiCall } from '../http/api-env.ts';
import { invalidField, overloaded } from '../http/api-error.ts';
import { commonErrors, describeErrorAnswer, jsonAnswer, type Route } from '../openapi/api-route.ts';
import { takeBody, type TakenBody } from '../submit/take-body.ts';
import { pathPrefixFor, requestUrls } from '../http/public-url.ts';
import { chooseModel } from '../submit/choose-model.ts';
import { formErrors, submitErrors, submitHeaders } from '../openapi/submit-document.ts';
import { onceStored, type SubmittedRequest, submitRequest } from '../submit/submit-request.ts';
import { acceptedSchema, bodySchema, imageFormSchema, requestSchema } from '../openapi/api-schemas.ts';
import { onlySingleText, isText, streamPlainText, wantsPlainText } from './plain-text.ts';
import { plainTextContent, unfinishedText } from './plain-text-document.ts';
import { requestAnswer } from './request-answer.ts';

const location = { Location: { description: 'Where to poll.', schema: { type: 'string' as const } } };

export const predictRoute: Route = {
  method: 'post',
  path: '/v1/predict',
  operationId: 'submitRequest',
  tag: 'Requests',
  summary: 'Submit a request for images or texts',
  description: `Answers at once with an id to poll, or to follow as events. The schema of the body depends on the kind of its model (\`kind\` in
\`/v1/models\`): \`ImageRequest\` or \`TextRequest\`.

With \`Accept: text/plain\` the answer to a request of a text model is its bare text, chunk by chunk as it is generated (for block
diffusion, final blocks); \`Location\` and \`X-Request-Id\` identify the request. \`n\` must be 1. If the text does not complete,
the connection is aborted. Disconnecting does not cancel the request.

An input image and its mask may be files of a form: its fields are those of the JSON body, as text or as JSON.`,
  request: {
    headers: submitHeaders,
    body: {
      required: true,
      content: {
        'application/json': {
          schema: bodySchema,
          examples: {
            image: { value: { prompt: 'a fox on a green background', num_inference_steps: 12, seed: 7 } },
            text: {
              value: {
                model: 'emoji-writer',
                messages: [{ role: 'user', content: 'something sweet' }],
                max_tokens: 24,
              },
            },
          },
        },
        'multipart/form-data': { schema: imageFormSchema },
      },
    },
  },
  responses: {
    ...commonErrors,
    ...submitErrors,
    ...formErrors,
    200: {
      ...jsonAnswer(
        'The request ended within the time of `Prefer: wait`; or the text, with `Accept: text/plain`.',
        requestSchema,
        location,
      ),
      content: { 'application/json': { schema: requestSchema }, ...plainTextContent },
    },
    422: unfinishedText,
    202: jsonAnswer(
      'Accepted and stored; the full request with `Prefer: wait`.',
      z.union([acceptedSchema, requestSchema]),
      location,
    ),
    400: describeErrorAnswer(
      'A field is invalid. Nothing is stored.',
      invalidField('num_inference_steps', 'fifty', 'a whole number from 1 to 200'),
    ),
    503: describeErrorAnswer(
      'The queue is full (`overloaded`), no worker serves the model (`model_unserved`, if the server is ' +
        'configured to reject then), no worker has published a model yet (`no_models`), the model has a kind that only newer servers support (`kind_unknown`), or Redis is unavailable (`unavailable`).',
      overloaded(),
    ),
  },
  handle(c, context) {
    const fieldsOf = async (body: unknown) => (await modelOf(context, body)).kind.bodySchema.shape;
    return takeBody(c, context, fieldsOf, (taken) => predict(c, context, taken));
  },
};

async function predict(c: ApiCall, context: ApiContext, taken: TakenBody): Promise<Response> {
  const prefer = c.req.header('prefer');
  const waitMs = prefer === undefined ? 0 : preferredWaitMs(prefer);
  const { body } = taken;
  if (wantsPlainText(c) && isText({ kind: (await modelOf(context, body)).kind.id }))
    return streamPlainText(c, context, () => submitSingleText(c, context, taken));
  const { id, state, position, isPossible, eta } = await submitRequest(c, context, taken);
  const urls = requestUrls(id, pathPrefixFor(c));
  c.header('Location', urls.self);
  if (waitMs > 0) {
    // The cast is safe: the body has passed the schema of its kind.
    const isInline = (body as { output?: string }).output === 'inline';
    c.header('Preference-Applied', `wait=${waitMs / 1000}`);
    const received = new ReceivedOutputs();
    const onEvent = (event: StoredEvent): void => (isInline ? received.add(event) : undefined);
    const answered = await onceStored(async () => {
      const request = await awaitEnd(c, context, id, waitMs, onEvent);
      const answer = await requestAnswer(context, request, { isInline, received, pathPrefix: pathPrefixFor(c) });
      return c.json(answer, isTerminalState(request.state) ? 200 : 202);
    });
    if (answered !== undefined) return answered;
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
  c.header('Location', requestUrls(submitted.id, pathPrefixFor(c)).self);
  return submitted;
}
