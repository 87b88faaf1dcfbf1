import { type RequestEnvelope, type RequestState, shardOfRequestId } from '@darkroom/core';
import { type AskBytes, askBytesPlainly, readAttachments } from '../bytes/attachments.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { runAdmission } from './admit-request.ts';
import { anyOwner, type Missing, newRequestId, whyMissing } from './request-ids.ts';

/**
 * `id`: of the request that asks for the same again; `isNew` unless somebody was faster. `not-kept`: what is private was
 * dropped when it ended, or what came with it is not all there any more.
 */
export type RetryRequestResult =
  | { status: 'retried'; id: string; isNew: boolean }
  | { status: 'not-dead'; state: RequestState }
  | { status: 'not-kept' }
  | Missing;

/**
 * Asks again for what a failed request asked for, under a new id and with as much time: the old one has ended, and ends
 * once. Limits do not count, as it is an operator who asks. `trace`: the `traceparent` of who asks, if anybody traces; `strip`:
 * what is kept of an envelope once the request has ended, all of it if absent; `askBytes`: as of an admission. Safe to call twice: there is one retry of a request. Two round trips, and one more for what came with it.
 */
export async function retryRequest(
  store: StoreConnection,
  id: string,
  options: {
    trace?: string | undefined;
    strip?: ((envelope: RequestEnvelope) => RequestEnvelope) | undefined;
    askBytes?: AskBytes | undefined;
  } = {},
): Promise<RetryRequestResult> {
  const { trace, strip, askBytes = askBytesPlainly } = options;
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  // What a request asks for never changes, so it may be read before the script decides.
  const stored = await store.redis.get(keys.input(id));
  if (stored === null) return whyMissing(store, id, anyOwner);
  const { trace: _trace, ...asked } = JSON.parse(stored) as RequestEnvelope;
  // In the same shard: what becomes of the failed one is decided with it.
  const newId = await newRequestId(store, { ...asked, model: shardOfRequestId(id)!, nowMs: Date.now() });
  const envelope = { ...asked, id: newId, ...(trace === undefined ? {} : { trace }) };
  const attachments = asked.attachments && (await askBytes(() => readAttachments(store, id)));
  // It could only fail.
  if (asked.attachments?.some((name) => !attachments?.has(name)) === true) return { status: 'not-kept' };
  const promptless = strip?.(envelope);
  const reply = await runAdmission(store, envelope, { promptless, attachments, askBytes, retryOf: id });
  // It has no limits, so nothing else is answered.
  const [status, told] = reply as
    | ['admitted' | 'not-kept' | 'missing']
    | ['retried', id: string]
    | ['not-dead', RequestState];
  if (status === 'missing') return whyMissing(store, id, anyOwner);
  if (status === 'not-dead') return { status, state: told };
  if (status === 'not-kept') return { status };
  return { status: 'retried', id: status === 'retried' ? told : newId, isNew: status === 'admitted' };
}
