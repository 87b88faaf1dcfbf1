/** OpenAPI documents and errors of the responses routes. */
import type { RequestState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { ApiError, invalidField, tooManyStreams } from '../http/api-error.ts';
import { describeErrorAnswer, jsonAnswer, requestErrors, type RouteDocument } from '../openapi/api-route.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { answerErrors } from '../openapi/answer-document.ts';
import { submitHeaders } from '../openapi/submit-document.ts';
import { ResponseReader } from './response-events.ts';
import { idOf } from './response-ids.ts';
import { inputItemsSchema, itemsLimit, itemsOrder, limitExpected } from './response-input-items.ts';
import { exampleRequest, responseSchema } from './response-view.ts';
import { responsesBodySchema } from './responses-schema.ts';

export const streamQuery = z.enum(['true', 'false']);
export const streamExpected = 'true or false';
export const startingAfter = z.string().regex(/^\d{1,15}$/);
export const numberExpected = 'the sequence_number of an event, such as 7';

const id = z.string().openapi({ example: idOf('response', exampleRequest.id) });

const deletedSchema = z.strictObject({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) });

export function responseOpen(requestId: string, state: RequestState): ApiError {
  const response = idOf('response', requestId);
  const message = `${response} is ${state}; cancel it first: POST /v1/responses/${response}/cancel.`;
  return new ApiError(409, 'response_open', message);
}

export function notInBackground(requestId: string): ApiError {
  const response = idOf('response', requestId);
  const message = `${response} was not created with "background": true, and only such responses can be cancelled: disconnect instead, or DELETE /v1/predict/${requestId}`;
  return new ApiError(400, 'not_in_background', message);
}

/** The input of a response is deleted with private prompts. */
export function inputGone(requestId: string): ApiError {
  const message = `The input of ${idOf('response', requestId)} is not stored: this server deletes prompts when a request ends.`;
  return new ApiError(410, 'input_gone', message);
}

const tokensSchema = z.strictObject({ object: z.literal('response.input_tokens'), input_tokens: z.int().min(0) });

const bodyDocument = {
  required: true,
  content: {
    'application/json': {
      schema: responsesBodySchema,
      example: { model: 'emoji-writer', input: 'something sweet for a birthday party' },
    },
  },
};

const exampleReader = new ResponseReader(exampleRequest);
const output = {
  index: 0,
  contentType: 'text/plain; charset=utf-8',
  bytes: 5,
  chunks: 1,
  finish_reason: 'stop',
  prompt_tokens: 9,
  completion_tokens: 3,
  cached_tokens: 0,
  calls: 3,
};
const timestampMs = 1_795_225_246_318;
const exampleEvents = [
  exampleReader.read({ type: 'queued', sequence: 1, timestampMs, position: 0, attempt: 1 }),
  exampleReader.read({ type: 'started', sequence: 2, timestampMs, attempt: 1 }),
  exampleReader.read({ type: 'delta', sequence: 3, timestampMs, index: 0, offset: 0, text: 'a fox' }),
  exampleReader.read({ type: 'output', sequence: 4, timestampMs, chunkIndex: 0, output }),
  exampleReader.read({ type: 'succeeded', sequence: 5, timestampMs, outputs: [output] }),
].flat();
const exampleResponse = exampleReader.response;
const responseAnswer = (description: string, headers?: Parameters<typeof jsonAnswer>[2]) => {
  const answer = jsonAnswer(description, responseSchema, headers);
  return { ...answer, content: { 'application/json': { schema: responseSchema, example: exampleResponse } } };
};
const eventStream = {
  // No schema: tools would validate each event against it, and OpenAPI 3.1 has no schema for items of a stream.
  'text/event-stream': {
    example: exampleEvents
      .filter(({ sequence_number: number }) => number > 3 && number < 11)
      .map((event) => sseFrame({ event: event.type, data: event }))
      .join(''),
  },
};
const requestId = {
  'X-Request-Id': {
    description: 'Id of the request, for `/v1/predict/{id}`.',
    schema: { type: 'string' as const },
  },
};

const description = `For OpenAI's SDKs: a view of a text request such as \`POST /v1/predict\` creates. The response's id is \`resp_\` and the id of that request.
Fields of \`POST /v1/predict\` (\`seed\`, \`top_k\`, \`stop\`, \`ignore_eos\`, \`priority\`, …) can be added to OpenAI's; other unknown fields are
ignored. Tools other than functions and images in the input return a 400 that names the field. \`null\` in a field means its default.

With \`stream: true\` the answer is a stream of server-sent events: \`response.created\`, \`response.queued\` (background only), \`response.in_progress\`,
\`response.output_item.added\`, \`response.content_part.added\`, \`response.output_text.delta\` for each chunk of text, then \`response.output_text.done\`,
\`response.content_part.done\` and \`response.output_item.done\`. A function call has \`response.function_call_arguments.delta\` and
\`response.function_call_arguments.done\` between \`response.output_item.added\` and \`.done\`. The last event is \`response.completed\`, \`response.incomplete\`
(\`max_output_tokens\` was reached) or \`response.failed\` (it failed, expired or was canceled; \`status\` is \`cancelled\` if it was canceled), followed by
\`data: [DONE]\`. A stream that cannot continue ends with an event \`error\`; the response itself may still continue.

Every event has a \`sequence_number\`. A delta counts its UTF-16 code units and any other event counts one, so numbers have gaps, and the same number means
the same state on every replica at any time. \`GET /v1/responses/{id}?stream=true&starting_after=<number>\` resumes after an event; chunks may be split differently, but the text is the same.
If a rerun wrote a different text (after a worker or upstream server was lost), resuming beyond the first difference ends in the error \`text_changed\`: fetch the response instead.

**Disconnecting cancels the response**, streaming or not, unless the client sent \`background: true\`
or an \`Idempotency-Key\`. \`previous_response_id\` requires a stored response that has ended; servers that do not store prompts do not support it.`;

