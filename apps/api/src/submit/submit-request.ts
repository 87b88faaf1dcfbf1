import { DarkroomError, type ModelCard, type RequestEnvelope, type RequestStatus } from '@darkroom/core';
import { activeTrace } from '@darkroom/service';
import { type AdmitRequestResult, newRequestId, readAsset } from '@darkroom/store';
import type { ApiContext } from '../context.ts';
import { type EndEstimate, endOf, isPossibleAnywhere, workedOffS } from '../follow/estimate-end.ts';
import { findRequest } from '../follow/find-request.ts';
import type { ApiCall } from '../http/api-env.ts';
import { invalidFields, notNow, overloaded, retryLater, tooMany } from '../http/api-error.ts';
import { isStoreAway } from '../server/store-guard.ts';
import { createPictureReader, type PictureReaderOptions } from '../pictures/read-pictures.ts';
import type { Uploads } from '../pictures/uploads.ts';
import type { Waiter } from '../pictures/waiting-line.ts';
import { admit, type NewRequest } from './admit.ts';
import { chooseModel } from './choose-model.ts';
import { countSubmitted } from './count-submitted.ts';
import { admitOnce, checkIdempotencyKey, findStoredId, fingerprintOf } from './idempotency.ts';

export interface Submission {
  /** As `POST /v1/predict` takes it, whatever route it came by. */
  body?: unknown;
  /**
   * In place of `body`, where making it takes looking up: not done for what an Idempotency-Key finds stored. `asked`: all that
   * the client asked for, which the key stands for.
   */
  late?: { asked: unknown; makeBody: () => Promise<unknown> };
  /** Files that came with the body, which names them. They are let go of as soon as they were read. */
  uploads?: Uploads | undefined;
  /** What a mask says of where to paint; by default that it is white there. */
  maskBy?: PictureReaderOptions['maskBy'];
  /** The only kind of work that the route is for; models of others are not there for it. */
  kind?: string;
  /**
   * Has the last word on what was made of the body, for routes that want what no body can say. Throws what the client is
   * to be told, where the route cannot do it with this model.
   */
  refine?: (input: unknown, card: ModelCard) => unknown;
}

/** A request that is stored. */
export interface SubmittedRequest extends Pick<
  RequestStatus,
  'id' | 'model' | 'state' | 'isPossible' | 'timeoutMs' | 'input' | 'error'
> {
  /** Requests that will be dispatched before this one; undefined once it runs. */
  position: number | undefined;
  /** Undefined when nothing is known. */
  eta: EndEstimate | undefined;
  /** Found by its Idempotency-Key: stored by an earlier send. */
  isReplayed: boolean;
}

/**
 * Takes in what came with an HTTP request, says in headers what became of it, and notes its id for the log. Throws
 * ApiError when it may not come in; then nothing is stored.
 */
export async function submitRequest(
  c: ApiCall,
  context: ApiContext,
  submission: Submission,
): Promise<SubmittedRequest> {
  try {
    return await submit(c, context, submission);
  } finally {
    submission.uploads?.release();
  }
}

async function submit(c: ApiCall, context: ApiContext, submission: Submission): Promise<SubmittedRequest> {
  const key = c.req.header('idempotency-key');
  // The same key on another route is another body.
  const { late, uploads } = submission;
  const given = late === undefined ? submission.body : late.asked;
  const asked = (): unknown => (uploads === undefined ? given : { body: given, files: uploads.hashes() });
  const keyed = key === undefined ? undefined : { key, fingerprint: fingerprintOf(c.req.path, asked()) };
  await countSubmitted(c, context, keyed);
  if (key !== undefined) checkIdempotencyKey(key);
  const apiKey = c.get('apiKey');
  if (late !== undefined && keyed !== undefined) {
    const storedId = await findStoredId(context.askStore, { ...keyed, owner: apiKey.name });
    if (storedId !== undefined) return told(c, await replayOf(context, storedId, apiKey.name));
  }
  const body = late === undefined ? submission.body : await late.makeBody();
  const waiter: Waiter = {
    owner: apiKey.name,
    // Nobody else pays for making it.
    get signal() {
      return c.req.raw.signal;
    },
  };
  const createFor = (defaultModel: string | undefined): Promise<NewRequest> =>
    createEnvelope(context, { ...submission, body, waiter, defaultModel });
  const created = await createFor(context.config.defaultModel);
  const { envelope, result } =
    keyed === undefined
      ? { ...created, result: await admit(context, created, { apiKey, isFoundAgain: false }) }
      : await admitOnce(context, { ...keyed, apiKey, created, createFor });
  // The 40 random bits of an id came twice within a millisecond, for one model and owner: not while randomness works.
  if (keyed === undefined && result.status === 'duplicate')
    throw new DarkroomError('internal', 'api.submit', 'A new request id was taken already.');
  return told(c, await submittedAs(context, envelope, result));
}

