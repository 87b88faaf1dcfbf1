/** The view of a request that `replicate` from npm knows, used as it is (docs/drop-in.md). */
import type { ApiConfig } from '@darkroom/config';
import { type Clock, isoTime, isTerminalState, type ModelCard, type RequestStatus } from '@darkroom/core';
import { picture, type StoredPictureInput } from '@darkroom/kinds';
import { z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { absoluteUrl, noStore } from '../http/urls.ts';
import type { ApiEnv } from '../http/api-env.ts';
import { type ErrorView, modelNotFound } from '../http/api-error.ts';
import { addRoute, type Api } from '../http/api-route.ts';
import { BrokenStream, type FrameOf, type StreamEvents, requestEvents } from '../follow/stream-events.ts';
import type { FollowDeps } from '../follow/tail-events.ts';
import { cancelFound, findRequest } from '../follow/find-request.ts';
import { findPicture } from '../drop-in/find-picture.ts';
import { inTheirNames, parseForeign } from '../drop-in/foreign-input.ts';
import { onceStored } from '../submit/once-stored.ts';
import { openPictureUrl } from '../drop-in/open-picture-url.ts';
import { preferredWaitMs } from '../follow/prefer-wait.ts';
import { progressBar } from '../drop-in/progress-bar.ts';
import { readJsonBody } from '../http/read-json-body.ts';
import type { Cached } from '../server/cached.ts';
import { submitOverHttp } from '../submit/submit-over-http.ts';
import type { SubmitRequest } from '../submit/submit-request.ts';
import { awaitEnd } from '../follow/await-end.ts';
import { positionOf } from '../v1/events.ts';
import {
  bodyOf,
  inputSchema,
  modelFrameSchema,
  replicateNames,
  replicateRoutes as routes,
  versionFrameSchema,
} from './replicate-schema.ts';

type C = Context<ApiEnv>;
interface ReplicateDeps extends FollowDeps {
  config: Pick<ApiConfig, 'maxBodyBytes'>;
  clock: Clock;
  models: Cached<readonly ModelCard[]>;
  submitRequest: SubmitRequest;
  streamEvents: StreamEvents;
}

/** What a prediction is shown from; a request that could not be read again has no more. */
type Shown = Pick<RequestStatus, 'id' | 'model' | 'state' | 'input' | 'createdAtMs'> & Partial<RequestStatus>;

/** Models have no owners here: any is taken, and this one shown. */
const owner = 'darkroom';
/** How long a cancellation waits for the step to end. */
const cancelMs = 5000;

export function addReplicateRoutes(api: Api, deps: ReplicateDeps): void {
  addRoute(api, routes.create, async (c) => {
    const { version, input } = parseForeign(versionFrameSchema, await readJsonBody(c, deps.config.maxBodyBytes));
    return create(c, deps, version.replace(/^.*[/:]/, ''), input);
  });
  addRoute(api, routes.createOfModel, async (c) => {
    const { input } = parseForeign(modelFrameSchema, await readJsonBody(c, deps.config.maxBodyBytes));
    return create(c, deps, c.req.param('name') ?? '', input);
  });
  addRoute(api, routes.get, async (c) => answer(c, deps, await findPicture(deps.askStore, c)));
  addRoute(api, routes.cancel, (c) => cancel(c, deps));
  addRoute(api, routes.stream, async (c) => {
    const after = positionOf(c);
    return deps.streamEvents(c, async () => {
      const { id, state } = await findPicture(deps.askStore, c);
      return requestEvents(deps, id, {
        after,
        isEnded: isTerminalState(state),
        frameOf: predictionFrame(c, deps, id),
        breaksOff: true,
      });
    });
  });
  addRoute(api, routes.models, async (c) => {
    const cards = await listPictureModels(deps.models);
    return c.json(pageOf(cards.map((card) => modelOf(c, card))), 200, noStore);
  });
  addRoute(api, routes.model, async (c) => c.json(modelOf(c, await findCard(c, deps)), 200, noStore));
  addRoute(api, routes.versions, async (c) => c.json(pageOf([versionOf(await findCard(c, deps))]), 200));
  addRoute(api, routes.version, async (c) => c.json(versionOf(await findCard(c, deps)), 200));
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

async function create(c: C, deps: ReplicateDeps, model: string, input: unknown): Promise<Response> {
  const waitMs = preferredWaitMs(c.req.header('prefer'));
  const body = { ...bodyOf(parseForeign(inputSchema, input)), model };
  const submitted = await inTheirNames(replicateNames, () =>
    submitOverHttp(c, deps.submitRequest, { body, kind: picture.id }),
  );
  const { id } = submitted;
  const options = { owner: c.get('owner'), waitMs, signal: c.req.raw.signal };
  const answered = await onceStored(async () => {
    const request = await (waitMs > 0 ? awaitEnd(deps, id, options) : findRequest(deps.askStore, id, options.owner));
    // `run` takes anything but `starting` for the end.
    return answer(c, deps, isTerminalState(request.state) ? request : { ...request, state: 'queued' }, 201);
  });
  return answered ?? answer(c, deps, { ...submitted, state: 'queued', createdAtMs: deps.clock.now() }, 201);
}

async function cancel(c: C, deps: ReplicateDeps): Promise<Response> {
  const { id } = await findPicture(deps.askStore, c);
  const owner = c.get('owner');
  await cancelFound(deps, id, owner);
  return answer(c, deps, await awaitEnd(deps, id, { owner, waitMs: cancelMs, signal: c.req.raw.signal }));
}

async function answer(c: C, deps: ReplicateDeps, request: Shown, status: 200 | 201 = 200): Promise<Response> {
  return c.json(await predictionOf(c, deps, request), status, noStore);
}

async function predictionOf(c: C, deps: ReplicateDeps, request: Shown) {
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
    input: inputOf(input),
    output: state === 'succeeded' ? await outputsOf(c, deps, request) : null,
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
function inputOf(input: StoredPictureInput) {
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

function secondsBetween(fromMs: number | undefined, toMs: number | undefined): number | undefined {
  return fromMs === undefined || toMs === undefined ? undefined : (toMs - fromMs) / 1000;
}

/** The client makes files of https and data URLs, and of no others. */
function outputsOf(c: C, deps: ReplicateDeps, { id, outputs = [] }: Shown): Promise<string[]> {
  return Promise.all(outputs.map((output) => openPictureUrl(c, deps.askStore, { id, output, onlyHttps: true })));
}

/** As cog prints them; the client reads progress from the last line. */
function logsOf({ done = 0, total = 0 }: Shown, seed: number): string {
  return total === 0 ? '' : `Using seed: ${seed}\n${progressBar(done, total)}\n`;
}

function errorOf({ state, error }: Pick<Shown, 'state' | 'error'>): string | null {
  if (state === 'failed') return error?.message ?? 'The prediction failed.';
  return state === 'expired' ? 'The prediction did not end in time.' : null;
}

function predictionFrame(c: C, deps: ReplicateDeps, id: string): FrameOf {
  return async (item) => {
    if (item === 'heartbeat') return ': heartbeat\n\n';
    if (item === 'draining') throw new BrokenStream('This server stops; the prediction goes on.');
    if (item === 'done') return '';
    const frame = (event: string, data: string): string =>
      `event: ${event}\nid: ${item.sequence}-0\ndata: ${data.replaceAll('\n', '\ndata: ')}\n\n`;
    switch (item.type) {
      case 'queued':
      case 'started':
      case 'delta':
      case 'snapshot':
      case 'reset':
        return '';
      case 'progress':
      case 'preview':
        return frame('logs', `${progressBar(item.done, item.total ?? 0)}\n`);
      case 'output':
        if (item.chunkIndex < item.output.chunks - 1) return '';
        return frame('output', await openPictureUrl(c, deps.askStore, { id, output: item.output, onlyHttps: true }));
      case 'succeeded':
        return frame('done', '{}');
      case 'canceled':
        return frame('done', '{"reason":"canceled"}');
      case 'failed':
      case 'expired':
        return `${frame('error', errorOf({ state: item.type, error: item.error }) ?? '')}${frame('done', '{"reason":"error"}')}`;
    }
  };
}

async function listPictureModels(models: Cached<readonly ModelCard[]>): Promise<ModelCard[]> {
  return (await models.get()).filter(({ kind }) => kind === picture.id);
}

async function findCard(c: C, { models }: ReplicateDeps): Promise<ModelCard> {
  const { name, version = name } = c.req.param() as { name: string; version?: string };
  const cards = await listPictureModels(models);
  const card = cards.find(({ id }) => id === name);
  if (card === undefined || version !== name) throw modelNotFound(version ?? name, cards);
  return card;
}

/** All there is: lists have one page. */
function pageOf(results: readonly object[]) {
  return { previous: null, next: null, results };
}

function modelOf(c: C, card: ModelCard) {
  return {
    url: absoluteUrl(c, `/replicate/v1/models/${owner}/${card.id}`),
    owner,
    name: card.id,
    description: card.pipeline,
    visibility: 'public',
    is_official: false,
    run_count: 0,
    latest_version: versionOf(card),
  };
}

function versionOf({ id, created }: ModelCard) {
  return { id, created_at: isoTime(created * 1000), cog_version: null, openapi_schema: openApi };
}

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
