/** Ids of a response and of its items: the id of the underlying request with a prefix. */
import { modelOfRequestId } from '@darkroom/core';

const prefixes = { response: 'resp_', message: 'msg_', call: 'fc_' } as const;

type Named = keyof typeof prefixes;

export function idOf(what: Named, requestId: string): string {
  return `${prefixes[what]}${requestId}`;
}

/** Returns the request id within an id; undefined if `id` is not of this type. */
export function requestIdIn(what: Named, id: unknown): string | undefined {
  if (typeof id !== 'string' || !id.startsWith(prefixes[what])) return undefined;
  return knownId(id.slice(prefixes[what].length));
}

/** Returns the request id within the id of a message or call, which may end with an index; undefined for other ids. */
export function requestIdOfItem(id: unknown): string | undefined {
  if (typeof id !== 'string') return undefined;
  const [, requestId] = /^(?:msg|fc)_(.*?)(?:_\d{1,6})?$/.exec(id) ?? [];
  return requestId === undefined ? undefined : knownId(requestId);
}

function knownId(requestId: string): string | undefined {
  return modelOfRequestId(requestId) === undefined ? undefined : requestId;
}