export const responsesDocuments = {
  create: {
    method: 'post',
    path: '/v1/responses',
    operationId: 'createResponse',
    tag: 'Chat and text',
    summary: 'Create a response (OpenAI-compatible)',
    description,
    request: {
      headers: submitHeaders.pick({ 'idempotency-key': true }),
      body: bodyDocument,
    },
    responses: {
      ...answerErrors('text'),
      200: {
        ...responseAnswer(
          'The response, or a stream of events. With `background: true`, the queued response.',
          requestId,
        ),
        content: { ...responseAnswer('').content, ...eventStream },
      },
      400: describeErrorAnswer(
        'A field is wrong. Nothing is stored.',
        invalidField('tools.0.type', 'web_search', '"function": other tools are not supported'),
      ),
    },
  },
  get: {
    method: 'get',
    path: '/v1/responses/{id}',
    operationId: 'getResponse',
    tag: 'Chat and text',
    summary: 'Get a response, or stream its events',
    description: 'Works on any replica, while the request is stored. Disconnecting does not cancel the response.',
    params: { id },
    request: {
      query: z.object({
        stream: streamQuery
          .optional()
          .openapi({ description: 'Streams all events, or those after `starting_after`. Default: false.' }),
        starting_after: startingAfter
          .optional()
          .openapi({ description: 'The `sequence_number` of the last event seen. With `stream=true`.', example: '7' }),
      }),
    },
    responses: {
      ...requestErrors,
      200: {
        ...responseAnswer('The response, or a stream of events.'),
        content: { ...responseAnswer('').content, ...eventStream },
      },
      400: describeErrorAnswer('The query is wrong.', invalidField('starting_after', 'abc', numberExpected)),
      429: describeErrorAnswer('The key has reached its limit of open event streams.', tooManyStreams(5000)),
    },
  },
  inputItems: {
    method: 'get',
    path: '/v1/responses/{id}/input_items',
    operationId: 'listResponseInputItems',
    tag: 'Chat and text',
    summary: 'List the input items of a response',
    description: 'Pages of the full conversation before the answer, without instructions.',
    params: { id },
    request: {
      query: z.object({
        limit: itemsLimit.optional().openapi({ description: `Items per page, ${limitExpected}. Default: 20.` }),
        order: itemsOrder.optional().openapi({ description: 'Order by age; `desc`: newest first. Default: desc.' }),
        after: z.string().optional().openapi({ description: 'Id of the item before the page.' }),
      }),
    },
    responses: {
      ...requestErrors,
      200: jsonAnswer('A page of items.', inputItemsSchema),
      400: describeErrorAnswer('The query is wrong.', invalidField('limit', '500', limitExpected)),
    },
  },
  inputTokens: {
    method: 'post',
    path: '/v1/responses/input_tokens',
    operationId: 'countInputTokens',
    tag: 'Chat and text',
    summary: 'Count the tokens of an input',
    description: 'Validates a body of `POST /v1/responses` and counts its input tokens. Stores nothing.',
    request: { body: bodyDocument },
    responses: {
      ...answerErrors('text'),
      200: jsonAnswer('Number of input tokens.', tokensSchema),
      400: describeErrorAnswer(
        'A field is wrong.',
        invalidField('input', '', 'text, or a list of at least one message'),
      ),
    },
  },
  cancel: {
    method: 'post',
    path: '/v1/responses/{id}/cancel',
    operationId: 'cancelResponse',
    tag: 'Chat and text',
    summary: 'Cancel a response',
    description:
      'Answers when the request has left the model, after its current step, or after 5 s. A response that has ended does not change.',
    params: { id },
    responses: {
      ...requestErrors,
      200: responseAnswer('The response.'),
      400: describeErrorAnswer('The response was not created in the background.', notInBackground(exampleRequest.id)),
    },
  },
  remove: {
    method: 'delete',
    path: '/v1/responses/{id}',
    operationId: 'deleteResponse',
    tag: 'Chat and text',
    summary: 'Delete a response that has ended',
    description:
      'Deletes the request and its results at once. Its bytes still count towards the limit of the key until they would have expired.',
    params: { id },
    responses: {
      ...requestErrors,
      200: jsonAnswer('Deleted.', deletedSchema),
      409: describeErrorAnswer('The response has not ended.', responseOpen(exampleRequest.id, 'running')),
    },
  },
} as const satisfies Record<string, RouteDocument>;
