/** Converts fal's input to a body of `POST /v1/predict`. Also errors and OpenAPI documents of the fal routes. */
import { maxLoras, outputFormats } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { describeExternalAnswer as json, createExternalDocuments } from '../compat/compat-document.ts';
import { commonFields, pickCommonFields, schedulerField, unsupportedField } from '../compat/compat-input.ts';
import { safetyCheckerField } from '../compat/compat-images.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { ApiError, type ErrorView, invalidField } from '../http/api-error.ts';
import { exampleId } from '../openapi/api-route.ts';
import { imageBodySchema } from '../openapi/api-schemas.ts';

/** fal's named sizes in pixels. A model may not support all of them. */
const sizes: Readonly<Record<string, string>> = {
  square_hd: '1024x1024',
  square: '512x512',
  portrait_4_3: '768x1024',
  portrait_16_9: '576x1024',
  landscape_4_3: '1024x768',
  landscape_16_9: '1024x576',
};
/** Schedulers by their names in fal-ai/lora. The model's names work too. */
const schedulers = [
  'DDIM',
  'Euler',
  'Euler A',
  'DPM++ 2M',
  'DPM++ 2M Karras',
  'DPM++ 2M SDE',
  'DPM++ 2M SDE Karras',
  'LCM',
];
const sizeExpected = `one of ${Object.keys(sizes).join(', ')} or {"width": pixels, "height": pixels}`;
const pixels = z.int().min(1).max(99_999);
const format = z
  .enum(outputFormats, { error: `one of ${outputFormats.join(', ')}` })
  .optional()
  .openapi({ description: 'Default: png.' });
const loras = z
  .array(
    z.strictObject(
      {
        path: z.string({ error: 'the id of a lora' }).min(1).max(64),
        scale: z.number({ error: 'a number' }).optional(),
      },
      { error: 'an object with path and, if not 1, scale' },
    ),
    { error: 'a list of {"path": the id of a lora, "scale": a number}' },
  )
  .optional()
  .openapi({ description: 'Adapters: `path` is an id of the model’s `loras` in /v1/models, not a URL.' });
const emptyList = z.array(z.unknown()).max(0, { error: 'an empty list: embeddings are not supported' }).optional();

export const falSchema = z
  .strictObject({
    ...commonFields,
    image_size: z
      .union([z.enum(Object.keys(sizes)), z.strictObject({ width: pixels, height: pixels })], { error: sizeExpected })
      .optional()
      .openapi({
        description:
          "One of fal's named sizes, or width and height; the model must support it. Default: the model's default size.",
        example: { width: 128, height: 128 },
      }),
    prompt_weighting: z
      .boolean({ error: 'true or false' })
      .optional()
      .openapi({ description: 'Sets `prompt_syntax` of `POST /v1/predict` to "webui". Default: false.' }),
    num_images: imageBodySchema.shape.n,
    image_url: imageBodySchema.shape.image,
    mask_url: imageBodySchema.shape.mask,
    strength: imageBodySchema.shape.strength,
    scheduler: schedulerField(schedulers),
    output_format: format,
    format: format.openapi({ description: 'Alias of output_format.' }),
    sync_mode: unsupportedField(false, 'images come as URLs'),
    enable_safety_checker: safetyCheckerField,
    expand_prompt: unsupportedField(false, 'prompts are used unchanged'),
    acceleration: unsupportedField('none', 'acceleration is not supported'),
    loras,
    embeddings: emptyList,
  })
  .openapi('FalInput');

/** fal's names of our body fields, where they differ. */
export const falNames = {
  prompt_syntax: 'prompt_weighting',
  size: 'image_size',
  preview: 'num_inference_steps',
  n: 'num_images',
  image: 'image_url',
  mask: 'mask_url',
  start_timeout_s: 'x-fal-request-timeout',
  webhook_url: 'fal_webhook',
  ...Object.fromEntries(Array.from({ length: maxLoras }, (_, at) => [`loras.${at}.id`, `loras.${at}.path`])),
};

