/** What fal takes, as a body of `POST /v1/predict`, and the description of its routes. */
import { invalidValue } from '@darkroom/core';
import { outputFormats } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { pictureBodySchema } from '../v1/api-schemas.ts';
import { invalidFields } from '../http/api-error.ts';
import { foreignErrors, jsonAnswer as json } from '../drop-in/foreign-errors.ts';
import { commonFields, schedulerField, without } from '../drop-in/foreign-input.ts';

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
    scheduler: schedulerField(schedulers),
    output_format: format,
    format: format.openapi({ description: 'Another name of output_format.' }),
    sync_mode: without(false, 'pictures come as URLs'),
    enable_safety_checker: without(false, 'there is no safety checker here'),
    expand_prompt: without(false, 'prompts are taken as they are'),
    acceleration: without('none', 'there is none here'),
    loras: nothing,
    embeddings: nothing,
  })
  .openapi('FalInput');

/** How fal calls the fields of our body that have another name there. */
export const falNames = {
  size: 'image_size',
  preview: 'num_inference_steps',
  n: 'num_images',
  start_timeout_s: 'x-fal-request-timeout',
};

export function bodyOf(input: z.infer<typeof falSchema>): Record<string, unknown> {
  const { image_size: size, num_images: n, scheduler, output_format, format, ...rest } = input;
  const { prompt, negative_prompt, num_inference_steps, guidance_scale, seed } = rest;
  if (output_format !== undefined && format !== undefined && format !== output_format)
    throw invalidFields([invalidValue('format', format, `none, or output_format's ${output_format}`)]);
  return {
    prompt,
    negative_prompt,
    num_inference_steps,
    guidance_scale,
    seed,
    n,
    size: typeof size === 'object' ? `${size.width}x${size.height}` : size && sizes[size],
    scheduler: scheduler && (schedulers.get(scheduler) ?? scheduler),
    output_format: output_format ?? format,
  };
}

const exampleId = 'emoji-sd-01kaj3v0q8f3zt6m0c9d7p2xwe';
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

const problem = (description: string, detail: unknown, errorType: string) =>
  json(description, { message: description, detail, error_type: errorType });
const { common: problems, refusals } = foreignErrors((_status, code, message) => ({
  message,
  detail: message,
  error_type: code,
}));
const wrongField = problem(
  'A field is wrong (`ValidationError`). Nothing is stored.',
  [{ loc: ['body', 'num_images'], msg: 'num_images is 20, expected a whole number from 1 to 10', type: 'value_error' }],
  'invalid_value',
);
const failures = {
  424: problem('The request failed.', 'The workers that ran this request were lost.', 'worker_lost'),
  499: problem('The request was canceled.', 'The request was canceled.', 'client_cancelled'),
  504: problem(
    'The request did not end in time; `X-Fal-Request-Timeout-Type: user` keeps the client from sending it again.',
    'The request did not end in time.',
    'request_timeout',
  ),
};
const app = z.object({
  owner: z.string().openapi({ description: 'Any.', example: 'darkroom' }),
  app: z.string().openapi({ description: 'A model of /v1/models.', example: 'emoji-sd' }),
});
const request = app.extend({ id: z.string().openapi({ example: exampleId }) });
const headers = z.object({
  'x-fal-request-timeout': z.string().optional().openapi({ description: 'Seconds: our `start_timeout_s`.' }),
  'x-fal-queue-priority': z.enum(['normal', 'low']).optional().openapi({ description: 'low is our priority 10.' }),
});
const picture = { prompt: 'a fox on a green background', image_size: { width: 128, height: 128 }, seed: 7 };
const body = { required: true, content: { 'application/json': { schema: falSchema, example: picture } } };
const logs = z.object({ logs: z.enum(['0', '1']).optional().openapi({ description: '1: with progress lines.' }) });
const events = (description: string, example: object) => ({
  description,
  content: { 'text/event-stream': { example: `data: ${JSON.stringify(example)}\n\n` } },
});
const tags = ['fal'];

const howTo = `For \`@fal-ai/client\` as it is: \`fal.config({ proxyUrl: { url: 'http://127.0.0.1:8080/fal/proxy', when: 'always' } })\`.
It sends all to that URL and names the route below in \`x-fal-target-url\`. Endpoints are \`<anything>/<model>\`. A field that is not listed is an error; those with one value are for what is not here.
Results have no \`has_nsfw_concepts\`, and pictures are png unless \`output_format\` says otherwise. Where the server asks for
keys, picture URLs are \`data:\` URLs. Object lifecycle and runner hint headers have no effect; webhooks are refused.`;

const post = { method: 'post' as const, tags, request: { params: app, headers, body } };
const get = { method: 'get' as const, tags };

export const falRoutes = {
  submit: {
    ...post,
    path: '/fal/queue/{owner}/{app}',
    summary: 'queue.submit',
    description: howTo,
    responses: {
      ...problems,
      200: json('Accepted and stored.', { status: 'IN_QUEUE', ...exampleUrls, queue_position: 0 }),
      ...refusals,
      422: wrongField,
    },
  },
  status: {
    ...get,
    path: '/fal/queue/{owner}/{app}/requests/{id}/status',
    summary: 'queue.status',
    request: { params: request, query: logs },
    responses: {
      ...problems,
      200: json('Ended; with `error` and `error_type` unless it succeeded.', {
        status: 'COMPLETED',
        ...exampleUrls,
        logs: [],
        metrics: { inference_time: 1.52 },
      }),
      202: json('Queued or running.', { status: 'IN_PROGRESS', ...exampleUrls, logs: [] }),
    },
  },
  streamStatus: {
    ...get,
    path: '/fal/queue/{owner}/{app}/requests/{id}/status/stream',
    summary: 'queue.streamStatus',
    request: { params: request, query: logs },
    responses: {
      ...problems,
      200: events('Every change, until the end.', { status: 'IN_QUEUE', queue_position: 0, ...exampleUrls }),
    },
  },
  result: {
    ...get,
    path: '/fal/queue/{owner}/{app}/requests/{id}',
    summary: 'queue.result',
    request: { params: request },
    responses: {
      ...problems,
      ...failures,
      200: json('The pictures.', exampleResult),
      400: problem('Not ended yet.', 'Request is still in progress', 'request_in_progress'),
    },
  },
  cancel: {
    method: 'put' as const,
    tags,
    path: '/fal/queue/{owner}/{app}/requests/{id}/cancel',
    summary: 'queue.cancel',
    request: { params: request },
    responses: {
      ...problems,
      202: json('Canceled, or at its next step.', { status: 'CANCELLATION_REQUESTED' }),
      400: json('It has ended.', { status: 'ALREADY_COMPLETED', message: 'The request is succeeded.' }),
    },
  },
  run: {
    ...post,
    path: '/fal/run/{owner}/{app}',
    summary: 'run',
    description: 'Answers when the request has ended. Closing the connection cancels nothing.',
    responses: {
      ...problems,
      ...failures,
      200: json('The pictures.', exampleResult),
      408: problem(
        'It goes on, but this server cannot wait: its result is in the queue.',
        `Request ${exampleId} goes on.`,
        'still_open',
      ),
      ...refusals,
      422: wrongField,
    },
  },
  stream: {
    ...post,
    path: '/fal/run/{owner}/{app}/stream',
    summary: 'stream',
    description:
      'Previews as they come, then the result as `run` has it. A failure breaks the connection off. Closing it cancels nothing.',
    responses: {
      ...problems,
      200: events('Previews, and the result.', exampleResult),
      ...refusals,
      422: wrongField,
    },
  },
};
