import {
  modelOfRequestId,
  type OutputInfo,
  type RequestEnvelope,
  type RequestError,
  type RequestState,
  type RequestStatus,
} from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** For ourselves: everybody's requests. No API key can be called so. */
export const anyOwner = '*';

type Reply = [] | [fields: string[], envelope: string, position: number, isPossible: 0 | 1, costAhead: string];

/**
 * Everything a poll shows, in one round trip. Undefined when nothing of that owner's is kept under this id: its time may
 * be over, or it may never have been, which the id itself tells (`isRequestIdOf`).
 */
export async function readRequest(
  store: StoreConnection,
  id: string,
  owner: string = anyOwner,
): Promise<RequestStatus | undefined> {
  const model = modelOfRequestId(id);
  if (model === undefined) return undefined;
  const reply = (await runScript(store.redis, 'requests/read-request', store.keysOf(model).base, [id, owner])) as Reply;
  if (reply.length === 0) return undefined;
  const [pairs, envelope, position, isPossible, costAhead] = reply;
  return {
    ...decodeRequest(pairsToMap(pairs), JSON.parse(envelope) as RequestEnvelope),
    queuePosition: position >= 0 ? position : undefined,
    isPossible: isPossible === 1,
    costAhead: Number(costAhead),
  };
}

function decodeRequest(
  fields: ReadonlyMap<string, string>,
  { id, model, owner, kind, slots, cost, outputs, input }: RequestEnvelope,
): Omit<RequestStatus, 'queuePosition' | 'isPossible' | 'costAhead'> {
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
    createdAtMs: numberOf('createdAtMs') ?? 0,
    startedAtMs: numberOf('startedAtMs'),
    endedAtMs: numberOf('endedAtMs'),
    done: numberOf('done') ?? 0,
    total: numberOf('total') ?? 0,
    kind,
    input,
    outputCount: outputs,
    outputs: decodeOutputs(fields),
    error: error === undefined ? undefined : (JSON.parse(error) as RequestError),
    expiresAtMs: numberOf('expiresAtMs'),
    retryOf: fields.get('retryOf'),
    retriedAs: fields.get('retriedAs'),
  };
}

function decodeOutputs(fields: ReadonlyMap<string, string>): OutputInfo[] {
  const outputs: OutputInfo[] = [];
  for (const [name, value] of fields) if (name.startsWith('output:')) outputs.push(JSON.parse(value) as OutputInfo);
  return outputs.toSorted((left, right) => left.index - right.index);
}

/** `[field, value, field, value]`, as Lua returns HGETALL. */
export function pairsToMap(pairs: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  for (let position = 0; position + 1 < pairs.length; position += 2) map.set(pairs[position]!, pairs[position + 1]!);
  return map;
}
