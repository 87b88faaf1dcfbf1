import {
  createRequestId,
  DarkroomError,
  type ModelCard,
  type RequestEnvelope,
  type RequestSnapshot,
  type WebhookRequest,
  type WebhookView,
} from '@darkroom/core';
import { mentionsImages, type RequestPolicy } from '@darkroom/kinds';
import { activeTrace } from '@darkroom/service';
import { type AdmitRequestResult, readAsset } from '@darkroom/store';
import type { ApiContext } from '../context/context.ts';
import { type EndEstimate, estimateRequestEnd, isPossibleAnywhere, queueDrainSeconds } from '../follow/estimate-end.ts';
import { findRequest } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { modelNotFound, temporarilyUnavailable, overloaded, retryLater, tooMany } from '../http/api-error.ts';
import { isStoreUnavailable } from '../server/store-guard.ts';
import { readConversationImage, readInputImages, type ReadImagesOptions } from '../images/read-images.ts';
import type { FileShare } from '../body/file-memory.ts';
import type { Uploads } from '../body/uploads.ts';
import type { Waiter } from '../body/take-turn.ts';
import { admit, type NewRequest } from './admit.ts';
import { chooseModel } from './choose-model.ts';
import { throwInvalid } from './field-of-kind.ts';
import { countSubmitted } from './count-submitted.ts';
import { promptExcerpt } from './prompt-excerpt.ts';
import { admitOnce, checkIdempotencyKey, findStoredId, fingerprintOf } from './idempotency.ts';

export interface Submission {
  /** Body in the schema of `POST /v1/predict`, whatever the route. */
  body?: unknown;
  /**
   * Replaces `body`: builds it on demand; skipped when the Idempotency-Key finds a stored request. `fingerprint`: the
   * client's body as it arrived, which the key is compared by.
   */
  lazyBody?: { fingerprint: unknown; build: () => Promise<unknown> };
  /** Files that the body refers to. Released when the submission ends. */
  uploads?: Uploads | undefined;
  /** Channel of a mask that marks where to paint; by default brightness (white is painted). */
  maskBy?: ReadImagesOptions['maskBy'];
  /** The only kind that the route serves; models of other kinds return 404. */
  kind?: string;
  /** Fields that replace those of the body's webhook, if it has one. */
  webhook?: Partial<Omit<WebhookRequest, 'view'>> & { view: Omit<WebhookView, 'input'> };
  /** See `ModelChoice`. */
  canServe?: (card: ModelCard) => boolean;
  /** Route hook after validation: may adjust the input, or reject it by throwing an ApiError. */
  refine?: (input: unknown, card: ModelCard) => unknown;
}

/** A stored request. */
export interface SubmittedRequest extends Pick<
  RequestSnapshot,
  'id' | 'model' | 'state' | 'isPossible' | 'timeoutMs' | 'input' | 'error'
> {
  /** Requests that will be dispatched before this one; undefined once it runs. */
  position: number | undefined;
  /** Undefined if no worker has measured the model yet. */
  eta: EndEstimate | undefined;
  /** An earlier send stored it; found by its Idempotency-Key. */
  isReplayed: boolean;
}

/**
 * Validates and stores a submission, sets response headers and records the request id for the log. Throws ApiError if
 * the submission is rejected; then nothing is stored.
 */
export async function submitRequest(
  c: ApiCall,
  context: ApiContext,
  submission: Submission,
): Promise<SubmittedRequest> {
  const held: FileShare[] = [];
  try {
    return await submit(c, context, { ...submission, held });
  } finally {
    releaseFiles(submission, held);
  }
}

/** A submission with the memory of the images that were read for it. */
type HeldSubmission = Submission & { held: FileShare[] };

/** Frees the memory of a submission's uploads and images. */
function releaseFiles({ uploads }: Submission, held: readonly FileShare[]): void {
  for (const file of held) file.free();
  uploads?.release();
}