export function falToImageBody(input: z.infer<typeof falSchema>): Record<string, unknown> {
  const { image_size: size, num_images: n, scheduler, output_format, format } = input;
  if (output_format !== undefined && format !== undefined && format !== output_format)
    throw invalidField('format', format, `nothing, or the same as output_format: ${output_format}`);
  return {
    ...pickCommonFields(input),
    prompt_syntax: input.prompt_weighting === true ? 'webui' : undefined,
    n,
    image: input.image_url,
    mask: input.mask_url,
    strength: input.strength,
    size: typeof size === 'object' ? `${size.width}x${size.height}` : size && sizes[size],
    scheduler,
    output_format: output_format ?? format,
    loras: input.loras?.map(({ path: id, scale }) => ({ id, scale })),
  };
}

export const idHeader = 'x-fal-request-id';

/** Formats errors for fal's client: wrong fields in FastAPI's format, all others in fal's, with `message` in both. */
export const falError: ErrorView = ({ status, code, message, problems }, requestId) => {
  const detail = problems.map(({ field, code, message: msg }) => ({
    loc: field === undefined ? ['body'] : ['body', ...field.split('.')],
    msg,
    type: {
      invalid_value: 'value_error',
      missing_field: 'missing',
      unknown_field: 'extra_forbidden',
      invalid_body: 'json_invalid',
      context_length_exceeded: 'value_error',
    }[code],
  }));
  return {
    status: detail.length > 0 ? 422 : status,
    body: { message, detail: detail.length > 0 ? detail : message, error_type: code },
    headers: { 'x-fal-error-type': code, ...(requestId === undefined ? {} : { [idHeader]: requestId }) },
  };
};

const exampleUrl = `http://127.0.0.1:8080/fal/queue/darkroom/emoji-sd/requests/${exampleId}`;
const exampleUrls = {
  request_id: exampleId,
  response_url: exampleUrl,
  status_url: `${exampleUrl}/status`,
  cancel_url: `${exampleUrl}/cancel`,
};
const exampleResult = {
  images: [
    {
      url: `http://127.0.0.1:8080/v1/predict/${exampleId}/images/0`,
      width: 128,
      height: 128,
      content_type: 'image/png',
      file_size: 20_480,
    },
  ],
  seed: 7,
  prompt: 'a fox on a green background',
  timings: { inference: 1.52 },
};

const { route, refusals } = createExternalDocuments('fal', falError, {
  owner: z.string().openapi({ description: 'Any value; ignored.', example: 'darkroom' }),
  app: z.string().openapi({ description: 'A model of /v1/models.', example: 'emoji-sd' }),
  id: z.string().openapi({ example: exampleId }),
});
const wrongField = json(
  'A field is wrong (`ValidationError`). Nothing is stored.',
  falError(invalidField('num_images', 20, 'a whole number from 1 to 10'), undefined).body,
);
const problem = (description: string, code: string, message = description) =>
  json(description, falError(new ApiError(400, code, message), undefined).body);
