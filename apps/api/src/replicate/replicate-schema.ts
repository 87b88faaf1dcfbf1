/** Converts Replicate's input to a body of `POST /v1/predict`. Also errors and OpenAPI documents of the routes. */
import { isoTime, type ModelCard, urlBelow } from '@darkroom/core';
import { replicateOwner } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import { describeExternalAnswer as json, createExternalDocuments } from '../compat/compat-document.ts';
import { commonFields, pickCommonFields, schedulerField, unsupportedField } from '../compat/compat-input.ts';
import { safetyCheckerField } from '../compat/compat-images.ts';
import { type ErrorView, invalidField } from '../http/api-error.ts';
import { exampleId } from '../openapi/api-route.ts';
import { imageBodySchema } from '../openapi/api-schemas.ts';

/** Schedulers by their names in Replicate's Stable Diffusion models. The model's names work too. */
const schedulers = ['DDIM', 'PNDM', 'K_EULER', 'K_EULER_ANCESTRAL', 'DPMSolverMultistep', 'KarrasDPM'];
const formats: Readonly<Record<string, string>> = { jpg: 'jpeg', jpeg: 'jpeg', png: 'png', webp: 'webp' };
const pixels = z
  .int({ error: 'a whole number of pixels' })
  .min(1, { error: '1 pixel or more' })
  .optional()
  .openapi({ description: "Pixels; set width and height together. Default: the model's default size.", example: 128 });

export const inputSchema = z
  .strictObject({
    ...commonFields,
    width: pixels,
    height: pixels,
    num_outputs: imageBodySchema.shape.n,
    image: imageBodySchema.shape.image,
    mask: imageBodySchema.shape.mask,
    prompt_strength: imageBodySchema.shape.strength,
    scheduler: schedulerField(schedulers),
    output_format: z
      .enum(Object.keys(formats), { error: `one of ${Object.keys(formats).join(', ')}` })
      .optional()
      .openapi({ description: 'Default: png.' }),
    output_quality: imageBodySchema.shape.output_compression,
    lora_weights: z
      .string({ error: 'the id of a lora' })
      .min(1, { error: 'the id of a lora' })
      .max(64, { error: 'the id of a lora' })
      .optional()
      .openapi({ description: 'An adapter: an id of the model’s `loras` in /v1/models, not a URL.' }),
    lora_scale: z
      .number({ error: 'a number' })
      .optional()
      .openapi({ description: 'Strength of the adapter. Default: 1.' }),
    disable_safety_checker: safetyCheckerField,
    apply_watermark: unsupportedField(false, 'watermarks are not supported'),
    refine: unsupportedField('no_refiner', 'refiners are not supported'),
    go_fast: unsupportedField(false, 'there is no fast mode'),
  })
  .openapi('ReplicateInput');

/** Our webhook events by Replicate's names. */
const webhookEvents = { start: 'started', output: 'output', logs: 'progress', completed: 'completed' } as const;
const eventNames = Object.keys(webhookEvents) as (keyof typeof webhookEvents)[];
const eventsExpected = `some of ${eventNames.join(', ')}`;
const fields = {
  input: inputSchema,
  webhook: z.string({ error: 'an http or https URL' }).optional().openapi({
    description: 'URL to which the prediction is POSTed when it changes, signed in Replicate’s format.',
    example: 'https://example.com/replicate',
  }),
  webhook_events_filter: z
    .array(z.enum(eventNames, { error: eventsExpected }), { error: eventsExpected })
    .min(1, { error: eventsExpected })
    .max(eventNames.length, { error: eventsExpected })
    .optional()
    .openapi({ description: 'Events that trigger the webhook. Default: all.' }),
  stream: z
    .boolean({ error: 'true or false' })
    .optional()
    .openapi({ description: 'No effect: every prediction can be streamed.' }),
};
const version = z.string({ error: 'a model of /v1/models' }).openapi({
  description:
    '`model`, `owner/model` or `owner/model:version`: each model has one version, with the name of the model.',
  example: 'emoji-sd',
});
const modelBodySchema = z.strictObject(fields).openapi('ReplicateModelPrediction');
const versionBodySchema = z.strictObject({ version, ...fields }).openapi('ReplicatePrediction');

