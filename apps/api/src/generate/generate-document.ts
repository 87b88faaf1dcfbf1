import { invalidField } from '../http/api-error.ts';
import { describeErrorAnswer, exampleId, type RouteDocument } from '../openapi/api-route.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { answerErrors, requestIdHeader } from '../openapi/answer-document.ts';
import { submitHeaders } from '../openapi/submit-document.ts';
import { generateAnswerSchema, generateBodySchema } from './generate-schema.ts';

const description = `Generates one text, with its tokens: a view of a request such as \`POST /v1/predict\` creates. The answer is sent when the text is
complete. With \`stream: true\` the answer is a stream of server-sent events, whose headers are sent at once:

| event | data |
| --- | --- |
| \`append\` | with \`block_append\`: final text that was added: \`token_offset\` (number of tokens before it), \`text\`, \`token_ids\`, \`nfe\`, \`finished\` (true in the last event, which has no text) |
| \`buffer_snapshot\` | with \`denoise\`: the current block, each time it changes: \`absolute_start\` and \`absolute_end\` (number of tokens before and up to its end), \`text\` (\`░\` for masked tokens), \`token_ids\` (the model’s mask id for masked tokens), \`nfe\` |
| \`final\` | the answer as without \`stream\` |
| \`error\` | the body of an error, with \`request_id\`; always the last event |

\`nfe\` (number of function evaluations) counts the model calls after the prompt. \`token_ids\` exclude the end token and the tokens of a
stop text. All events have the \`request_id\` and an \`id:\`, the position after which \`GET /v1/predict/{id}/events\` resumes. \`data: [DONE]\`
follows \`final\`, and a comment is sent every 15 s as a heartbeat.

**Disconnecting cancels the request**, streaming or not, unless the client sent an \`Idempotency-Key\`,
with which it can fetch the result later. After the request is stored, errors are 422, never 5xx.`;

export const generateDocument: RouteDocument = {
  method: 'post',
  path: '/generate',
  operationId: 'generateText',
  tag: 'Chat and text',
  summary: 'Generate a text with its tokens',
  description,
  request: {
    headers: submitHeaders.pick({ 'idempotency-key': true }),
    body: {
      required: true,
      content: {
        'application/json': {
          schema: generateBodySchema,
          example: { prompt: 'Once upon a time', max_tokens: 24, temperature: 0, stream: false },
        },
      },
    },
  },
  responses: {
    ...answerErrors('text'),
    200: {
      description: 'The text, or a stream of events.',
      headers: requestIdHeader,
      content: {
        'application/json': { schema: generateAnswerSchema },
        // No schema: tools would validate each event against it, and OpenAPI 3.1 has no schema for items of a stream.
        'text/event-stream': {
          example: sseFrame({
            event: 'append',
            id: '3-0',
            data: {
              token_offset: 0,
              text: 'a birthday',
              token_ids: [68, 967],
              nfe: 2,
              finished: false,
              request_id: exampleId,
            },
          }),
        },
      },
    },
    400: describeErrorAnswer(
      'A field is wrong, or the model does not support it. Nothing is stored.',
      invalidField('stream_mode', 'denoise', '"block_append": emoji-writer is autoregressive'),
    ),
  },
};
