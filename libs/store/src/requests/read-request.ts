import type { OutputInfo, RequestEnvelope, RequestError, RequestState, RequestSnapshot } from '@darkroom/core';
import type { ModelKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

export type ReadRequestResult = { status: 'found'; request: RequestSnapshot } | Missing;

/**
 * Reads all that a poll shows, in one round trip; two if it is queued or its model is loading. No script: that would
 * cost Redis twice as much. A request of another owner is `unknown`.
 */
export async function readRequest(
  store: StoreConnection,
  id: string,
  owner: string = anyOwner,
  isRetry = false,
): Promise<ReadRequestResult> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  const [fields, envelope] = await readFields(store, keys, id);
  const { owner: requestOwner, state, loadedAtMs, done } = fields;
  if (requestOwner === undefined || envelope === null || (owner !== anyOwner && owner !== requestOwner))
    return whyMissing(store, id, owner);
  const request = decode(fields, JSON.parse(envelope) as RequestEnvelope);
  // Once there is progress, the model is loaded.
  if (loadedAtMs !== undefined && Number(done ?? 0) === 0)
    request.loadingMs = Math.max(0, Number(loadedAtMs) - (await readTime(store)));
  if (state !== 'queued') return { status: 'found', request };
  const reply = await runScript(store, 'requests/read-position', keys, [id, requestOwner]);
  const [position, isPossible, costAhead] = reply as [number, 0 | 1, string] | [];
  // It left the queue between the two round trips.
  if (position === undefined) return isRetry ? { status: 'found', request } : readRequest(store, id, owner, true);
  const queue = { queuePosition: position, isPossible: isPossible === 1, costAhead: Number(costAhead) };
  return { status: 'found', request: { ...request, ...queue } };
}

/** Pipelines both commands, so that Redis reads them at once. */
async function readFields(
  { redis }: StoreConnection,
  keys: ModelKeys,
  id: string,
): Promise<[Record<string, string>, string | null]> {
  const replies = await redis.pipeline().hgetall(keys.request(id)).get(keys.input(id)).exec();
  if (replies === null) throw new Error('Redis discarded the commands of a pipeline');
  const [fields, envelope] = replies.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply;
  });
  return [fields as Record<string, string>, envelope as string | null];
}

function decode(fields: Readonly<Record<string, string>>, envelope: RequestEnvelope): RequestSnapshot {
  const { id, model, owner, kind, slots, cost, outputs, timeoutMs, input } = envelope;
  return {
    ...decodeProgress(fields),
    id,
    model,
    owner,
    slots,
    cost,
    timeoutMs,
    kind,
    input,
    outputCount: outputs,
    retryOf: fields['retryOf'],
    retriedAs: fields['retriedAs'],
    // `readRequest` sets these if the request is queued.
    queuePosition: undefined,
    isPossible: true,
    costAhead: 0,
    loadingMs: 0,
  };
}

/** Decodes the fields of a request's hash that change while it runs, and its outputs. */
export function decodeProgress(fields: Readonly<Record<string, string>>) {
  const numberOf = (name: string): number | undefined => (name in fields ? Number(fields[name]) : undefined);
  const state = fields['state'] as RequestState;
  return {
    state,
    isCanceling: state === 'running' && 'cancel' in fields,
    isPinned: 'pinned' in fields,
    attempts: numberOf('attempts') ?? 0,
    createdAtMs: numberOf('createdAtMs') ?? 0,
    startedAtMs: numberOf('startedAtMs'),
    endedAtMs: numberOf('endedAtMs'),
    expiresAtMs: numberOf('expiresAtMs'),
    done: numberOf('done') ?? 0,
    total: numberOf('total') ?? 0,
    outputs: Object.entries(fields)
      .filter(([name]) => name.startsWith('output:'))
      .map(([, value]) => JSON.parse(value) as OutputInfo)
      .toSorted((left, right) => left.index - right.index),
    error: fields['error'] === undefined ? undefined : (JSON.parse(fields['error']) as RequestError),
  };
}
