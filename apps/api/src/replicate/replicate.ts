/** The view of a request that `replicate` from npm knows, used as it is (docs/drop-in.md). */
import { isoTime, isTerminalState, type ModelCard, type RequestStatus } from '@darkroom/core';
import { inputUrl, picture, type PictureAttachment, type StoredPictureInput } from '@darkroom/kinds';
import type { ApiContext } from '../context.ts';
import { parseForeign } from '../drop-in/foreign-input.ts';
import {
  agreeOnChecker,
  findPicture,
  openPictureUrl,
  progressBar,
  secondsBetween,
  submitPicture,
} from '../drop-in/foreign-pictures.ts';
import { awaitEnd, preferredWaitMs } from '../follow/await-end.ts';
import { isEnd } from '../follow/tail-events.ts';
import { cancelFound } from '../follow/find-request.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { requestEvents, type RequestEventsOptions, streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { modelNotFound } from '../http/api-error.ts';
import { type Route, routesOf } from '../http/api-route.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import { absoluteUrl, noStore } from '../http/urls.ts';
import { onceStored } from '../submit/submit-request.ts';
import { positionOf } from '../v1/events.ts';
import {
  bodyOf,
  inputSchema,
  modelFrameSchema,
  modelOf,
  owner,
  pageOf,
  replicateDocuments as documents,
  replicateNames,
  versionFrameSchema,
  versionOf,
} from './replicate-schema.ts';

/** What a prediction is shown from; a request that could not be read again has no more. */
type Shown = Pick<RequestStatus, 'id' | 'model' | 'state' | 'input' | 'createdAtMs'> & Partial<RequestStatus>;

/** How long a cancellation waits for the step to end. */
const cancelMs = 5000;

export const replicateRoutes: readonly Route[] = routesOf(documents, {
  async create(c, context) {
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    const { version, input } = parseForeign(versionFrameSchema, body);
    return create(c, context, version.replace(/^.*[/:]/, ''), input);
  },
  async createOfModel(c, context) {
    const { input } = parseForeign(modelFrameSchema, await readJsonBody(c, context.config.maxBodyBytes));
    return create(c, context, c.req.param('name') ?? '', input);
  },
  get: async (c, context) => answer(c, context, await findPicture(c, context)),
  async cancel(c, context) {
    const { id } = await findPicture(c, context);
    await cancelFound(c, context, id);
    return answer(c, context, await awaitEnd(c, context, id, cancelMs));
  },
  stream(c, context) {
    const after = positionOf(c);
    return streamEvents(c, context, async () => {
      const request = await findPicture(c, context);
      const framesOf = predictionFrames(c, context, request.id);
      return requestEvents(context, request, { after, framesOf, breaksOff: true });
    });
  },
  async models(c, context) {
    const cards = await listPictureModels(context);
    return c.json(pageOf(cards.map((card) => modelOf(absoluteUrl(c, '/'), card))), 200, noStore);
  },
  model: async (c, context) => c.json(modelOf(absoluteUrl(c, '/'), await findCard(c, context)), 200, noStore),
  versions: async (c, context) => c.json(pageOf([versionOf(await findCard(c, context))]), 200),
  version: async (c, context) => c.json(versionOf(await findCard(c, context)), 200),
});

async function create(c: ApiCall, context: ApiContext, model: string, input: unknown): Promise<Response> {
  const waitMs = preferredWaitMs(c.req.header('prefer'));
  const asked = parseForeign(inputSchema, input);
  const given = { value: asked.disable_safety_checker, withChecker: false };
  const refine = agreeOnChecker('disable_safety_checker', given);
  const body = { ...bodyOf(asked), model };
  const submitted = await submitPicture(c, context, body, { names: replicateNames, refine });
  const answered = await onceStored(async () => {
    const request = await awaitEnd(c, context, submitted.id, waitMs);
    // `run` takes anything but `starting` for the end.
    return answer(c, context, isTerminalState(request.state) ? request : { ...request, state: 'queued' }, 201);
  });
  return answered ?? answer(c, context, { ...submitted, state: 'queued', createdAtMs: context.clock.now() }, 201);
}

async function answer(c: ApiCall, context: ApiContext, request: Shown, status: 200 | 201 = 200): Promise<Response> {
  return c.json(await predictionOf(c, context, request), status, noStore);
}

