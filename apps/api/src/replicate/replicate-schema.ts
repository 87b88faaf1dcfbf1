/** What Replicate takes, as a body of `POST /v1/predict`, and the description of its routes. */
import { isoTime, type ModelCard } from '@darkroom/core';
import { z } from '@hono/zod-openapi';
import { foreignAnswer as json, foreignDocuments } from '../drop-in/foreign-document.ts';
import { commonFields, commonOf, schedulerField, without } from '../drop-in/foreign-input.ts';
import { checkerField } from '../drop-in/foreign-pictures.ts';
import { type ErrorView, invalidField } from '../http/api-error.ts';
import { exampleId } from '../http/api-route.ts';
import { pictureBodySchema } from '../v1/api-schemas.ts';

/** As the Stable Diffusion models there name them. */
const schedulers: ReadonlyMap<string, string> = new Map([
  ['DDIM', 'ddim'],
  ['PNDM', 'pndm'],
  ['K_EULER', 'euler'],
  ['K_EULER_ANCESTRAL', 'euler_ancestral'],
  ['DPMSolverMultistep', 'dpmpp_2m'],
  ['KarrasDPM', 'dpmpp_2m_karras'],
]);
const formats: Readonly<Record<string, string>> = { jpg: 'jpeg', jpeg: 'jpeg', png: 'png', webp: 'webp' };
const pixels = z
  .int({ error: 'a whole number of pixels' })
  .min(1, { error: '1 pixel or more' })
  .optional()
  .openapi({ description: "Pixels; with the other one. Default: the model's own size.", example: 128 });

export const inputSchema = z
  .strictObject({
    ...commonFields,
    width: pixels,
    height: pixels,
    num_outputs: pictureBodySchema.shape.n,
    image: pictureBodySchema.shape.image,
    mask: pictureBodySchema.shape.mask,
    prompt_strength: pictureBodySchema.shape.strength,
    scheduler: schedulerField(schedulers),
    output_format: z
      .enum(Object.keys(formats), { error: `one of ${Object.keys(formats).join(', ')}` })
      .optional()
      .openapi({ description: 'Default: png.' }),
    output_quality: pictureBodySchema.shape.output_compression,
    lora_weights: z
      .string({ error: 'the id of a lora' })
      .min(1, { error: 'the id of a lora' })
      .max(64, { error: 'the id of a lora' })
      .optional()
      .openapi({ description: 'An adapter: an id of the model’s `loras` in /v1/models, not a URL.' }),
    lora_scale: z.number({ error: 'a number' }).optional().openapi({ description: 'How much of it. Default: 1.' }),
    disable_safety_checker: checkerField,
    apply_watermark: without(false, 'there are no watermarks here'),
    refine: without('no_refiner', 'there is no refiner here'),
    go_fast: without(false, 'pictures are drawn in one way'),
  })
  .openapi('ReplicateInput');

const noWebhooks = 'poll or stream instead, no webhooks here';
const fields = {
  input: inputSchema,
  webhook: without(null, noWebhooks),
  webhook_events_filter: without(null, noWebhooks),
  stream: z.boolean({ error: 'true or false' }).optional().openapi({ description: 'No effect: all can be streamed.' }),
};
const version = z.string({ error: 'a model of /v1/models' }).openapi({
  description: '`model`, `owner/model` or `owner/model:version`: a model here has one version, called as itself.',
  example: 'emoji-sd',
});
const modelBodySchema = z.strictObject(fields).openapi('ReplicateModelPrediction');
const versionBodySchema = z.strictObject({ version, ...fields }).openapi('ReplicatePrediction');

/** The body but for its inputs, which are checked by themselves: what is wrong with them is told in their own names. */
const input = z.record(z.string(), z.unknown(), { error: 'an object with the inputs' });
export const modelFrameSchema = modelBodySchema.extend({ input });
export const versionFrameSchema = versionBodySchema.extend({ input });

