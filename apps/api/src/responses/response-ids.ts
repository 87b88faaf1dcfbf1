/** Ids of a response and of what is in it: those of the request that they are views of, with something in front. */
import { modelOfRequestId } from '@darkroom/core';

const prefixes = { response: 'resp_', message: 'msg_', call: 'fc_' } as const;

type Named = keyof typeof prefixes;

export function idOf(what: Named, requestId: string): string {
  return `${prefixes[what]}${requestId}`;
}

/** The request's id; undefined for what was never such an id. */
export function requestIdIn(what: Named, id: unknown): string | undefined {
  if (typeof id !== 'string' || !id.startsWith(prefixes[what])) return undefined;
  return knownId(id.slice(prefixes[what].length));
}

/** The id of the request with an item of this id: of a message, or of a call, behind which their places may stand. */
export function requestIdOfItem(id: unknown): string | undefined {
  if (typeof id !== 'string') return undefined;
  const [, requestId] = /^(?:msg|fc)_(.*?)(?:_\d{1,6})?$/.exec(id) ?? [];
  return requestId === undefined ? undefined : knownId(requestId);
}

function knownId(requestId: string): string | undefined {
  return modelOfRequestId(requestId) === undefined ? undefined : requestId;
}
