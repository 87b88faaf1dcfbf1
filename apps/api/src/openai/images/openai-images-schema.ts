/** Request body, answer and OpenAPI document of `POST /v1/images/generations`. */
import { outputFormats } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidField } from '../../http/api-error.ts';
import { describeErrorAnswer, exampleId, type RouteDocument } from '../../openapi/api-route.ts';
import { submitHeaders } from '../../openapi/submit-document.ts';
import type { PartialImage } from './follow-images.ts';
import {
  chunkedFrames,
  type ImageEventName,
  imageEventFrames,
  type ImageFrames,
  imageUsage,
  imageUsageSchema,
} from './image-frames.ts';
import { createImagesBody, openaiFields, partialImagesExpected, imageFields } from './images-body.ts';
import { answerErrors, requestIdHeader } from '../../openapi/answer-document.ts';

export const imagePromptExpected = 'text of 1 to 4000 characters';

export const generationsBody = createImagesBody({
  name: 'ImagesRequest',
  image: imageFields,
  openai: openaiFields,
  needed: { prompt: imagePromptExpected },
});

export const imagesResponseSchema = z
  .strictObject({
    created: z.int().openapi({ description: 'Seconds since the epoch.', example: 1_795_225_246 }),
    data: z.array(
      z.strictObject({
        b64_json: z.string().optional().openapi({ description: 'The image in base64.' }),
        url: z.url().optional().openapi({ description: 'URL of the image, with `response_format: "url"`.' }),
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

/** Sample preview, encoded for the examples of both stream formats. */
const partial: PartialImage = {
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

/** Returns examples of image streams for the OpenAPI document. */
export function streamExamples(eventName: ImageEventName) {
  return { examples: { openai: exampleOf(imageEventFrames(eventName)), chunked: exampleOf(chunkedFrames) } };
}

const description = `For OpenAI's SDKs: a view of a request such as \`POST /v1/predict\` creates. The answer is sent when all images are done.
\`null\` in a field means its default. Each \`url\` is absolute and uses the host name by which the client reached the server
(\`X-Forwarded-Proto\` and \`X-Forwarded-Host\` of a proxy count). Stream images that take minutes:
most clients time out if an answer does not begin within 5 or 10 minutes.

With \`stream: true\` the answer is a stream of server-sent events, whose headers are sent at once:

| event | data |
| --- | --- |
| \`image_generation.partial_image\` | \`type\`, \`b64_json\` (a small view, in the format of \`output_format\`), \`partial_image_index\`, \`created_at\`, \`size\` (of the full image), \`quality\`, \`background\`, \`output_format\`; and our additional \`image_index\`, \`step\`, \`total_steps\`, \`progress\`, \`request_id\` |
| \`image_generation.completed\` | the same without \`partial_image_index\`, with \`usage\`; one for each image, as soon as it is done |
| \`error\` | the body of an error, with \`request_id\`; always the last event |

With \`stream_format: "chunked"\` the frames have no event name. Their fields are \`step\`, \`total_steps\`, \`progress\`, \`image\` (base64), \`timestamp\`
(seconds), \`is_final\` (not a partial image), \`is_chunked\`, \`chunk_id\`, \`chunk_index\`, \`total_chunks\`, \`output_format\`,
\`image_index\` and \`request_id\`. An image of more than 400 KB is split into several frames: join the \`image\` of all frames with the same
\`chunk_id\`. Each image has at most \`partial_images\` partial images: up to 3 in OpenAI's events, any number or \`"every"\` in chunked frames.
Both formats end with \`data: [DONE]\` and send a comment every 15 s as a heartbeat.

**Disconnecting cancels the request**, streaming or not, unless the client sent an \`Idempotency-Key\`,
with which it can fetch the result later. After the request is stored, errors are 422, never 5xx, so that SDKs do not send it again.`;

export const imagesGenerationsDocument: RouteDocument = {
  method: 'post',
  path: '/v1/images/generations',
  operationId: 'createImages',
  tag: 'Images',
  summary: 'Create images (OpenAI-compatible)',
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
    ...answerErrors('image'),
    200: {
      description: 'The images, or a stream of events.',
      headers: requestIdHeader,
      content: {
        'application/json': { schema: imagesResponseSchema },
        // Omit the schema: OpenAPI 3.1 cannot describe a single event, and tools would apply the schema to each.
        'text/event-stream': streamExamples('image_generation'),
      },
    },
    400: describeErrorAnswer(
      'A field is wrong. Nothing is stored.',
      invalidField('partial_images', 9, partialImagesExpected),
    ),
  },
};