/** How Replicate calls the fields of our body that have another name there. */
export const replicateNames = {
  size: 'width and height',
  preview: 'num_inference_steps',
  n: 'num_outputs',
  strength: 'prompt_strength',
  output_compression: 'output_quality',
  'loras.0.id': 'lora_weights',
  'loras.0.scale': 'lora_scale',
};

export function bodyOf(input: z.infer<typeof inputSchema>): Record<string, unknown> {
  const { width, height, scheduler, lora_weights: lora, lora_scale: scale } = input;
  if ((width === undefined) !== (height === undefined))
    throw invalidField(width === undefined ? 'width' : 'height', undefined, 'both width and height');
  if (lora === undefined && scale !== undefined)
    throw invalidField('lora_weights', undefined, 'the id of a lora, which lora_scale is for');
  return {
    ...commonOf(input),
    size: width && `${width}x${height}`,
    n: input.num_outputs,
    image: input.image,
    mask: input.mask,
    strength: input.prompt_strength,
    scheduler: scheduler && (schedulers.get(scheduler) ?? scheduler),
    output_format: input.output_format && formats[input.output_format],
    output_compression: input.output_quality,
    loras: lora === undefined ? undefined : [{ id: lora, scale }],
  };
}

export const replicateError: ErrorView = ({ status, code, message, problems }) => {
  if (problems.length === 0 || code === 'invalid_body') return { body: { title: code, detail: message, status } };
  const invalid = problems.map(({ field, code: type, message: description }) => ({ type, field, description }));
  const detail = problems.map(({ message: line }) => `- ${line}\n`).join('');
  return {
    status: 422,
    body: { title: 'Input validation failed', detail, status: 422, invalid_fields: invalid },
  };
};

const exampleUrl = `http://127.0.0.1:8080/replicate/v1/predictions/${exampleId}`;
const examplePrediction = {
  id: exampleId,
  model: 'darkroom/emoji-sd',
  version: 'emoji-sd',
  status: 'succeeded',
  input: { prompt: 'a fox on a green background', width: 128, height: 128, seed: 7 },
  output: [`https://pictures.example.org/v1/predict/${exampleId}/images/0`],
  logs: 'Using seed: 7\n100%|████████████████████| 12/12\n',
  error: null,
  metrics: { predict_time: 1.52, total_time: 1.6 },
  created_at: '2026-11-21T01:40:46.000Z',
  started_at: '2026-11-21T01:40:46.080Z',
  completed_at: '2026-11-21T01:40:47.600Z',
  urls: { get: exampleUrl, cancel: `${exampleUrl}/cancel`, stream: `${exampleUrl}/stream` },
};

/** Where tools for Replicate look for the inputs of a model. */
const openApi = {
  openapi: '3.1.0',
  info: { title: 'Cog', version: '0.1.0' },
  paths: {},
  components: {
    schemas: {
      Input: z.toJSONSchema(inputSchema),
      Output: { type: 'array', items: { type: 'string', format: 'uri' } },
    },
  },
};
/** Models have no owners here: any is taken, and this one shown. */
export const owner = 'darkroom';

export function versionOf({ id, created }: Pick<ModelCard, 'id' | 'created'>, schema: object = openApi) {
  return { id, created_at: isoTime(created * 1000), cog_version: null, openapi_schema: schema };
}

/** `root`: the URL under which the client reached us. */
export function modelOf(root: string, card: Pick<ModelCard, 'id' | 'created' | 'pipeline'>, schema?: object) {
  return {
    url: new URL(`/replicate/v1/models/${owner}/${card.id}`, root).href,
    owner,
    name: card.id,
    description: card.pipeline,
    visibility: 'public',
    is_official: false,
    run_count: 0,
    latest_version: versionOf(card, schema),
  };
}

/** All there is: lists have one page. */
export function pageOf(results: readonly object[]) {
  return { previous: null, next: null, results };
}

