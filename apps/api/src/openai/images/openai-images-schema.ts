/** The body of `POST /v1/images/generations`, what OpenAI's clients send and fields of our own beside it, and how the route is described. */
import { type FieldProblem, fieldProblems, invalidValue } from '@darkroom/core';
import { foreignPictureFields, outputFormats, pictureSchema } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { invalidField, invalidFields } from '../../http/api-error.ts';
import { errorAnswer, exampleId, type RouteDocument } from '../../http/api-route.ts';
import { submitHeaders } from '../../submit/submit-document.ts';
import type { PartialPicture } from './follow-pictures.ts';
import { chunkedFrames, imageEventFrames, type ImageFrames, imageUsage, imageUsageSchema } from './image-frames.ts';
import { answerErrors, requestIdHeader } from '../../follow/answer-document.ts';

const maxPartialImages = 3;

const { model, prompt, ...others } = pictureSchema.pick({
  model: true,
  prompt: true,
  negative_prompt: true,
  size: true,
  n: true,
  num_inference_steps: true,
  guidance_scale: true,
  guidance_rescale: true,
  seed: true,
  output_format: true,
  output_compression: true,
}).shape;
/** As `POST /v1/predict` has them; the model says what they may be. */
const pictureFields = { prompt, model, ...others };

function oneOf<const Values extends readonly [string, ...string[]]>(values: Values, expected: string, text: string) {
  return z.enum(values, { error: expected }).optional().meta({ description: text });
}

const partialImagesExpected = `a whole number from 0 to ${maxPartialImages}`;
const trueOrFalse = 'true or false';

const openaiFields = {
  response_format: oneOf(
    ['b64_json', 'url'],
    'b64_json or url',
    'The pictures themselves, or where to fetch them. Default: b64_json. Streams have no url.',
  ),
  stream: z.boolean({ error: trueOrFalse }).optional().meta({ description: 'Server-sent events. Default: false.' }),
  stream_format: oneOf(
    ['openai', 'chunked'],
    'openai or chunked',
    'What a stream is made of: events as of OpenAI, or frames that are small enough for every client. Default: openai.',
  ),
  partial_images: z
    .int({ error: partialImagesExpected })
    .min(0, { error: partialImagesExpected })
    .max(maxPartialImages, { error: partialImagesExpected })
    .optional()
    .meta({ description: 'How often a stream shows a picture before it is done, spread over its steps. Default: 0.' }),
  user: z.string({ error: 'text' }).optional().meta({ description: 'Ignored, and kept nowhere.' }),
  quality: oneOf(
    ['auto', 'standard'],
    'auto or standard (num_inference_steps says how much work a picture is)',
    'For clients that always send it.',
  ),
  background: oneOf(['auto', 'opaque'], 'auto or opaque', 'For clients that always send it: pictures are opaque.'),
  moderation: oneOf(
    ['auto', 'low'],
    'auto or low',
    'For clients that always send it: the server decides what is refused.',
  ),
  style: oneOf(['vivid'], 'vivid (the prompt says the style)', 'For clients that always send OpenAI’s default.'),
};

const strictSchema = z.strictObject({ ...pictureFields, ...openaiFields });
const known = Object.keys(strictSchema.shape);

/** As it stands in the document: SDKs of OpenAI may send null for what has a default. */
export const imagesBodySchema = z
  .strictObject({
    prompt: prompt.clone(),
    ...Object.fromEntries(
      Object.entries(strictSchema.shape)
        .filter(([name]) => name !== 'prompt')
        .map(([name, schema]) => [name, schema.nullable()]),
    ),
  })
  .openapi('ImagesRequest');

/** What this route makes of a body. Throws 400 with all that is wrong; what is wrong with the `picture` alone is said by who knows its model. */
export function parseImagesBody(body: unknown) {
  const given = withoutNulls(body);
  const { data, error } = strictSchema.safeParse(given);
  if (error !== undefined && error.issues.some(({ path }) => !isPictureField(path[0])))
    throw invalidFields(fieldProblems(error.issues, { body: given, known, foreignNames: foreignPictureFields }));
  const fields = (data ?? given) as z.infer<typeof strictSchema>;
  const problems = combinationProblems(fields);
  if (problems.length > 0) throw invalidFields(problems);
  const { response_format: responseFormat = 'b64_json', stream, stream_format, partial_images = 0 } = fields;
  return {
    /** For `submitRequest`, which checks it. */
    picture: Object.fromEntries(Object.entries(fields).filter(([name]) => isPictureField(name))),
    responseFormat,
    /** Undefined: one answer when all is done. */
    stream: stream === true ? (stream_format ?? 'openai') : undefined,
    partialImages: partial_images,
  };
}

function isPictureField(name: PropertyKey | undefined): boolean {
  return typeof name === 'string' && Object.hasOwn(pictureFields, name);
}

function withoutNulls(body: unknown): unknown {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) return body;
  return Object.fromEntries(Object.entries(body).filter(([name, value]) => value !== null || name === 'prompt'));
}

/** Fields that would silently do nothing. */
function combinationProblems(fields: z.infer<typeof strictSchema>): FieldProblem[] {
  const { stream, stream_format, partial_images, response_format } = fields;
  const checks: [isWrong: boolean, field: keyof typeof fields, expected: string][] = [
    [stream !== true && stream_format !== undefined, 'stream_format', 'none without stream: true'],
    [stream !== true && (partial_images ?? 0) > 0, 'partial_images', '0 without stream: true'],
    [stream === true && response_format === 'url', 'response_format', 'b64_json with stream: true'],
  ];
  return checks
    .filter(([isWrong]) => isWrong)
    .map(([, field, expected]) => invalidValue(field, fields[field], expected));
}

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
const request = { id: exampleId, input: { width: 128, height: 128, numInferenceSteps: 20 } };
const exampleOf = (framesOf: ImageFrames) => ({ value: [...framesOf(partial, request)].join('') });

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
          schema: imagesBodySchema,
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
        'text/event-stream': {
          examples: {
            openai: exampleOf(imageEventFrames),
            chunked: exampleOf(chunkedFrames),
          },
        },
      },
    },
    400: errorAnswer(
      'A field is wrong. Nothing is stored.',
      invalidField('partial_images', 9, 'a whole number from 0 to 3'),
    ),
  },
};
