/** What fal takes, as a body of `POST /v1/predict`, and the description of its routes. */
import { maxLoras, outputFormats } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { foreignAnswer as json, foreignDocuments } from '../drop-in/foreign-document.ts';
import { commonFields, commonOf, schedulerField, without } from '../drop-in/foreign-input.ts';
import { checkerField } from '../drop-in/foreign-pictures.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { ApiError, type ErrorView, invalidField } from '../http/api-error.ts';
import { exampleId } from '../http/api-route.ts';
import { pictureBodySchema } from '../v1/api-schemas.ts';

/** Pixels; the model may not have all of them. */
const sizes: Readonly<Record<string, string>> = {
  square_hd: '1024x1024',
  square: '512x512',
  portrait_4_3: '768x1024',
  portrait_16_9: '576x1024',
  landscape_4_3: '1024x768',
  landscape_16_9: '1024x576',
};
/** As fal-ai/lora names them. */
const schedulers: ReadonlyMap<string, string> = new Map([
  ['DDIM', 'ddim'],
  ['Euler', 'euler'],
  ['Euler A', 'euler_ancestral'],
  ['DPM++ 2M', 'dpmpp_2m'],
  ['DPM++ 2M Karras', 'dpmpp_2m_karras'],
  ['DPM++ 2M SDE', 'dpmpp_2m_sde'],
  ['DPM++ 2M SDE Karras', 'dpmpp_2m_sde_karras'],
  ['LCM', 'lcm'],
]);
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
const nothing = z.array(z.unknown()).max(0, { error: 'an empty list: there are none here' }).optional();

export const falSchema = z
  .strictObject({
    ...commonFields,
    image_size: z
      .union([z.enum(Object.keys(sizes)), z.strictObject({ width: pixels, height: pixels })], { error: sizeExpected })
      .optional()
      .openapi({
        description: "fal's names mean fal's sizes; the model must have them. Default: the model's own size.",
        example: { width: 128, height: 128 },
      }),
    num_images: pictureBodySchema.shape.n,
    image_url: pictureBodySchema.shape.image,
    mask_url: pictureBodySchema.shape.mask,
    strength: pictureBodySchema.shape.strength,
    scheduler: schedulerField(schedulers),
    output_format: format,
    format: format.openapi({ description: 'Another name of output_format.' }),
    sync_mode: without(false, 'pictures come as URLs'),
    enable_safety_checker: checkerField,
    expand_prompt: without(false, 'prompts are taken as they are'),
    acceleration: without('none', 'there is none here'),
    loras,
    embeddings: nothing,
  })
  .openapi('FalInput');

/** How fal calls the fields of our body that have another name there. */
export const falNames = {
  size: 'image_size',
  preview: 'num_inference_steps',
  n: 'num_images',
  image: 'image_url',
  mask: 'mask_url',
  start_timeout_s: 'x-fal-request-timeout',
  ...Object.fromEntries(Array.from({ length: maxLoras }, (_, at) => [`loras.${at}.id`, `loras.${at}.path`])),
};

export function bodyOf(input: z.infer<typeof falSchema>): Record<string, unknown> {
  const { image_size: size, num_images: n, scheduler, output_format, format } = input;
  if (output_format !== undefined && format !== undefined && format !== output_format)
    throw invalidField('format', format, `none, or output_format's ${output_format}`);
  return {
    ...commonOf(input),
    n,
    image: input.image_url,
    mask: input.mask_url,
    strength: input.strength,
    size: typeof size === 'object' ? `${size.width}x${size.height}` : size && sizes[size],
    scheduler: scheduler && (schedulers.get(scheduler) ?? scheduler),
    output_format: output_format ?? format,
    loras: input.loras?.map(({ path: id, scale }) => ({ id, scale })),
  };
}

export const idHeader = 'x-fal-request-id';

/** FastAPI's shape for what is wrong with fields, fal's for the rest, and the message where its client looks for it. */
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

