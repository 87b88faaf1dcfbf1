import { modelOfRequestId, type RequestEnvelope, type RequestState } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { runAdmission } from './admit-request.ts';
import { anyOwner, type Missing, newRequestId, whyMissing } from './request-ids.ts';

/**
 * `id`: of the request that asks for the same again; `isNew` unless somebody was faster. `not-kept`: what is private was
 * dropped when it ended.
 */
export type RetryRequestResult =
  | { status: 'retried'; id: string; isNew: boolean }
  | { status: 'not-dead'; state: RequestState }
  | { status: 'not-kept' }
  | Missing;

export interface RetryRequestOptions {
  /** The `traceparent` of who asks; undefined when nobody traces. */
  trace?: string | undefined;
  /** What is kept of an envelope once the request has ended; undefined: all of it. */
  strip?: ((envelope: RequestEnvelope) => RequestEnvelope) | undefined;
}

/**
 * Asks again for what a failed request asked for, under a new id and with as much time: the old one has ended, and ends
 * once. Limits do not count, as it is an operator who asks. Safe to call twice: there is one retry of a request. Two round trips.
 */
export async function retryRequest(
  store: StoreConnection,
  id: string,
  { trace, strip }: RetryRequestOptions = {},
): Promise<RetryRequestResult> {
  const model = modelOfRequestId(id);
  if (model === undefined) return { status: 'unknown' };
  // What a request asks for never changes, so it may be read before the script decides.
  const stored = await store.redis.get(store.keysOf(model).input(id));
  if (stored === null) return whyMissing(store, id, anyOwner);
  const { trace: _trace, ...asked } = JSON.parse(stored) as RequestEnvelope;
  const newId = await newRequestId(store, { model, owner: asked.owner, nowMs: Date.now() });
  const envelope = { ...asked, id: newId, ...(trace === undefined ? {} : { trace }) };
  const reply = await runAdmission(store, envelope, { promptless: strip?.(envelope), retryOf: id });
  switch (reply[0]) {
    case 'admitted':
    case 'duplicate':
      return { status: 'retried', id: newId, isNew: true };
    case 'retried':
      return { status: 'retried', id: reply[1], isNew: false };
    case 'not-dead':
      return { status: 'not-dead', state: reply[1] };
    case 'not-kept':
      return { status: 'not-kept' };
    case 'missing':
      return whyMissing(store, id, anyOwner);
    default:
      throw new Error(`a retry, which has no limits, was answered ${reply[0]}`);
  }
}