/** Schemas of the body except `input`, which is parsed separately so that errors name its fields without a prefix. */
const input = z.record(z.string(), z.unknown(), { error: 'an object with the inputs' });
export const modelFrameSchema = modelBodySchema.extend({ input });
export const versionFrameSchema = versionBodySchema.extend({ input });

export type PredictionFrame = z.infer<typeof modelFrameSchema>;

export function webhookEventsOf({ webhook_events_filter: names = eventNames }: PredictionFrame) {
  return [...new Set(names)].map((name) => webhookEvents[name]);
}

/** Replicate's names of our body fields, where they differ. */
export const replicateNames = {
  size: 'width and height',
  preview: 'num_inference_steps',
  n: 'num_outputs',
  strength: 'prompt_strength',
  output_compression: 'output_quality',
  webhook_url: 'webhook',
  'loras.0.id': 'lora_weights',
  'loras.0.scale': 'lora_scale',
};

export function replicateToImageBody(input: z.infer<typeof inputSchema>): Record<string, unknown> {
  const { width, height, scheduler, lora_weights: lora, lora_scale: scale } = input;
  if ((width === undefined) !== (height === undefined))
    throw invalidField(width === undefined ? 'width' : 'height', undefined, 'both width and height');
  if (lora === undefined && scale !== undefined)
    throw invalidField('lora_weights', undefined, 'the id of a lora, required by lora_scale');
  return {
    ...pickCommonFields(input),
    size: width && `${width}x${height}`,
    n: input.num_outputs,
    image: input.image,
    mask: input.mask,
    strength: input.prompt_strength,
    scheduler,
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

/** Cog version that models report; clients require a string. */
const cogVersion = '0.1.0';
/** OpenAPI document of a model's inputs, in the layout that Replicate's tools expect. */
const openApi = {
  openapi: '3.1.0',
  info: { title: 'Cog', version: cogVersion },
  paths: {},
  components: {
    schemas: {
      Input: z.toJSONSchema(inputSchema),
      Output: { type: 'array', items: { type: 'string', format: 'uri' } },
    },
  },
};
export function versionOf({ id, created }: Pick<ModelCard, 'id' | 'created'>) {
  return { id, created_at: isoTime(created * 1000), cog_version: cogVersion, openapi_schema: openApi };
}

/** @param root the URL by which the client reached the server. */
export function modelOf(root: string, card: Pick<ModelCard, 'id' | 'created' | 'pipeline'>) {
  return {
    url: urlBelow(root, `/replicate/v1/models/${replicateOwner}/${card.id}`),
    owner: replicateOwner,
    name: card.id,
    description: card.pipeline,
    visibility: 'public',
    is_official: false,
    run_count: 0,
    latest_version: versionOf(card),
  };
}

/** Returns all results as a single page. */
export function pageOf(results: readonly object[]) {
  return { previous: null, next: null, results };
}

export const { route, refusals } = createExternalDocuments('Replicate', replicateError, {
  id: z.string().openapi({ example: exampleId }),
  owner: z.string().openapi({ description: 'Any value; ignored.', example: 'darkroom' }),
  name: z.string().openapi({ description: 'A model of /v1/models.', example: 'emoji-sd' }),
  version: z.string().openapi({ description: 'Same as the name.', example: 'emoji-sd' }),
});
const wrongField = json(
  'A field is wrong. Nothing is stored.',
  replicateError(invalidField('num_outputs', 20, 'a whole number from 1 to 10'), undefined).body,
);
const headers = z.object({
  prefer: z.string().optional().openapi({
    description: '`wait` or `wait=seconds`, at most 60: answers when the prediction has ended, or after this time.',
    example: 'wait=60',
  }),
});
const created = {
  201: json(
    'Stored. The status is `starting` until the prediction has ended, because the client takes `processing` for the end.',
  ),
  ...refusals,
  422: wrongField,
};
const bodyWith = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });

