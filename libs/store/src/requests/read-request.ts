import type { OutputInfo, RequestEnvelope, RequestError, RequestState, RequestStatus } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

type Field = string | null;

type Found = [
  facts: [
    state: RequestState,
    ...[cancel: Field, attempts: Field, createdAtMs: Field, startedAtMs: Field, endedAtMs: Field, expiresAtMs: Field],
    ...[done: Field, total: Field, error: Field, retryOf: Field, retriedAs: Field],
  ],
  envelope: string,
  outputs: string[],
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

function decode([facts, envelope, infos, position, isPossible, costAhead, loadingMs]: Found): RequestStatus {
  const { id, model, owner, kind, slots, cost, outputs, timeoutMs, input } = JSON.parse(envelope) as RequestEnvelope;
  const [state, cancel, attempts, createdAtMs, startedAtMs, endedAtMs, expiresAtMs, ...others] = facts;
  const [done, total, error, retryOf, retriedAs] = others;
  return {
    id,
    model,
    owner,
    state,
    isCanceling: state === 'running' && cancel !== null,
    slots,
    cost,
    attempts: Number(attempts),
    timeoutMs,
    createdAtMs: Number(createdAtMs),
    startedAtMs: numberOf(startedAtMs),
    endedAtMs: numberOf(endedAtMs),
    done: Number(done),
    total: Number(total),
    kind,
    input,
    outputCount: outputs,
    outputs: infos.map((info) => JSON.parse(info) as OutputInfo),
    error: error === null ? undefined : (JSON.parse(error) as RequestError),
    expiresAtMs: numberOf(expiresAtMs),
    retryOf: retryOf ?? undefined,
    retriedAs: retriedAs ?? undefined,
    queuePosition: position >= 0 ? position : undefined,
    isPossible: isPossible === 1,
    costAhead: Number(costAhead),
    loadingMs,
  };
}

function numberOf(field: Field): number | undefined {
  return field === null ? undefined : Number(field);
}
