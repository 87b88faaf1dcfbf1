/** Routes for the unmodified npm package `replicate` (docs/drop-in.md). */
import { isTerminalState, type ModelCard } from '@darkroom/core';
import { imageKind, predictionError, type PredictionSource, progressBar, replicatePrediction } from '@darkroom/kinds';
import type { ApiContext } from '../context/context.ts';
import { parseExternalBody } from '../compat/compat-input.ts';
import { checkSafetyCheckerField, findImageRequest, openImageUrl, submitImage } from '../compat/compat-images.ts';
import { awaitEnd, preferredWaitMs } from '../follow/await-end.ts';
import { isEnd } from '../follow/tail-events.ts';
import { cancelFound } from '../follow/find-request.ts';
import { sseFrame } from '../follow/sse-frame.ts';
import { requestEvents, type RequestEventsOptions, streamEvents } from '../follow/stream-events.ts';
import type { ApiCall } from '../http/api-env.ts';
import { modelNotFound } from '../http/api-error.ts';
import { type Route, routesOf } from '../openapi/api-route.ts';
import { readJsonBody } from '../body/read-json-body.ts';
import { absoluteUrl, noStore } from '../http/public-url.ts';
import { onceStored } from '../submit/submit-request.ts';
import { positionOf } from '../v1/events.ts';
import { webhookSecretRoute } from '../v1/webhook-deliveries.ts';
import {
  replicateToImageBody,
  inputSchema,
  modelFrameSchema,
  modelOf,
  pageOf,
  replicateDocuments as documents,
  replicateNames,
  versionFrameSchema,
  webhookEventsOf,
  type PredictionFrame,
  versionOf,
} from './replicate-schema.ts';

/** Maximum time that a cancellation waits for the current step to end, ms. */
const cancelMs = 5000;

export const replicateRoutes: readonly Route[] = routesOf(documents, {
  async create(c, context) {
    const body = await readJsonBody(c, context.config.maxBodyBytes);
    const { version, ...frame } = parseExternalBody(versionFrameSchema, body);
    return create(c, context, version.replace(/^.*[/:]/, ''), frame);
  },
  async createOfModel(c, context) {
    const frame = parseExternalBody(modelFrameSchema, await readJsonBody(c, context.config.maxBodyBytes));
    return create(c, context, c.req.param('name') ?? '', frame);
  },
  get: async (c, context) => answer(c, context, await findImageRequest(c, context)),
  async cancel(c, context) {
    const { id } = await findImageRequest(c, context);
    await cancelFound(c, context, id);
    return answer(c, context, await awaitEnd(c, context, id, cancelMs));
  },
  stream(c, context) {
    const after = positionOf(c);
    return streamEvents(c, context, async () => {
      const request = await findImageRequest(c, context);
      const framesOf = predictionFrames(c, context, request.id);
      return requestEvents(context, request, { after, framesOf, breaksOff: true });
    });
  },
  async models(c, context) {
    const cards = await listImageModels(context);
    return c.json(pageOf(cards.map((card) => modelOf(absoluteUrl(c, '/'), card))), 200, noStore);
  },
  model: async (c, context) => c.json(modelOf(absoluteUrl(c, '/'), await findCard(c, context)), 200, noStore),
  versions: async (c, context) => c.json(pageOf([versionOf(await findCard(c, context))]), 200),
  version: async (c, context) => c.json(versionOf(await findCard(c, context)), 200),
  webhookSecret: (c, context) => webhookSecretRoute.handle(c, context),
});

async function create(c: ApiCall, context: ApiContext, model: string, frame: PredictionFrame): Promise<Response> {
  const waitMs = preferredWaitMs(c.req.header('prefer'));
  const parsed = parseExternalBody(inputSchema, frame.input);
  const given = { value: parsed.disable_safety_checker, withChecker: false };
  const refine = checkSafetyCheckerField('disable_safety_checker', given);
  const { webhook: webhook_url } = frame;
  const body = { ...replicateToImageBody(parsed), model, webhook_url };
  const webhook = { view: 'replicate', events: webhookEventsOf(frame) } as const;
  const submitted = await submitImage(c, context, body, { names: replicateNames, refine, webhook });
  const answered = await onceStored(async () => {
    const request = await awaitEnd(c, context, submitted.id, waitMs);
    // Report a running prediction as `starting`: the client's `run` takes any other status for the end.
    return answer(c, context, isTerminalState(request.state) ? request : { ...request, state: 'queued' }, 201);
  });
  return answered ?? answer(c, context, { ...submitted, state: 'queued', createdAtMs: context.clock.now() }, 201);
}

async function answer(
  c: ApiCall,
  context: ApiContext,
  request: PredictionSource,
  status: 200 | 201 = 200,
): Promise<Response> {
  return c.json(await predictionOf(c, context, request), status, noStore);
}

async function predictionOf(c: ApiCall, context: ApiContext, request: PredictionSource) {
  const output = request.state === 'succeeded' ? await outputsOf(c, context, request) : null;
  // Offer the stream only without keys: the client does not send its key for streams.
  return replicatePrediction(request, { root: absoluteUrl(c, '/'), output, hasStream: c.get('owner') === '' });
}

/** Returns https or data URLs, because the client creates files only from these. */
function outputsOf(
  c: ApiCall,
  context: ApiContext,
  { id, outputs = [], expiresAtMs }: PredictionSource,
): Promise<string[]> {
  const link = { id, fromMs: context.clock.now(), expiresAtMs, onlyHttps: true };
  return Promise.all(outputs.map((output) => openImageUrl(c, context, { ...link, output })));
}

function predictionFrames(c: ApiCall, context: ApiContext, id: string): RequestEventsOptions['framesOf'] {
  return async function* (event) {
    const frame = (name: string, data: string): string => sseFrame({ event: name, id: `${event.sequence}-0`, data });
    if (event.type === 'progress' || event.type === 'preview')
      yield frame('logs', `${progressBar(event.done, event.total ?? 0)}\n`);
    else if (event.type === 'output' && event.chunkIndex === event.output.chunks - 1)
      yield frame(
        'output',
        await openImageUrl(c, context, { id, output: event.output, fromMs: event.timestampMs, onlyHttps: true }),
      );
    else if (isEnd(event)) {
      const failure = predictionError({ state: event.type, error: event.error });
      if (failure !== null) yield frame('error', failure);
      const reason = failure === null ? event.type : 'error';
      yield frame('done', JSON.stringify(reason === 'succeeded' ? {} : { reason }));
    }
  };
}

async function listImageModels({ models }: ApiContext): Promise<ModelCard[]> {
  return (await models.get()).filter(({ kind }) => kind === imageKind.id);
}

async function findCard(c: ApiCall, context: ApiContext): Promise<ModelCard> {
  const { name, version = name } = c.req.param() as { name: string; version?: string };
  const cards = await listImageModels(context);
  const card = cards.find(({ id }) => id === name);
  if (card === undefined || version !== name) throw modelNotFound(version ?? name, cards);
  return card;
}