async function submit(c: ApiCall, context: ApiContext, submission: HeldSubmission): Promise<SubmittedRequest> {
  const key = c.req.header('idempotency-key');
  const { lazyBody, uploads } = submission;
  const sent = lazyBody === undefined ? submission.body : lazyBody.fingerprint;
  const toHash = (): unknown => (uploads === undefined ? sent : { body: sent, files: uploads.hashes() });
  // The path is part of the fingerprint: the same key on another route is a conflict.
  const keyed = key === undefined ? undefined : { key, fingerprint: fingerprintOf(c.req.path, toHash()) };
  const apiKey = c.get('apiKey');
  const isLookedUp = keyed !== undefined && (isCostlyToBuild(submission) || apiKey.requestsPerMinute !== undefined);
  const storedId = isLookedUp ? await findStoredId(context.withStore, { ...keyed, owner: apiKey.name }) : undefined;
  // A replay does not count against the rate limit.
  if (storedId !== undefined) return annotateResponse(c, await readReplay(context, storedId, apiKey.name));
  if (apiKey.requestsPerMinute !== undefined) await countSubmitted(c, context);
  if (key !== undefined) checkIdempotencyKey(key);
  const body = lazyBody === undefined ? submission.body : await lazyBody.build();
  const prepared = { ...submission, body, waiter: waiterOf(c), defaultModel: context.config.defaultModel };
  const created = await createEnvelope(context, prepared);
  const { envelope, result } =
    keyed === undefined
      ? { ...created, result: await admit(context, created, { apiKey, hasIdempotencyKey: false }) }
      : await admitOnce(context, {
          ...keyed,
          apiKey,
          created,
          createFor: (defaultModel) => createEnvelope(context, { ...prepared, defaultModel }),
        });
  // The 40 random bits of an id repeated within a millisecond, for one model and owner: the random source is broken.
  if (keyed === undefined && result.status === 'duplicate')
    throw new DarkroomError('internal', 'api.submit', 'A new request id already exists.');
  return annotateResponse(c, await toSubmitted(context, envelope, result));
}

/** Validates a submission like `submitRequest`, but stores nothing. Returns the input that an engine would get. */
export async function resolveSubmission(c: ApiCall, context: ApiContext, submission: Submission): Promise<unknown> {
  await countSubmitted(c, context);
  const body = submission.lazyBody === undefined ? submission.body : await submission.lazyBody.build();
  const { defaultModel } = context.config;
  const held: FileShare[] = [];
  try {
    const prepared = { ...submission, held, body, waiter: waiterOf(c), defaultModel };
    return (await resolveRequest(context, prepared)).request.input;
  } finally {
    releaseFiles(submission, held);
  }
}

function waiterOf(c: ApiCall): Waiter {
  return {
    owner: c.get('apiKey').name,
    // A getter: creating the signal costs time, and only requests with images read it.
    get signal() {
      return c.req.raw.signal;
    },
  };
}

function annotateResponse(c: ApiCall, submitted: SubmittedRequest): SubmittedRequest {
  c.set('requestId', submitted.id);
  if (submitted.isReplayed) c.header('Idempotent-Replayed', 'true');
  return submitted;
}

/** True if building the request needs lookups or images, which may no longer be available for a replay. */
function isCostlyToBuild({ body, lazyBody, uploads }: Submission): boolean {
  return lazyBody !== undefined || uploads !== undefined || mentionsImages(body);
}

async function toSubmitted(
  context: ApiContext,
  envelope: RequestEnvelope,
  result: AdmitRequestResult,
): Promise<SubmittedRequest> {
  const { id, model, owner, timeoutMs, input } = envelope;
  switch (result.status) {
    case 'admitted': {
      const { position, costAhead } = result;
      const { outputs: outputCount } = envelope;
      const isPossible = result.isPossible || (await isPossibleAnywhere(context, { model, isPossible: false }));
      const eta = await estimateRequestEnd(context, {
        ...envelope,
        state: 'queued',
        isPossible,
        done: 0,
        outputCount,
        costAhead,
      });
      const stored = { id, model, timeoutMs, input };
      return { ...stored, state: 'queued', position, isPossible, eta, isReplayed: false, error: undefined };
    }
    case 'duplicate':
      return readReplay(context, id, owner);
    case 'overloaded':
      throw overloaded(await queueDrainSeconds(context, model, result.costAhead));
    case 'limited':
      throw tooMany(
        'too_many_open_requests',
        `This key has ${result.open} open requests, which is its limit; wait for one to end.`,
      );
    case 'over-budget':
      throw tooMany(
        'too_many_bytes',
        `Your requests store ${result.bytes} bytes; the limit is ${context.config.ownerMaxBytes} bytes: wait for results to expire.`,
        retryLater,
      );
    case 'forgotten':
      throw modelNotFound(model, await context.models.reload());
    case 'unserved':
      throw temporarilyUnavailable('model_unserved', `No worker serves ${model} right now, try again later.`, 'model');
  }
}

