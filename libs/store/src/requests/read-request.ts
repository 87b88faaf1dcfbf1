import type { OutputInfo, RequestEnvelope, RequestError, RequestState, RequestStatus } from '@darkroom/core';
import type { ModelKeys } from '../connection/keys.ts';
import { readTime } from '../connection/read-time.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

export type ReadRequestResult = { status: 'found'; request: RequestStatus } | Missing;

/**
 * Everything a poll shows, in one round trip; of one that waits, or whose model loads, in two. A script that reads would cost Redis
 * twice as much. A request of another owner is `unknown`.
 */
export async function readRequest(
  store: StoreConnection,
  id: string,
  owner: string = anyOwner,
  isAgain = false,
): Promise<ReadRequestResult> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  const [facts, envelope] = await readFacts(store, keys, id);
  const { owner: its, state, loadedAtMs, done } = facts;
  if (its === undefined || envelope === null || (owner !== anyOwner && owner !== its))
    return whyMissing(store, id, owner);
  const request = decode(facts, JSON.parse(envelope) as RequestEnvelope);
  // Once it is further, the model is there.
  if (loadedAtMs !== undefined && Number(done ?? 0) === 0)
    request.loadingMs = Math.max(0, Number(loadedAtMs) - (await readTime(store)));
  if (state !== 'queued') return { status: 'found', request };
  const reply = await runScript(store, 'requests/read-position', keys, [id, its]);
  const [position, isPossible, costAhead] = reply as [number, 0 | 1, string] | [];
  // It was leased or dropped in between.
  if (position === undefined) return isAgain ? { status: 'found', request } : readRequest(store, id, owner, true);
  const place = { queuePosition: position, isPossible: isPossible === 1, costAhead: Number(costAhead) };
  return { status: 'found', request: { ...request, ...place } };
}

/** Both in one write, which Redis reads at once. */
async function readFacts(
  { redis }: StoreConnection,
  keys: ModelKeys,
  id: string,
): Promise<[Record<string, string>, string | null]> {
  const replies = await redis.pipeline().hgetall(keys.request(id)).get(keys.input(id)).exec();
  const [facts, envelope] = replies!.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply;
  });
  return [facts as Record<string, string>, envelope as string | null];
}

function decode(facts: Readonly<Record<string, string>>, envelope: RequestEnvelope): RequestStatus {
  const { id, model, owner, kind, slots, cost, outputs, timeoutMs, input } = envelope;
  const numberOf = (name: string): number | undefined => (name in facts ? Number(facts[name]) : undefined);
  const state = facts['state'] as RequestState;
  return {
    id,
    model,
    owner,
    state,
    isCanceling: state === 'running' && 'cancel' in facts,
    slots,
    cost,
    attempts: numberOf('attempts') ?? 0,
    timeoutMs,
    createdAtMs: numberOf('createdAtMs') ?? 0,
    startedAtMs: numberOf('startedAtMs'),
    endedAtMs: numberOf('endedAtMs'),
    done: numberOf('done') ?? 0,
    total: numberOf('total') ?? 0,
    kind,
    input,
    outputCount: outputs,
    outputs: Object.entries(facts)
      .filter(([name]) => name.startsWith('output:'))
      .map(([, value]) => JSON.parse(value) as OutputInfo)
      .toSorted((left, right) => left.index - right.index),
    error: facts['error'] === undefined ? undefined : (JSON.parse(facts['error']) as RequestError),
    expiresAtMs: numberOf('expiresAtMs'),
    retryOf: facts['retryOf'],
    retriedAs: facts['retriedAs'],
    // Of one that waits it is asked.
    queuePosition: undefined,
    isPossible: true,
    costAhead: 0,
    loadingMs: 0,
  };
}