const { route, refusals } = foreignDocuments('fal', falError, {
  owner: z.string().openapi({ description: 'Any.', example: 'darkroom' }),
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
  'x-fal-request-timeout': z.string().optional().openapi({ description: 'Seconds: our `start_timeout_s`.' }),
  'x-fal-queue-priority': priorityHeader.openapi({ description: 'low is our priority 10.' }),
});
const picture = { prompt: 'a fox on a green background', image_size: { width: 128, height: 128 }, seed: 7 };
const body = { required: true, content: { 'application/json': { schema: falSchema, example: picture } } };
const logs = z.object({ logs: z.enum(['0', '1']).optional().openapi({ description: '1: with progress lines.' }) });
const events = (description: string, data: object) => ({
  description,
  content: { 'text/event-stream': { example: sseFrame({ data }) } },
});
const howTo = `For \`@fal-ai/client\` as it is: \`fal.config({ proxyUrl: { url: 'http://127.0.0.1:8080/fal/proxy', when: 'always' } })\`.
It sends all to that URL and names the route below in \`x-fal-target-url\`. Endpoints are \`<anything>/<model>\`. A field that is not listed is an error; those with one value are for what is not here.
Results have no \`has_nsfw_concepts\`, and pictures are png unless \`output_format\` says otherwise. Where the server asks for
keys, picture URLs are links that open one picture without a key. There is no storage here: \`image_url\` and \`mask_url\` are \`data:\` URLs or https URLs, and no Blobs. Object lifecycle and runner hint headers have no effect; webhooks are refused.`;

const submission = { ...refusals, 422: wrongField };
const onePath = '/fal/queue/{owner}/{app}/requests/{id}';

export const falDocuments = {
  submit: route('post', '/fal/queue/{owner}/{app}', 'queue.submit', {
    description: howTo,
    request: { headers, body },
    responses: {
      200: json('Accepted and stored.', { status: 'IN_QUEUE', ...exampleUrls, queue_position: 0 }),
      ...submission,
    },
  }),
  status: route('get', `${onePath}/status`, 'queue.status', {
    request: { query: logs },
    responses: {
      200: json('Ended; with `error` and `error_type` unless it succeeded.', {
        status: 'COMPLETED',
        ...exampleUrls,
        logs: [],
        metrics: { inference_time: 1.52 },
      }),
      202: json('Queued or running.', { status: 'IN_PROGRESS', ...exampleUrls, logs: [] }),
    },
  }),
  streamStatus: route('get', `${onePath}/status/stream`, 'queue.streamStatus', {
    request: { query: logs },
    responses: {
      200: events('Every change, until the end.', { status: 'IN_QUEUE', queue_position: 0, ...exampleUrls }),
    },
  }),
  result: route('get', onePath, 'queue.result', {
    responses: {
      ...failures,
      200: json('The pictures.', exampleResult),
      400: problem('Not ended yet.', 'request_in_progress', 'Request is still in progress'),
    },
  }),
  cancel: route('put', `${onePath}/cancel`, 'queue.cancel', {
    responses: {
      202: json('Canceled, or at its next step.', { status: 'CANCELLATION_REQUESTED' }),
      400: json('It has ended.', { status: 'ALREADY_COMPLETED', message: 'The request is succeeded.' }),
    },
  }),
  run: route('post', '/fal/run/{owner}/{app}', 'run', {
    description: 'Answers when the request has ended. Closing the connection cancels nothing.',
    request: { headers, body },
    responses: {
      ...failures,
      200: json('The pictures.', exampleResult),
      408: problem(
        'It goes on, but this server cannot wait: its result is in the queue.',
        'still_open',
        `Request ${exampleId} goes on: fetch its result from the queue.`,
      ),
      ...submission,
    },
  }),
  stream: route('post', '/fal/run/{owner}/{app}/stream', 'stream', {
    description:
      'Previews as they come, then the result as `run` has it. A failure breaks the connection off. Closing it cancels nothing.',
    request: { headers, body },
    responses: { 200: events('Previews, and the result.', exampleResult), ...submission },
  }),
};