const exampleModel = modelOf(
  'http://127.0.0.1:8080',
  { id: 'emoji-sd', created: 1_795_225_246, pipeline: 'StableDiffusionPipeline' },
  {},
);
const exampleVersion = exampleModel.latest_version;

const { route, refusals } = foreignDocuments('replicate', replicateError, {
  id: z.string().openapi({ example: exampleId }),
  owner: z.string().openapi({ description: 'Any.', example: 'darkroom' }),
  name: z.string().openapi({ description: 'A model of /v1/models.', example: 'emoji-sd' }),
  version: z.string().openapi({ description: 'The name again.', example: 'emoji-sd' }),
});
const wrongField = json(
  'A field is wrong. Nothing is stored.',
  replicateError(invalidField('num_outputs', 20, 'a whole number from 1 to 10'), undefined).body,
);
const headers = z.object({
  prefer: z.string().optional().openapi({
    description: '`wait` or `wait=seconds`, 60 at most: answers when it has ended, or then.',
    example: 'wait=60',
  }),
});
const created = {
  201: json('Stored; `starting` unless it has ended: the client takes `processing` for an end.', examplePrediction),
  ...refusals,
  422: wrongField,
};
const bodyWith = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });

const howTo = `For \`replicate\` from npm as it is: \`new Replicate({ auth, baseUrl: 'http://127.0.0.1:8080/replicate/v1' })\`. Models are
\`<anything>/<model>\`. A field that is not listed is an error; those with one value are for what is not here. \`output\` is
URLs over https, which open without a key; over http it is \`data:\` URLs: of http URLs the client makes no files. A prediction that did not end in time is \`failed\`, as the client polls on at \`aborted\`.
Where the server asks for keys there is no \`urls.stream\`, which the client reads without one. Pictures are png in quality
100 unless \`output_format\` and \`output_quality\` say otherwise.`;

const models = '/replicate/v1/models';
const model = `${models}/{owner}/{name}`;
const predictions = '/replicate/v1/predictions';

export const replicateDocuments = {
  create: route('post', predictions, 'predictions.create, run and stream by version', {
    description: howTo,
    request: { headers, body: bodyWith(versionBodySchema) },
    responses: created,
  }),
  createOfModel: route('post', `${model}/predictions`, 'predictions.create, run and stream by model', {
    request: { headers, body: bodyWith(modelBodySchema) },
    responses: created,
  }),
  get: route('get', `${predictions}/{id}`, 'predictions.get', {
    responses: { 200: json('The prediction.', examplePrediction) },
  }),
  cancel: route('post', `${predictions}/{id}/cancel`, 'predictions.cancel', {
    description: 'Answers when it has left, at its next step; one that has ended stays as it is.',
    responses: { 200: json('The prediction.', { ...examplePrediction, status: 'canceled', output: null }) },
  }),
  stream: route('get', `${predictions}/{id}/stream`, 'urls.stream', {
    description:
      'Events `output` (a URL), `logs` (a progress bar), `error` (words) and at last `done` (`{}`, or with a `reason`: canceled or error).',
    request: { headers: z.object({ 'last-event-id': z.string().optional() }) },
    responses: {
      200: {
        description: 'The events from the first, or those after Last-Event-ID.',
        content: {
          'text/event-stream': { example: 'event: logs\nid: 3-0\ndata:   8%|█                   | 1/12\ndata: \n\n' },
        },
      },
      422: wrongField,
    },
  }),
  models: route('get', models, 'models.list', {
    responses: { 200: json('All models, on one page.', pageOf([exampleModel])) },
  }),
  model: route('get', model, 'models.get', { responses: { 200: json('The model.', exampleModel) } }),
  versions: route('get', `${model}/versions`, 'models.versions.list', {
    responses: { 200: json('The one there is.', pageOf([exampleVersion])) },
  }),
  version: route('get', `${model}/versions/{version}`, 'models.versions.get', {
    responses: { 200: json('The version.', exampleVersion) },
  }),
};