function told(c: ApiCall, submitted: SubmittedRequest): SubmittedRequest {
  c.set('requestId', submitted.id);
  if (submitted.isReplayed) c.header('Idempotent-Replayed', 'true');
  return submitted;
}

async function submittedAs(
  context: ApiContext,
  envelope: RequestEnvelope,
  result: AdmitRequestResult,
): Promise<SubmittedRequest> {
  const { id, model, owner, timeoutMs, input } = envelope;
  switch (result.status) {
    case 'admitted': {
      const { position, costAhead } = result;
      const { outputs: outputCount } = envelope;
      const isPossible = await isPossibleAnywhere(context, { model, isPossible: result.isPossible });
      const eta = await endOf(context, { ...envelope, state: 'queued', isPossible, done: 0, outputCount, costAhead });
      const stored = { id, model, timeoutMs, input };
      return { ...stored, state: 'queued', position, isPossible, eta, isReplayed: false, error: undefined };
    }
    case 'duplicate':
      return replayOf(context, id, owner);
    case 'overloaded':
      throw overloaded(await workedOffS(context, model, result.costAhead));
    case 'limited':
      throw tooMany(
        'too_many_open_requests',
        `This key has ${result.open} open requests, which is all it may have at once; wait for one to end.`,
      );
    case 'over-budget':
      throw tooMany(
        'too_many_bytes',
        `This request may keep up to ${result.bytes} bytes beside the ${result.kept} of your others, and all of them may keep ${context.config.ownerMaxBytes}; wait for results to expire.`,
        retryLater,
      );
    case 'unserved':
      throw notNow('model_unserved', `No worker serves ${model} right now, try again later.`, 'model');
  }
}

/** What an earlier send has stored. */
async function replayOf(context: ApiContext, id: string, owner: string): Promise<SubmittedRequest> {
  const found = await findRequest(context.askStore, id, owner);
  const request = { ...found, isPossible: await isPossibleAnywhere(context, found) };
  return { ...request, position: request.queuePosition, eta: await endOf(context, request), isReplayed: true };
}

async function createEnvelope(
  context: ApiContext,
  options: Submission & { body: unknown; waiter: Waiter; defaultModel: string | undefined },
): Promise<NewRequest> {
  const { config, drawSeed, askStore, clock } = context;
  const { body, waiter, uploads, maskBy = 'brightness', refine = (input) => input } = options;
  const { owner } = waiter;
  const { card, kind } = await chooseModel(context, options);
  const result = await kind.resolve(body, card, {
    timeoutS: { default: config.requestTimeoutS, max: config.requestTimeoutMaxS },
    webhooks: { allowPrivate: config.webhookAllowPrivate, progressIntervalMs: config.webhookProgressIntervalMs },
    embedMetadata: config.embedMetadata,
    drawSeed,
    async readAsset(model, name) {
      const asset = await askStore((store) => readAsset(store, model, name));
      // A worker with another version of the model has just come; its card is next.
      if (asset === undefined)
        throw notNow('model_unserved', `No worker serves ${model} right now, try again later.`, 'model');
      return asset;
    },
    readPictures: createPictureReader(context, { waiter, uploads, maskBy }),
  });
  if (result.status === 'invalid') throw invalidFields(result.problems);
  const { priority, timeoutS, startTimeoutS, webhook, attachments } = result.request;
  const input = refine(result.request.input, card);
  const demand = kind.demandOf(input);
  checkBytes(config.requestMaxBytes, demand.bytes, () => kind.heaviestField(input, body));
  const { id: model, shards } = card;
  const shard = context.chooseShard(owner, { shards, cost: demand.cost });
  const trace = activeTrace();
  const envelope = {
    id: await askStore((store) => newRequestId(store, { model: shard, owner, nowMs: clock.now() })),
    model,
    owner,
    kind: kind.id,
    ...demand,
    priority,
    timeoutMs: Math.ceil(timeoutS * 1000),
    startTimeoutMs: Math.ceil(startTimeoutS * 1000),
    ...(webhook === undefined ? {} : { webhook }),
    ...(trace === undefined ? {} : { trace }),
    ...(attachments === undefined ? {} : { attachments: [...attachments.keys()] }),
    input,
  };
  return { envelope, attachments };
}

/** Throws 400 for a request that may keep more than it may; `fieldOf` says what to lower. 0: no limit. */
function checkBytes(limit: number, bytes: number, fieldOf: () => string): void {
  if (limit === 0 || bytes <= limit) return;
  const field = fieldOf();
  const message = `${field} lets this request keep up to ${bytes} bytes, expected less of it: a request may keep ${limit}`;
  throw invalidFields([{ field, code: 'invalid_value', message }]);
}

/**
 * Runs what is left to do for a request that has just been stored: undefined when Redis cannot be asked any more. A 5xx
 * at that point would make clients that try again send a second request.
 */
export async function onceStored<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (isStoreAway(error)) return undefined;
    throw error;
  }
}
