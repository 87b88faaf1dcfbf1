import { modelOfRequestId, type RequestEnvelope, type RequestState } from '@darkroom/core';
import { addJob } from './admit-request.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/**
 * `id`: of the request that asks for the same again; `isNew` unless somebody was faster. `not-kept`: its prompts were
 * dropped when it ended. `gone`: its time is over.
 */
export type RetryRequestResult =
  | { status: 'retried'; id: string; isNew: boolean }
  | { status: 'not-dead'; state: RequestState }
  | { status: 'not-kept' }
  | { status: 'gone' }
  | { status: 'unknown' };

export interface RetryRequestOptions {
  newId: string;
  nowMs?: number;
  /** The `traceparent` of who asks; undefined when nobody traces. */
  trace?: string | undefined;
  /** What is kept of an envelope once the request has ended; undefined: all of it. */
  strip?: ((envelope: RequestEnvelope) => RequestEnvelope) | undefined;
}

/**
 * Asks again for what a failed request asked for, under a new id: the old one has ended, and ends once. Limits do not
 * count, as it is an operator who asks. Safe to call twice: there is one retry of a request. Three round trips.
 */
export async function retryRequest(
  store: StoreConnection,
  id: string,
  { newId, nowMs = Date.now(), trace, strip }: RetryRequestOptions,
): Promise<RetryRequestResult> {
  const model = modelOfRequestId(id);
  if (model === undefined) return { status: 'unknown' };
  const keys = store.keysOf(model);
  // What a request asks for never changes, so it may be read before the script decides.
  const stored = await store.redis.hget(keys.request(id), 'envelope');
  if (stored === null) return { status: (await store.redis.exists(keys.gone(id))) === 1 ? 'gone' : 'unknown' };
  const envelope = renewed(JSON.parse(stored) as RequestEnvelope, { id: newId, nowMs, trace });
  const reply = await runRetry(store, id, envelope, strip?.(envelope));
  if (reply[0] === 'not-dead') return { status: 'not-dead', state: reply[1] };
  if (reply[0] !== 'retried') return { status: reply[0] };
  const [, retryId, state, isNew] = reply;
  // Whoever stored it may have died before it added the job; BullMQ adds a job once.
  if (state === 'queued') await addJob(store, { ...envelope, id: retryId });
  await store.queueOf(model).remove(id);
  return { status: 'retried', id: retryId, isNew: isNew === 1 };
}

type RetryReply =
  | ['retried', id: string, state: RequestState | '', isNew: 0 | 1]
  | ['not-dead', RequestState]
  | ['not-kept' | 'gone' | 'unknown'];

async function runRetry(
  store: StoreConnection,
  deadId: string,
  envelope: RequestEnvelope,
  promptless: RequestEnvelope | undefined,
): Promise<RetryReply> {
  const values = [
    deadId,
    envelope.id,
    envelope.createdAtMs,
    JSON.stringify(envelope),
    envelope.slots,
    envelope.priority,
    envelope.deadlineMs,
    envelope.startDeadlineMs,
    store.resultTtlMs,
    store.goneTtlMs,
    envelope.cost,
    promptless === undefined ? '' : JSON.stringify(promptless),
    envelope.webhook === undefined ? '' : JSON.stringify({ ...envelope.webhook, kind: envelope.kind }),
    envelope.outputs,
  ];
  const { base } = store.keysOf(envelope.model);
  return (await runScript(store.redis, 'retry-request', base, ...values)) as RetryReply;
}

/** With as much time as it was given at first. */
function renewed(
  { trace: _trace, ...envelope }: RequestEnvelope,
  { id, nowMs, trace }: { id: string; nowMs: number; trace: string | undefined },
): RequestEnvelope {
  const { createdAtMs, deadlineMs, startDeadlineMs } = envelope;
  const laterMs = nowMs - createdAtMs;
  return {
    ...envelope,
    ...(trace === undefined ? {} : { trace }),
    id,
    createdAtMs: nowMs,
    deadlineMs: deadlineMs + laterMs,
    startDeadlineMs: startDeadlineMs + laterMs,
  };
}
