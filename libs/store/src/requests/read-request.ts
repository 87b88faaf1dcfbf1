import type { OutputInfo, RequestEnvelope, RequestError, RequestState, RequestStatus } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

type Found = [
  fields: string[],
  envelope: string,
  position: number,
  isPossible: 0 | 1,
  costAhead: string,
  loadingMs: number,
];

export type ReadRequestResult = { status: 'found'; request: RequestStatus } | Missing;

/** Everything a poll shows, in one round trip. A request of another owner is `unknown`. */
export async function readRequest(
  store: StoreConnection,
  id: string,
  owner: string = anyOwner,
): Promise<ReadRequestResult> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  const reply = (await runScript(store, 'requests/read-request', keys, [id, owner])) as Found | [];
  if (reply.length === 0) return whyMissing(store, id, owner);
  return { status: 'found', request: decode(reply) };
}

function decode([pairs, envelope, position, isPossible, costAhead, loadingMs]: Found): RequestStatus {
  const { id, model, owner, kind, slots, cost, outputs, timeoutMs, input } = JSON.parse(envelope) as RequestEnvelope;
  const fields = new Map<string, string>();
  for (let index = 0; index + 1 < pairs.length; index += 2) fields.set(pairs[index]!, pairs[index + 1]!);
  const numberOf = (name: string): number | undefined => (fields.has(name) ? Number(fields.get(name)) : undefined);
  const state = fields.get('state') as RequestState;
  const error = fields.get('error');
  return {
    id,
    model,
    owner,
    state,
    isCanceling: state === 'running' && fields.has('cancel'),
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
    outputs: [...fields]
      .filter(([name]) => name.startsWith('output:'))
      .map(([, value]) => JSON.parse(value) as OutputInfo)
      .toSorted((left, right) => left.index - right.index),
    error: error === undefined ? undefined : (JSON.parse(error) as RequestError),
    expiresAtMs: numberOf('expiresAtMs'),
    retryOf: fields.get('retryOf'),
    retriedAs: fields.get('retriedAs'),
    queuePosition: position >= 0 ? position : undefined,
    isPossible: isPossible === 1,
    costAhead: Number(costAhead),
    loadingMs,
  };
}
