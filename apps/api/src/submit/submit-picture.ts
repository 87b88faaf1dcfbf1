import type { ApiConfig } from '@darkroom/config';
import {
  createRequestId,
  DarkroomError,
  type PictureInput,
  pictureCost,
  pictureShapeKey,
  type RequestEnvelope,
  type RequestState,
  type RequestStatus,
  type ResolvedPicture,
  resolvePicture,
} from '@darkroom/core';
import { activeTrace } from '@darkroom/service';
import type { AdmitRequestResult } from '@darkroom/store';
import type { ApiKey } from '../auth/api-keys.ts';
import { type Allowance, type CountSubmission, rateLimitExceeded } from '../auth/limit-rate.ts';
import type { EndEstimate, EstimateEnd } from '../follow/estimate-end.ts';
import { findRequest } from '../follow/find-request.ts';
import { invalidFields, modelNotFound, modelUnserved, noModels, overloaded, tooManyOpen } from '../http/api-error.ts';
import { admit, type AdmitDeps } from './admit.ts';
import { admitOnce, checkIdempotencyKey, fingerprintOf, isStored } from './idempotency.ts';

export interface Submission {
  /** Whose request it is, and whose rights count. */
  apiKey: ApiKey;
  /** What the client calls this submission, so that sending it twice is one request. */
  idempotencyKey: string | undefined;
  /** The route it came by: the same key on another one is another body. */
  path: string;
  /** As `POST /v1/predict` takes it, whatever route it came by. */
  body: unknown;
  /** A preview every so many steps, for routes that want a number of them rather than a distance. */
  previewEvery?: (numInferenceSteps: number) => number;
  /** Told what the key may still send, also when nothing is stored. */
  onAllowance?: (allowance: Allowance) => void;
}

/** A request that is stored. */
export interface SubmittedPicture {
  id: string;
  model: string;
  state: RequestState;
  /** Requests that will be dispatched before this one; undefined once it runs. */
  position: number | undefined;
  /** Whether a live worker serves the model right now. */
  isPossible: boolean;
  /** Undefined when nothing is known. */
  eta: EndEstimate | undefined;
  /** Found by its Idempotency-Key: stored by an earlier send. */
  isReplayed: boolean;
  input: PictureInput;
}

export interface SubmitDeps extends AdmitDeps {
  config: AdmitDeps['config'] &
    Pick<
      ApiConfig,
      'defaultModel' | 'requestTimeoutS' | 'requestTimeoutMaxS' | 'webhookAllowPrivate' | 'webhookProgressIntervalMs'
    >;
  /** 0 to 2³²−1. */
  drawSeed: () => number;
  countSubmission: CountSubmission;
  estimateEnd: EstimateEnd;
}

/** Takes a request in. Throws ApiError when it may not come in; then nothing is stored. */
export type SubmitPicture = (submission: Submission) => Promise<SubmittedPicture>;

export function createPictureSubmitter(deps: SubmitDeps): SubmitPicture {
  return async (submission) => {
    const { apiKey, idempotencyKey, path, body, previewEvery } = submission;
    const keyed =
      idempotencyKey === undefined ? undefined : { key: idempotencyKey, fingerprint: fingerprintOf(path, body) };
    await count(deps, submission, keyed);
    checkIdempotencyKey(idempotencyKey);
    const createFor = async (defaultModel: string | undefined): Promise<RequestEnvelope<PictureInput>> => {
      const picture = await resolve(body, deps, defaultModel);
      if (previewEvery !== undefined) picture.input.previewEvery = previewEvery(picture.input.numInferenceSteps);
      return createEnvelope(picture, apiKey.name, deps.clock.now());
    };
    const created = await createFor(deps.config.defaultModel);
    const { envelope, result } =
      keyed === undefined
        ? { envelope: created, result: await admit(deps, created, { apiKey, isFoundAgain: false }) }
        : await admitOnce(deps, { ...keyed, apiKey, envelope: created, createFor });
    // 80 random bits came twice within a millisecond: the source of randomness is broken.
    if (keyed === undefined && result.status === 'duplicate')
      throw new DarkroomError({ code: 'internal', op: 'api.submit', message: 'A new request id was taken already.' });
    return submitted(deps, envelope, result);
  };
}