async function predictionOf(c: ApiCall, context: ApiContext, request: Shown) {
  const { id, model, state, createdAtMs, startedAtMs, endedAtMs } = request;
  const input = request.input as StoredPictureInput;
  const url = absoluteUrl(c, `/replicate/v1/predictions/${id}`);
  const metrics = {
    predict_time: secondsBetween(startedAtMs, endedAtMs),
    total_time: secondsBetween(createdAtMs, endedAtMs),
  };
  return {
    id,
    model: `${owner}/${model}`,
    version: model,
    status: statuses[state],
    input: inputOf(absoluteUrl(c, '/'), id, input),
    output: state === 'succeeded' ? await outputsOf(c, context, request) : null,
    logs: logsOf(request, input.seed),
    error: errorOf(request),
    metrics: isTerminalState(state) ? metrics : {},
    created_at: isoTime(createdAtMs),
    started_at: isoTime(startedAtMs),
    completed_at: isoTime(endedAtMs),
    source: 'api',
    data_removed: false,
    // The client reads streams without a key.
    urls: { get: url, cancel: `${url}/cancel`, ...(c.get('owner') === '' ? { stream: `${url}/stream` } : {}) },
  };
}

/** All that makes the pictures, as inputs that make the same ones again; without prompts where they are not kept. */
function inputOf(root: string, id: string, input: StoredPictureInput) {
  // They go when prompts go.
  const isKept = input.prompt !== undefined;
  const urlOf = (name: PictureAttachment): string => new URL(inputUrl(id, name), root).href;
  return {
    prompt: input.prompt,
    negative_prompt: input.negativePrompt,
    width: input.width,
    height: input.height,
    num_outputs: input.n,
    num_inference_steps: input.numInferenceSteps,
    guidance_scale: input.guidanceScale,
    seed: input.seed,
    scheduler: input.scheduler,
    output_format: input.outputFormat,
    output_quality: input.outputCompression,
    image: input.image && isKept ? urlOf('image') : undefined,
    mask: input.mask && isKept ? urlOf('mask') : undefined,
    prompt_strength: input.strength,
    // Replicate has one; more come from elsewhere.
    ...(input.loras && { lora_weights: input.loras[0]!.id, lora_scale: input.loras[0]!.scale }),
  };
}

/** `expired` is no `aborted`: the client does not know that as an end, and polls for ever. */
const statuses = {
  queued: 'starting',
  running: 'processing',
  succeeded: 'succeeded',
  failed: 'failed',
  canceled: 'canceled',
  expired: 'failed',
} as const;

/** The client makes files of https and data URLs, and of no others. */
function outputsOf(
  c: ApiCall,
  context: ApiContext,
  { id, outputs = [], endedAtMs = context.clock.now() }: Shown,
): Promise<string[]> {
  const fromMs = endedAtMs;
  return Promise.all(outputs.map((output) => openPictureUrl(c, context, { id, output, fromMs, onlyHttps: true })));
}

/** As cog prints them; the client reads progress from the last line. */
function logsOf({ done = 0, total = 0, outputs = [] }: Shown, seed: number): string {
  if (total === 0) return '';
  const found = outputs.filter(({ nsfw }) => nsfw === true);
  const notes = found.map(({ index }) => `NSFW content detected in image ${index}\n`);
  return `Using seed: ${seed}\n${notes.join('')}${progressBar(done, total)}\n`;
}

function errorOf({ state, error }: Pick<Shown, 'state' | 'error'>): string | null {
  if (state === 'failed') return error?.message ?? 'The prediction failed.';
  return state === 'expired' ? 'The prediction did not end in time.' : null;
}

function predictionFrames(c: ApiCall, context: ApiContext, id: string): RequestEventsOptions['framesOf'] {
  return async function* (event) {
    const frame = (name: string, data: string): string => sseFrame({ event: name, id: `${event.sequence}-0`, data });
    if (event.type === 'progress' || event.type === 'preview')
      yield frame('logs', `${progressBar(event.done, event.total ?? 0)}\n`);
    else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      yield frame(
        'output',
        await openPictureUrl(c, context, { id, output: event.output, fromMs: event.timestampMs, onlyHttps: true }),
      );
    else if (isEnd(event)) {
      const failure = errorOf({ state: event.type, error: event.error });
      if (failure !== null) yield frame('error', failure);
      const reason = failure === null ? event.type : 'error';
      yield frame('done', JSON.stringify(reason === 'succeeded' ? {} : { reason }));
    }
  };
}

async function listPictureModels({ models }: ApiContext): Promise<ModelCard[]> {
  return (await models.get()).filter(({ kind }) => kind === picture.id);
}

async function findCard(c: ApiCall, context: ApiContext): Promise<ModelCard> {
  const { name, version = name } = c.req.param() as { name: string; version?: string };
  const cards = await listPictureModels(context);
  const card = cards.find(({ id }) => id === name);
  if (card === undefined || version !== name) throw modelNotFound(version ?? name, cards);
  return card;
}
