/** The body of `POST /v1/images/generations`, and how the route is described. */
import { outputFormats } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidField } from '../../http/api-error.ts';
import { errorAnswer, exampleId, type RouteDocument } from '../../http/api-route.ts';
import { submitHeaders } from '../../submit/submit-document.ts';
import type { PartialPicture } from './follow-pictures.ts';
import {
  chunkedFrames,
  type ImageEventName,
  imageEventFrames,
  type ImageFrames,
  imageUsage,
  imageUsageSchema,
} from './image-frames.ts';
import { createImagesBody, openaiFields, pictureFields } from './images-body.ts';
import { answerErrors, requestIdHeader } from '../../follow/answer-document.ts';

export const promptExpected = 'text of 1 to 4000 characters';

export const generationsBody = createImagesBody({
  name: 'ImagesRequest',
  picture: pictureFields,
  openai: openaiFields,
  needed: { prompt: promptExpected },
});

export const imagesResponseSchema = z
  .strictObject({
    created: z.int().openapi({ description: 'Seconds since the epoch.', example: 1_795_225_246 }),
    data: z.array(
      z.strictObject({
        b64_json: z.string().optional().openapi({ description: 'The picture in base64.' }),
        url: z.url().optional().openapi({ description: 'Where to fetch it, with `response_format: "url"`.' }),
      }),
    ),
    background: z.literal('opaque'),
    output_format: z.enum(outputFormats),
    size: z.string(),
    usage: imageUsageSchema,
  })
  .openapi('ImagesResponse', {
    example: {
      created: 1_795_225_246,
      data: [{ url: `http://127.0.0.1:8080/v1/predict/${exampleId}/images/0` }],
      background: 'opaque',
      output_format: 'png',
      size: '128x128',
      usage: imageUsage(20, []),
    },
  });

/** A picture in the making, as the two kinds of streams have it. */
const partial: PartialPicture = {
  type: 'partial',
  imageIndex: 0,
  partialIndex: 0,
  step: 5,
  totalSteps: 20,
  data: Buffer.from('/9j/', 'base64'),
  contentType: 'image/jpeg',
  timestampMs: 1_795_225_246_318,
};
const request = { id: exampleId, input: { width: 128, height: 128, numInferenceSteps: 20, scheduler: 'ddim' } };
const exampleOf = (framesOf: ImageFrames) => ({ value: [...framesOf(partial, request)].join('') });

/** How streams of pictures stand in the document. */
export function streamExamples(what: ImageEventName) {
  return { examples: { openai: exampleOf(imageEventFrames(what)), chunked: exampleOf(chunkedFrames) } };
}

const description = `For OpenAI's SDKs: a view of a request as \`POST /v1/predict\` makes it. The answer waits until all pictures are done.
\`null\` in a field is its default. \`url\`s are whole, under the name by which the client reached the server
(\`X-Forwarded-Proto\` and \`X-Forwarded-Host\` of a proxy in front count). Pictures that take minutes are better streamed:
clients give up on answers whose first byte does not come, most after 5 or 10 minutes.

With \`stream: true\` server-sent events come instead, and the headers at once:

| event | data |
| --- | --- |
| \`image_generation.partial_image\` | \`type\`, \`b64_json\` (a small view, in the format of \`output_format\`), \`partial_image_index\`, \`created_at\`, \`size\` (of the whole picture), \`quality\`, \`background\`, \`output_format\`; and our own \`image_index\`, \`step\`, \`total_steps\`, \`progress\`, \`request_id\` |
| \`image_generation.completed\` | the same without \`partial_image_index\`, and \`usage\`; one for each picture, as soon as it is done |
| \`error\` | as the body of an error, and \`request_id\`; it is the last one |

With \`stream_format: "chunked"\` the frames have no event name, and \`step\`, \`total_steps\`, \`progress\`, \`image\` (base64), \`timestamp\`
(seconds), \`is_final\` (not a partial picture), \`is_chunked\`, \`chunk_id\`, \`chunk_index\`, \`total_chunks\`, \`output_format\`,
\`image_index\` and \`request_id\`. A picture of more than 400 KB comes in several of them: join the \`image\` of all that share a
\`chunk_id\`. Partial pictures are at most \`partial_images\` for each picture. Both end with \`data: [DONE]\`, and a
comment comes every 15 s.

**A client that goes away cancels its request**, streaming or not, unless it sent an \`Idempotency-Key\`: then it may come back for
it. After the request is stored no answer is a 5xx, and none makes an SDK send it a second time: the error is a 422.`;

export const imagesGenerationsDocument: RouteDocument = {
  method: 'post',
  path: '/v1/images/generations',
  summary: 'Ask for pictures as of OpenAI',
  description,
  request: {
    headers: submitHeaders.pick({ 'idempotency-key': true }),
    body: {
      required: true,
      content: {
        'application/json': {
          schema: generationsBody.schema,
          example: { model: 'emoji-sd', prompt: 'a fox on a green background', size: '128x128', n: 1 },
        },
      },
    },
  },
  responses: {
    ...answerErrors('picture'),
    200: {
      description: 'The pictures, or the events.',
      headers: requestIdHeader,
      content: {
        'application/json': { schema: imagesResponseSchema },
        // Without a schema: tools hold each event against it, and OpenAPI 3.1 has no other for the items of a stream.
        'text/event-stream': streamExamples('image_generation'),
      },
    },
    400: errorAnswer(
      'A field is wrong. Nothing is stored.',
      invalidField('partial_images', 9, 'a whole number from 0 to 3'),
    ),
  },
};
