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
import type { Context } from 'hono';
import { admit } from './admit.ts';
import type { EndEstimate } from '../follow/estimate-end.ts';
import { findRequest } from '../follow/find-request.ts';
import { admitOnce, idempotencyKeyOf } from './idempotency.ts';
import type { ApiContext, ApiEnv } from '../context.ts';
import {
  type ApiError,
  invalidFields,
  modelNotFound,
  modelUnserved,
  noModels,
  overloaded,
  tooManyOpen,
} from '../http/api-error.ts';

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

export interface SubmitPictureOptions {
  /** A preview every so many steps, for routes that want a number of them rather than a distance. */
  previewEvery?: (numInferenceSteps: number) => number;
}

/**
 * Takes a request in, whatever route it came by: `body` is as `POST /v1/predict` takes it. Throws ApiError when
 * it may not come in; then nothing is stored.
 */
export async function submitPicture(
  c: Context<ApiEnv>,
  context: ApiContext,
  body: unknown,
  { previewEvery }: SubmitPictureOptions = {},
): Promise<SubmittedPicture> {
  await context.limitRate(c);
  const key = idempotencyKeyOf(c);
  const createFor = async (defaultModel: string | undefined): Promise<RequestEnvelope<PictureInput>> => {
    const picture = await resolve(body, context, defaultModel);
    if (previewEvery !== undefined) picture.input.previewEvery = previewEvery(picture.input.numInferenceSteps);
    return createEnvelope(picture, c.get('owner'), context.clock.now());
  };
  const created = await createFor(context.config.defaultModel);
  const { envelope, result } =
    key === undefined
      ? {
          envelope: created,
          result: await admit(context, created, { apiKey: c.get('apiKey'), isFoundAgain: false }),
        }
      : await admitOnce(c, context, { key, body, envelope: created, createFor });
  const { id, model, input } = envelope;
  c.set('requestId', id);
  if (result.status === 'admitted') {
    const { position, isPossible, costAhead } = result;
    const waiting = {
      ...envelope,
      state: 'queued',
      isPossible,
      done: 0,
      costAhead,
      outputCount: envelope.outputs,
    } as const;
    const eta = await context.estimateEnd(waiting);
    return { id, model, state: 'queued', position, isPossible, eta, isReplayed: false, input };
  }
  if (result.status !== 'duplicate') throw refusal(result, model);
  // 80 random bits came twice within a millisecond: the source of randomness is broken.
  if (key === undefined)
    throw new DarkroomError({ code: 'internal', op: 'api.submit', message: 'A new request id was taken already.' });
  c.header('Idempotent-Replayed', 'true');
  const request = await findRequest(context, id, c.get('owner'));
  return replayed(request, await context.estimateEnd(request));
}

function replayed(request: RequestStatus, eta: EndEstimate | undefined): SubmittedPicture {
  const { id, model, state, queuePosition: position, isPossible } = request;
  return { id, model, state, position, isPossible, eta, isReplayed: true, input: request.input as PictureInput };
}

async function resolve(
  body: unknown,
  { models, config, drawSeed }: ApiContext,
  defaultModel: string | undefined,
): Promise<ResolvedPicture> {
  const options = {
    defaultModel,
    timeoutS: { default: config.requestTimeoutS, max: config.requestTimeoutMaxS },
    webhooks: { allowPrivate: config.webhookAllowPrivate, progressIntervalMs: config.webhookProgressIntervalMs },
    drawSeed,
  };
  let cards = await models.list();
  let result = resolvePicture(body, { ...options, cards });
  if (result.status === 'unknown-model') {
    cards = await models.reload();
    result = resolvePicture(body, { ...options, cards });
  }
  if (result.status === 'resolved') return result.picture;
  if (result.status === 'invalid') throw invalidFields(result.problems);
  if (cards.length === 0) throw noModels();
  throw modelNotFound(
    result.model,
    cards.map(({ id }) => id),
  );
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

function refusal(result: Exclude<AdmitRequestResult, { status: 'admitted' | 'duplicate' }>, model: string): ApiError {
  switch (result.status) {
    case 'overloaded':
      return overloaded();
    case 'limited':
      return tooManyOpen(result.open);
    case 'unserved':
      return modelUnserved(model);
  }
}
