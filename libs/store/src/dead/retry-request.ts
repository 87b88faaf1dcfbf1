import { type RequestEnvelope, type RequestState, shardOfRequestId } from '@darkroom/core';
import { type CallBytes, callBytesDirectly, readAttachments } from '../bytes/attachments.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { runAdmission } from '../requests/admit-request.ts';
import { anyOwner, type Missing, newRequestId, whyMissing } from '../requests/request-ids.ts';

/**
 * `id`: of the new request; `isNew`: false if another call had created it. `not-kept`: the prompt was deleted at the
 * end, or an attachment is missing. `forgotten`: its model was forgotten.
 */
export type RetryRequestResult =
  | { status: 'retried'; id: string; isNew: boolean }
  | { status: 'not-dead'; state: RequestState }
  | { status: 'not-kept' }
  | { status: 'forgotten'; model: string }
  | Missing;

/**
 * Retries a failed request under a new id with the same timeouts, without admission limits, since an operator requests
 * it. `trace`: the caller's `traceparent`; `strip`: returns the envelope to retain after the end (all of it if absent).
 * There is at most one retry of a request, so it is safe to call twice. Two round trips, and one more for attachments.
 */
export async function retryRequest(
  store: StoreConnection,
  id: string,
  options: {
    trace?: string | undefined;
    strip?: ((envelope: RequestEnvelope) => RequestEnvelope) | undefined;
    callBytes?: CallBytes | undefined;
  } = {},
): Promise<RetryRequestResult> {
  const { trace, strip, callBytes = callBytesDirectly } = options;
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  // The envelope never changes, so it may be read before the script decides.
  const stored = await store.redis.get(keys.input(id));
  if (stored === null) return whyMissing(store, id, anyOwner);
  const { trace: _trace, ...original } = JSON.parse(stored) as RequestEnvelope;
  // In the same shard, because the script also updates the failed request.
  const newId = await newRequestId(store, { ...original, model: shardOfRequestId(id)!, nowMs: Date.now() });
  const envelope = { ...original, id: newId, ...(trace === undefined ? {} : { trace }) };
  const attachments = original.attachments && (await callBytes(() => readAttachments(store, id)));
  // Without all attachments it could only fail.
  if (original.attachments?.some((name) => !attachments?.has(name)) === true) return { status: 'not-kept' };
  const promptless = strip?.(envelope);
  const reply = await runAdmission(store, envelope, { promptless, attachments, callBytes, retryOf: id });
  // Without limits, the script returns nothing else.
  const [status, detail] = reply as
    | ['admitted' | 'not-kept' | 'missing' | 'forgotten']
    | ['retried', id: string]
    | ['not-dead', RequestState];
  if (status === 'missing') return whyMissing(store, id, anyOwner);
  if (status === 'not-dead') return { status, state: detail };
  if (status === 'not-kept') return { status };
  if (status === 'forgotten') return { status, model: original.model };
  return { status: 'retried', id: status === 'retried' ? detail : newId, isNew: status === 'admitted' };
}