const howTo = `For the unmodified npm package \`replicate\`: \`new Replicate({ auth, baseUrl: 'http://127.0.0.1:8080/replicate/v1' })\`. Models are
\`<anything>/<model>\`. Unlisted fields are errors; fields with a single allowed value are not supported otherwise. Over https, \`output\`
contains URLs that open without a key; over http it contains \`data:\` URLs, because the client does not create files from http URLs. An expired
prediction is \`failed\`, because the client would keep polling at \`aborted\`. If the server requires keys, \`urls.stream\` is absent, because the
client does not send its key for streams. Images are png in quality 100 unless \`output_format\` and \`output_quality\` are set.`;

const models = '/replicate/v1/models';
const model = `${models}/{owner}/{name}`;
const predictions = '/replicate/v1/predictions';

export const replicateDocuments = {
  create: route(
    ['post', predictions],
    'createReplicatePrediction',
    'Create a prediction by version (Replicate: predictions.create, run, stream)',
    {
      description: howTo,
      request: { headers, body: bodyWith(versionBodySchema) },
      responses: created,
    },
  ),
  createOfModel: route(
    ['post', `${model}/predictions`],
    'createReplicateModelPrediction',
    'Create a prediction by model (Replicate: predictions.create, run, stream)',
    {
      request: { headers, body: bodyWith(modelBodySchema) },
      responses: created,
    },
  ),
  get: route(
    ['get', `${predictions}/{id}`],
    'getReplicatePrediction',
    'Get a prediction (Replicate: predictions.get)',
    {
      responses: { 200: json('The prediction.') },
    },
  ),
  cancel: route(
    ['post', `${predictions}/{id}/cancel`],
    'cancelReplicatePrediction',
    'Cancel a prediction (Replicate: predictions.cancel)',
    {
      description:
        'Answers when the prediction is canceled, after its current step, or after 5 s. A prediction that has ended does not change.',
      responses: { 200: json('The prediction.') },
    },
  ),
  stream: route(
    ['get', `${predictions}/{id}/stream`],
    'streamReplicatePrediction',
    'Follow a prediction as server-sent events',
    {
      description:
        'Events `output` (a URL), `logs` (a progress bar), `error` (a message) and finally `done` (`{}`, or with a `reason`: canceled or error).',
      request: { headers: z.object({ 'last-event-id': z.string().optional() }) },
      responses: {
        200: {
          description: 'All events, or those after Last-Event-ID.',
          content: {
            'text/event-stream': { example: 'event: logs\nid: 3-0\ndata:   8%|█                   | 1/12\ndata: \n\n' },
          },
        },
        422: wrongField,
      },
    },
  ),
  models: route(['get', models], 'listReplicateModels', 'List models (Replicate: models.list)', {
    responses: { 200: json('All models, on one page.') },
  }),
  model: route(['get', model], 'getReplicateModel', 'Get a model (Replicate: models.get)', {
    responses: { 200: json('The model.') },
  }),
  versions: route(
    ['get', `${model}/versions`],
    'listReplicateVersions',
    'List the versions of a model (Replicate: models.versions.list)',
    {
      responses: { 200: json('The only version.') },
    },
  ),
  webhookSecret: route(
    ['get', '/replicate/v1/webhooks/default/secret'],
    'getReplicateWebhookSecret',
    'Get the secret of webhooks (Replicate: webhooks.default.secret.get)',
    {
      responses: { 200: json('The secret of your key, for `validateWebhook`.') },
    },
  ),
  version: route(
    ['get', `${model}/versions/{version}`],
    'getReplicateVersion',
    'Get a version of a model (Replicate: models.versions.get)',
    {
      responses: { 200: json('The version.') },
    },
  ),
};
