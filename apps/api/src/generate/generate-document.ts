import { invalidField } from '../http/api-error.ts';
import { errorAnswer, type RouteDocument } from '../http/api-route.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { answerErrors, requestIdHeader } from '../follow/answer-document.ts';
import { submitHeaders } from '../submit/submit-document.ts';
import { generateAnswerSchema, generateBodySchema } from './generate-schema.ts';

const description = `One text, with its tokens: a view of a request as \`POST /v1/predict\` makes it. The answer waits until it is
written; with \`stream: true\` server-sent events come instead, and the headers at once:

| event | data |
| --- | --- |
| \`append\` | with \`block_append\`: what was added and stays: \`token_offset\` (tokens before it), \`text\`, \`token_ids\`, \`nfe\`, \`finished\` (true in the last one, which has no text) |
| \`buffer_snapshot\` | with \`denoise\`: the block that is worked on, each time it changes: \`absolute_start\` and \`absolute_end\` (tokens before it, and with it), \`text\` (\`░\` for what is not known), \`token_ids\` (the model’s mask for what is not known), \`nfe\` |
| \`final\` | as the answer without \`stream\` |
| \`error\` | as the body of an error, and \`request_id\`; it is the last one |

\`nfe\` counts the calls of the model after the prompt up to there. The end token is in no \`token_ids\`, nor are tokens of a
stop text. \`data: [DONE]\` follows \`final\`, and a comment comes every 15 s.

**A client that goes away cancels its request**, streaming or not, unless it sent an \`Idempotency-Key\`: then it may come back for
it. After the request is stored no answer is a 5xx: the error is a 422.`;

export const generateDocument: RouteDocument = {
  method: 'post',
  path: '/generate',
  summary: 'Ask for a text with its tokens',
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
      description: 'The text, or the events.',
      headers: requestIdHeader,
      content: {
        'application/json': { schema: generateAnswerSchema },
        // Without a schema: tools hold each event against it, and OpenAPI 3.1 has no other for the items of a stream.
        'text/event-stream': {
          example: sseFrame({
            event: 'append',
            data: { token_offset: 0, text: 'a birthday', token_ids: [68, 967], nfe: 2, finished: false },
          }),
        },
      },
    },
    400: errorAnswer(
      'A field is wrong, or the model cannot do it. Nothing is stored.',
      invalidField('stream_mode', 'denoise', '"block_append": emoji-writer is autoregressive'),
    ),
  },
};