/** Throws 429 for a key that has sent too much; what is stored already is sent again for nothing. */
async function count(
  { askStore, countSubmission }: SubmitDeps,
  { apiKey, onAllowance }: Submission,
  keyed: { key: string; fingerprint: string } | undefined,
): Promise<void> {
  if (apiKey.requestsPerMinute === undefined) return;
  if (keyed !== undefined && (await isStored(askStore, { ...keyed, owner: apiKey.name }))) return;
  const allowance = await countSubmission(apiKey);
  if (allowance === undefined) return;
  onAllowance?.(allowance);
  if (!allowance.isAllowed) throw rateLimitExceeded(allowance);
}

async function submitted(
  { askStore, estimateEnd }: SubmitDeps,
  envelope: RequestEnvelope<PictureInput>,
  result: AdmitRequestResult,
): Promise<SubmittedPicture> {
  const { id, model, owner, input } = envelope;
  switch (result.status) {
    case 'admitted': {
      const { position, isPossible, costAhead } = result;
      const { outputs: outputCount } = envelope;
      const eta = await estimateEnd({ ...envelope, state: 'queued', isPossible, done: 0, outputCount, costAhead });
      return { id, model, state: 'queued', position, isPossible, eta, isReplayed: false, input };
    }
    case 'duplicate': {
      const request = await findRequest(askStore, id, owner);
      return replayed(request, await estimateEnd(request));
    }
    case 'overloaded':
      throw overloaded();
    case 'limited':
      throw tooManyOpen(result.open);
    case 'unserved':
      throw modelUnserved(model);
  }
}

function replayed(request: RequestStatus, eta: EndEstimate | undefined): SubmittedPicture {
  const { id, model, state, queuePosition: position, isPossible } = request;
  return { id, model, state, position, isPossible, eta, isReplayed: true, input: request.input as PictureInput };
}

async function resolve(
  body: unknown,
  { models, config, drawSeed }: SubmitDeps,
  defaultModel: string | undefined,
): Promise<ResolvedPicture> {
  const options = {
    defaultModel,
    timeoutS: { default: config.requestTimeoutS, max: config.requestTimeoutMaxS },
    webhooks: { allowPrivate: config.webhookAllowPrivate, progressIntervalMs: config.webhookProgressIntervalMs },
    drawSeed,
  };
  let cards = await models.get();
  let result = resolvePicture(body, { ...options, cards });
  if (result.status === 'unknown-model') {
    cards = await models.reload();
    result = resolvePicture(body, { ...options, cards });
  }
  if (result.status === 'resolved') return result.picture;
  if (result.status === 'invalid') throw invalidFields(result.problems);
  if (cards.length === 0) throw noModels();
  throw modelNotFound(result.model, cards);
}

function createEnvelope(picture: ResolvedPicture, owner: string, nowMs: number): RequestEnvelope<PictureInput> {
  const { model, input, priority, timeoutS, startTimeoutS, webhook } = picture;
  const trace = activeTrace();
  return {
    id: createRequestId({ model, nowMs }),
    model,
    owner,
    kind: 'picture',
    shapeKey: pictureShapeKey(input),
    outputs: input.n,
    slots: input.n,
    cost: pictureCost(input),
    bytes: 0,
    priority,
    createdAtMs: nowMs,
    deadlineMs: nowMs + Math.ceil(timeoutS * 1000),
    startDeadlineMs: nowMs + Math.ceil(startTimeoutS * 1000),
    ...(webhook === undefined ? {} : { webhook }),
    ...(trace === undefined ? {} : { trace }),
    input,
  };
}
