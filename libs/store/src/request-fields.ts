/** The request hash of admit-request.lua and its followers, decoded. */
import type { OutputInfo, RequestEnvelope, RequestError, RequestState, RequestStatus } from '@darkroom/core';

/** Where it stands beside others. */
export interface QueuePlace {
  /** -1 when it does not wait. */
  rank: number;
  isPossible: boolean;
  costAhead: number;
}

export function decodeRequest(
  fields: ReadonlyMap<string, string>,
  { rank, isPossible, costAhead }: QueuePlace,
): RequestStatus {
  const envelope = JSON.parse(required(fields, 'envelope')) as RequestEnvelope;
  const state = required(fields, 'state') as RequestState;
  const error = fields.get('error');
  return {
    id: envelope.id,
    model: envelope.model,
    owner: envelope.owner,
    state,
    isCanceling: state === 'running' && fields.has('cancel'),
    queuePosition: state === 'queued' && rank >= 0 ? rank : undefined,
    isPossible,
    slots: envelope.slots,
    cost: envelope.cost,
    costAhead,
    attempts: Number(fields.get('attempts') ?? 0),
    createdAtMs: envelope.createdAtMs,
    startedAtMs: optionalNumber(fields, 'startedAtMs'),
    endedAtMs: optionalNumber(fields, 'endedAtMs'),
    done: Number(fields.get('done') ?? 0),
    total: Number(fields.get('total') ?? 0),
    kind: envelope.kind,
    input: envelope.input,
    outputCount: envelope.outputs,
    outputs: decodeOutputs(fields),
    error: error === undefined ? undefined : (JSON.parse(error) as RequestError),
    expiresAtMs: optionalNumber(fields, 'expiresAtMs'),
    retryOf: fields.get('retryOf'),
    retriedAs: fields.get('retriedAs'),
  };
}

function decodeOutputs(fields: ReadonlyMap<string, string>): OutputInfo[] {
  const outputs: OutputInfo[] = [];
  for (const [name, value] of fields) if (name.startsWith('output:')) outputs.push(JSON.parse(value) as OutputInfo);
  return outputs.toSorted((left, right) => left.index - right.index);
}

function required(fields: ReadonlyMap<string, string>, name: string): string {
  const value = fields.get(name);
  if (value === undefined) throw new Error(`a request hash has no field ${name}`);
  return value;
}

function optionalNumber(fields: ReadonlyMap<string, string>, name: string): number | undefined {
  const value = fields.get(name);
  return value === undefined ? undefined : Number(value);
}

/** `[field, value, field, value]`, as Lua returns HGETALL. */
export function pairsToMap(pairs: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  for (let position = 0; position + 1 < pairs.length; position += 2) {
    const [name, value] = pairs.slice(position, position + 2) as [string, string];
    map.set(name, value);
  }
  return map;
}
