/** How the routes of responses stand in the OpenAPI document. */
import type { RequestState } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { ApiError, invalidField, tooManyStreams } from '../http/api-error.ts';
import { errorAnswer, jsonAnswer, requestErrors, type RouteDocument } from '../http/api-route.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { answerErrors } from '../follow/answer-document.ts';
import { submitHeaders } from '../submit/submit-document.ts';
import { ResponseReader } from './response-events.ts';
import { idOf } from './response-ids.ts';
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
  // Without a schema: tools hold each event against it, and OpenAPI 3.1 has no other for the items of a stream.
  'text/event-stream': {
    example: exampleEvents
      .filter(({ sequence_number: number }) => number > 3 && number < 11)
      .map((event) => sseFrame({ event: event.type, data: event }))
      .join(''),
  },
};
const requestId = {
  'X-Request-Id': {
    description: 'The id of the request, as `/v1/predict/{id}` takes it.',
    schema: { type: 'string' as const },
  },
};

const description = `For OpenAI's SDKs: a view of a request for text as \`POST /v1/predict\` makes it, whose id is \`resp_\` and the id of that request.
Fields of \`POST /v1/predict\` (\`seed\`, \`top_k\`, \`stop\`, \`ignore_eos\`, \`priority\`, …) may stand beside OpenAI's; other unknown fields are
ignored. There are no tools but functions, and no pictures in the input: a 400 names the field. \`null\` in a field is its default.

With \`stream: true\` server-sent events come: \`response.created\`, \`response.queued\`, \`response.in_progress\`, \`response.output_item.added\`,
\`response.content_part.added\`, \`response.output_text.delta\` for each piece of text that stays, then \`response.output_text.done\`,
\`response.content_part.done\`, \`response.output_item.done\` (of a call of a function \`response.function_call_arguments.delta\` and
\`response.function_call_arguments.done\` between \`response.output_item.added\` and \`.done\`) and at the end \`response.completed\`, \`response.incomplete\` (\`max_output_tokens\` were
written) or \`response.failed\` (it failed, its time was over, or it was canceled: its \`status\` is \`cancelled\` then). \`data: [DONE]\` follows. An event
\`error\` is the last of a stream that cannot go on; the response may go on without it.

Every event has a \`sequence_number\`, which counts units of text and of arguments, and other events: the same number is the same state, at every replica and at any time, so numbers
grow and jump. \`GET /v1/responses/{id}?stream=true&starting_after=<number>\` goes on after it. Pieces may be cut elsewhere then; the text is the same.
Where a rerun wrote another text (a worker or the server behind it was lost), numbers after the place where the texts differ end in the error \`text_changed\`: fetch the response.

**A client that goes away cancels its response**, streaming or not, unless it sent \`background: true\` or an \`Idempotency-Key\`.
\`previous_response_id\` takes a response that is kept and has come to its end; on a server that keeps no prompts there is none.`;

export const responsesDocuments = {
  create: {
    method: 'post',
    path: '/v1/responses',
    summary: 'Ask for text as of OpenAI’s responses',
    description,
    request: {
      headers: submitHeaders.pick({ 'idempotency-key': true }),
      body: {
        required: true,
        content: {
          'application/json': {
            schema: responsesBodySchema,
            example: { model: 'emoji-writer', input: 'something sweet for a birthday party' },
          },
        },
      },
    },
    responses: {
      ...answerErrors('text'),
      200: {
        ...responseAnswer('The response, or the events. With `background: true` as it is now: queued.', requestId),
        content: { ...responseAnswer('').content, ...eventStream },
      },
      400: errorAnswer(
        'A field is wrong. Nothing is stored.',
        invalidField('tools.0.type', 'web_search', '"function": there are no other tools here'),
      ),
    },
  },
  get: {
    method: 'get',
    path: '/v1/responses/{id}',
    summary: 'A response as it is by now, or its events',
    description: 'At any replica, for as long as the request is kept. Going away cancels nothing.',
    params: { id },
    request: {
      query: z.object({
        stream: streamQuery
          .optional()
          .openapi({ description: 'Its events, from the first, or after a number. Default: false.' }),
        starting_after: startingAfter
          .optional()
          .openapi({ description: 'The `sequence_number` of the last event seen. With `stream=true`.', example: '7' }),
      }),
    },
    responses: {
      ...requestErrors,
      200: {
        ...responseAnswer('The response, or the events.'),
        content: { ...responseAnswer('').content, ...eventStream },
      },
      400: errorAnswer('The query is wrong.', invalidField('starting_after', 'abc', numberExpected)),
      429: errorAnswer('The key has as many open event streams as it may.', tooManyStreams(5000)),
    },
  },
  cancel: {
    method: 'post',
    path: '/v1/responses/{id}/cancel',
    summary: 'Cancel a response',
    description:
      'Answers when it has left, at its next step, or after 5 s; one that has ended stays as it is. Also one that is not in the background.',
    params: { id },
    responses: { ...requestErrors, 200: responseAnswer('The response.') },
  },
  remove: {
    method: 'delete',
    path: '/v1/responses/{id}',
    summary: 'Remove a response that has ended',
    description:
      'The whole request, at once; what it kept counts among the bytes of its key until its time would have been over.',
    params: { id },
    responses: {
      ...requestErrors,
      200: jsonAnswer('It is gone.', deletedSchema),
      409: errorAnswer('It has not ended.', responseOpen(exampleRequest.id, 'running')),
    },
  },
} as const satisfies Record<string, RouteDocument>;
