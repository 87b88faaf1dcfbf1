import {
  createRequestId,
  DarkroomError,
  type PictureInput,
  pictureShapeKey,
  type RequestEnvelope,
  type ResolvedPicture,
  resolvePicture,
} from '@darkroom/core';
import type { AdmitRequestResult } from '@darkroom/store';
import type { Context } from 'hono';
import { admit } from './admit.ts';
import type { ApiContext, ApiEnv } from './api-context.ts';
import { invalidFields, modelNotFound, modelUnserved, noModels, overloaded } from './api-error.ts';

/** A request that is stored. */
export interface SubmittedPicture {
  id: string;
  model: string;
  /** Requests that will be dispatched before this one. */
  position: number;
  /** Whether a live worker serves the model right now. */
  isPossible: boolean;
  input: PictureInput;
}

/**
 * Takes a request in, whatever route it came by: `body` is as `POST /v1/predict` takes it. Throws ApiError when
 * it may not come in; then nothing is stored.
 */
export async function submitPicture(c: Context<ApiEnv>, context: ApiContext, body: unknown): Promise<SubmittedPicture> {
  const picture = await resolve(body, context);
  const envelope = createEnvelope(picture, c.get('owner'), context.clock.now());
  const { position, isPossible } = admitted(await admit(context, envelope), envelope);
  c.set('requestId', envelope.id);
  return { id: envelope.id, model: envelope.model, position, isPossible, input: envelope.input };
}

async function resolve(body: unknown, { models, config, drawSeed }: ApiContext): Promise<ResolvedPicture> {
  const options = {
    defaultModel: config.defaultModel,
    timeoutS: { default: config.requestTimeoutS, max: config.requestTimeoutMaxS },
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
  const { model, input, priority, timeoutS, startTimeoutS } = picture;
  return {
    id: createRequestId({ model, nowMs }),
    model,
    owner,
    shapeKey: pictureShapeKey(input),
    rows: input.n,
    priority,
    createdAtMs: nowMs,
    deadlineMs: nowMs + Math.ceil(timeoutS * 1000),
    startDeadlineMs: nowMs + Math.ceil(startTimeoutS * 1000),
    input,
  };
}

function admitted(
  result: AdmitRequestResult,
  { model }: RequestEnvelope,
): Extract<AdmitRequestResult, { status: 'admitted' }> {
  switch (result.status) {
    case 'admitted':
      return result;
    case 'overloaded':
      throw overloaded();
    case 'unserved':
      throw modelUnserved(model);
    case 'duplicate':
      // 80 random bits came twice within a millisecond: the source of randomness is broken.
      throw new DarkroomError({ code: 'internal', op: 'api.submit', message: 'A new request id was taken already.' });
  }
}