const failures = {
  424: problem('The request failed.', 'worker_lost', 'The workers that ran this request were lost.'),
  499: problem('The request was canceled.', 'client_cancelled'),
  504: problem(
    'The request did not end in time; `X-Fal-Request-Timeout-Type: user` keeps the client from sending it again.',
    'request_timeout',
    'The request did not end in time.',
  ),
};
export const priorityHeader = z.enum(['normal', 'low']).optional();
const headers = z.object({
  'x-fal-request-timeout': z.string().optional().openapi({ description: 'Seconds; sets `start_timeout_s`.' }),
  'x-fal-queue-priority': priorityHeader.openapi({ description: '`low` sets priority 10.' }),
});
const webhookQuery = z.object({
  fal_webhook: z.string().optional().openapi({ description: 'URL to which the result or the error is POSTed.' }),
});
const image = { prompt: 'a fox on a green background', image_size: { width: 128, height: 128 }, seed: 7 };
const body = { required: true, content: { 'application/json': { schema: falSchema, example: image } } };
const logs = z.object({ logs: z.enum(['0', '1']).optional().openapi({ description: '1: include progress lines.' }) });
const events = (description: string, data: object) => ({
  description,
  content: { 'text/event-stream': { example: sseFrame({ data }) } },
});
const howTo = `For the unmodified \`@fal-ai/client\`: \`fal.config({ proxyUrl: { url: 'http://127.0.0.1:8080/fal/proxy', when: 'always' } })\`.
It sends all requests to that URL and names the route below in \`x-fal-target-url\`. Endpoints are \`<anything>/<model>\`. Unlisted fields are
errors; fields with a single allowed value are not supported otherwise. Results have \`has_nsfw_concepts\` if a safety checker checked the images; images are png
unless \`output_format\` is set. If the server requires keys, image URLs are signed links that open one image without a key. fal's storage is
not supported: \`image_url\` and \`mask_url\` must be \`data:\` or https URLs, not Blobs. Object lifecycle and runner hint headers have no effect.
\`fal_webhook\` receives fal's body when the request has ended.`;

const submission = { ...refusals, 422: wrongField };
const onePath = '/fal/queue/{owner}/{app}/requests/{id}';

export const falDocuments = {
  submit: route(['post', '/fal/queue/{owner}/{app}'], 'submitFalRequest', 'Submit a request (fal: queue.submit)', {
    description: howTo,
    request: { headers, body, query: webhookQuery },
    responses: {
      200: json('Accepted and stored.'),
      ...submission,
    },
  }),
  status: route(['get', `${onePath}/status`], 'getFalStatus', 'Get the status of a request (fal: queue.status)', {
    request: { query: logs },
    responses: {
      200: json('Ended; contains `error` and `error_type` unless it succeeded.'),
      202: json('Queued or running.'),
    },
  }),
  streamStatus: route(
    ['get', `${onePath}/status/stream`],
    'streamFalStatus',
    'Follow the status of a request (fal: queue.streamStatus)',
    {
      request: { query: logs },
      responses: {
        200: events('Every change of the status, until the end.', {
          status: 'IN_QUEUE',
          queue_position: 0,
          ...exampleUrls,
        }),
      },
    },
  ),
  result: route(['get', onePath], 'getFalResult', 'Get the result of a request (fal: queue.result)', {
    responses: {
      ...failures,
      200: json('The images.'),
      400: problem('Not ended yet.', 'request_in_progress', 'Request is still in progress'),
    },
  }),
  cancel: route(['put', `${onePath}/cancel`], 'cancelFalRequest', 'Cancel a request (fal: queue.cancel)', {
    responses: {
      202: json('Canceled, or will be canceled after the current step.'),
      400: json('It has ended.', { status: 'ALREADY_COMPLETED', message: 'The request is succeeded.' }),
    },
  }),
  run: route(['post', '/fal/run/{owner}/{app}'], 'runFalModel', 'Create images and wait for them (fal: run)', {
    description: 'Answers when the request has ended. Disconnecting does not cancel the request.',
    request: { headers, body },
    responses: {
      ...failures,
      200: json('The images.'),
      408: problem(
        'The server stopped waiting, but the request continues: fetch its result from the queue.',
        'still_open',
        `Request ${exampleId} continues: fetch its result from the queue.`,
      ),
      ...submission,
    },
  }),
  stream: route(
    ['post', '/fal/run/{owner}/{app}/stream'],
    'streamFalModel',
    'Create images and stream previews (fal: stream)',
    {
      description:
        'Streams previews, then the result as in `run`. A failure aborts the connection. Disconnecting does not cancel the request.',
      request: { headers, body },
      responses: { 200: events('Previews and the result.', exampleResult), ...submission },
    },
  ),
};
