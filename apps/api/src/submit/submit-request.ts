import { DarkroomError, type RequestEnvelope, type RequestStatus } from '@darkroom/core';
import { activeTrace } from '@darkroom/service';
import { type AdmitRequestResult, newRequestId } from '@darkroom/store';
import type { ApiKey } from '../auth/api-keys.ts';
import { type Allowance, rateLimitExceeded } from '../auth/limit-rate.ts';
import type { ApiContext } from '../context.ts';
import { type EndEstimate, endOf } from '../follow/estimate-end.ts';
import { findRequest } from '../follow/find-request.ts';
import { invalidFields, modelUnserved, overloaded, tooHeavy, tooManyBytes, tooManyOpen } from '../http/api-error.ts';
import { admit } from './admit.ts';
import { chooseModel } from './choose-model.ts';
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
  /** The only kind of work that the route is for; models of others are not there for it. */
  kind?: string;
  /** Has the last word on what was made of the body, for routes that want what no body can say. */
  refine?: (input: unknown) => unknown;
  /** Told what the key may still send, also when nothing is stored. */
  onAllowance?: (allowance: Allowance) => void;
}

/** A request that is stored. */
export interface SubmittedRequest extends Pick<RequestStatus, 'id' | 'model' | 'state' | 'isPossible' | 'input'> {
  /** Requests that will be dispatched before this one; undefined once it runs. */
  position: number | undefined;
  /** Undefined when nothing is known. */
  eta: EndEstimate | undefined;
  /** Found by its Idempotency-Key: stored by an earlier send. */
  isReplayed: boolean;
}

/** Takes a request in. Throws ApiError when it may not come in; then nothing is stored. */
export async function submitRequest(context: ApiContext, submission: Submission): Promise<SubmittedRequest> {
  const { apiKey, idempotencyKey, path, body } = submission;
  const keyed =
    idempotencyKey === undefined ? undefined : { key: idempotencyKey, fingerprint: fingerprintOf(path, body) };
  await count(context, submission, keyed);
  if (keyed !== undefined) checkIdempotencyKey(keyed.key);
  const createFor = (defaultModel: string | undefined): Promise<RequestEnvelope> =>
    createEnvelope(context, submission, defaultModel);
  const created = await createFor(context.config.defaultModel);
  const { envelope, result } =
    keyed === undefined
      ? { envelope: created, result: await admit(context, created, { apiKey, isFoundAgain: false }) }
      : await admitOnce(context, { ...keyed, apiKey, envelope: created, createFor });
  // The 40 random bits of an id came twice within a millisecond, for one model and owner: not while randomness works.
  if (keyed === undefined && result.status === 'duplicate')
    throw new DarkroomError({ code: 'internal', op: 'api.submit', message: 'A new request id was taken already.' });
  return submitted(context, envelope, result);
}

/** Throws 429 for a key that has sent too much; what is stored already is sent again for nothing. */
async function count(
  { askStore, countSubmission }: ApiContext,
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
  context: ApiContext,
  envelope: RequestEnvelope,
  result: AdmitRequestResult,
): Promise<SubmittedRequest> {
  const { id, model, owner, input } = envelope;
  switch (result.status) {
    case 'admitted': {
      const { position, isPossible, costAhead } = result;
      const { outputs: outputCount } = envelope;
      const eta = await endOf(context, { ...envelope, state: 'queued', isPossible, done: 0, outputCount, costAhead });
      return { id, model, state: 'queued', position, isPossible, eta, isReplayed: false, input };
    }
    case 'duplicate': {
      const request = await findRequest(context.askStore, id, owner);
      const { state, queuePosition: position, isPossible } = request;
      const eta = await endOf(context, request);
      return { id, model, state, position, isPossible, eta, isReplayed: true, input: request.input };
    }
    case 'overloaded':
      throw overloaded();
    case 'limited':
      throw tooManyOpen(result.open);
    case 'over-budget':
      throw tooManyBytes({ ...result, limit: context.config.ownerMaxBytes });
    case 'unserved':
      throw modelUnserved(model);
  }
}

async function createEnvelope(
  context: ApiContext,
  { apiKey: { name: owner }, body, kind: only, refine = (input) => input }: Submission,
  defaultModel: string | undefined,
): Promise<RequestEnvelope> {
  const { config, drawSeed, askStore, clock } = context;
  const { card, kind } = await chooseModel(context, { body, defaultModel, only });
  const result = kind.resolve(body, card, {
    timeoutS: { default: config.requestTimeoutS, max: config.requestTimeoutMaxS },
    webhooks: { allowPrivate: config.webhookAllowPrivate, progressIntervalMs: config.webhookProgressIntervalMs },
    drawSeed,
  });
  if (result.status === 'invalid') throw invalidFields(result.problems);
  const { priority, timeoutS, startTimeoutS, webhook } = result.request;
  const input = refine(result.request.input);
  const demand = kind.demandOf(input);
  const { requestMaxBytes: limit } = config;
  if (limit > 0 && demand.bytes > limit) throw tooHeavy(kind.heaviestField(input), demand.bytes, limit);
  const { id: model } = card;
  const trace = activeTrace();
  return {
    id: await askStore((store) => newRequestId(store, { model, owner, nowMs: clock.now() })),
    model,
    owner,
    kind: kind.id,
    ...demand,
    priority,
    timeoutMs: Math.ceil(timeoutS * 1000),
    startTimeoutMs: Math.ceil(startTimeoutS * 1000),
    ...(webhook === undefined ? {} : { webhook }),
    ...(trace === undefined ? {} : { trace }),
    input,
  };
}