/** Returns the request that an earlier send stored. */
async function readReplay(context: ApiContext, id: string, owner: string): Promise<SubmittedRequest> {
  const found = await findRequest(context.withStore, id, owner);
  const request = { ...found, isPossible: await isPossibleAnywhere(context, found) };
  return {
    ...request,
    position: request.queuePosition,
    eta: await estimateRequestEnd(context, request),
    isReplayed: true,
  };
}

type PreparedSubmission = HeldSubmission & { body: unknown; waiter: Waiter; defaultModel: string | undefined };

async function resolveRequest(context: ApiContext, options: PreparedSubmission) {
  const { card, kind } = await chooseModel(context, options);
  const models = await context.models.get();
  const result = await kind.resolve(options.body, card, { ...requestOptionsOf(context, options), models });
  if (result.status === 'invalid') throwInvalid(result.problems, { kind, card, kinds: context.kinds });
  return { card, kind, request: result.request };
}

async function createEnvelope(context: ApiContext, options: PreparedSubmission): Promise<NewRequest> {
  const { clock } = context;
  const { refine } = options;
  const { owner } = options.waiter;
  const { card, kind, request } = await resolveRequest(context, options);
  const { priority, timeoutS, startTimeoutS, webhook, attachments } = request;
  const input = refine === undefined ? request.input : refine(request.input, card);
  const demand = kind.demandOf(input);
  const { id: model, shards } = card;
  const shard = shards.length === 1 ? shards[0]! : context.chooseShard(owner, { shards, cost: demand.cost });
  const trace = activeTrace();
  const envelope = {
    id: createRequestId({ model: shard, owner, nowMs: clock.now(), secret: await context.idSecret.get() }),
    model,
    owner,
    kind: kind.id,
    ...demand,
    priority,
    timeoutMs: Math.ceil(timeoutS * 1000),
    startTimeoutMs: Math.ceil(startTimeoutS * 1000),
    ...(webhook === undefined ? {} : { webhook: withView(webhook, options, kind.withoutPrivate(input)) }),
    ...(trace === undefined ? {} : { trace }),
    ...(attachments === undefined ? {} : { attachments: [...attachments.keys()] }),
    input,
  };
  return { envelope, excerpt: promptExcerpt(options.body), attachments };
}

function withView(webhook: WebhookRequest, { webhook: replaced }: Submission, input: unknown): WebhookRequest {
  return replaced === undefined ? webhook : { ...webhook, ...replaced, view: { ...replaced.view, input } };
}

/** Max. `timeout_s` and `start_timeout_s` of a request: a day. */
const maxTimeoutS = 86_400;

/** Returns the server's settings and readers that a kind needs to resolve a body. */
function requestOptionsOf(
  context: ApiContext,
  { waiter, uploads, held, maskBy = 'brightness' }: HeldSubmission & { waiter: Waiter },
): RequestPolicy {
  const { config, drawSeed, withStore } = context;
  return {
    owner: waiter.owner,
    timeoutS: { default: config.requestTimeoutS, max: maxTimeoutS },
    webhooks: { allowPrivate: config.webhookAllowPrivate },
    drawSeed,
    async readAsset(model, name) {
      const asset = await withStore((store) => readAsset(store, model, name));
      // A worker with another version of the model has just registered; its card follows.
      if (asset === undefined)
        throw temporarilyUnavailable(
          'model_unserved',
          `No worker serves ${model} right now, try again later.`,
          'model',
        );
      return asset;
    },
    requester: waiter,
    readImage: (image, sizeOf) =>
      readConversationImage(context, { waiter, uploads, maskBy, held }, { ...image, sizeOf }),
    readImages: (sources, sizeOf) => readInputImages(context, { waiter, uploads, maskBy }, { sources, sizeOf }),
  };
}

/**
 * Runs work after a request was stored; returns undefined if Redis becomes unavailable. A 5xx at that point would make
 * retrying clients submit a second request.
 */
export async function onceStored<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isStoreUnavailable(error)) return undefined;
    throw error;
  }
}
