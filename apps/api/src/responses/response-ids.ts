/** Ids of a response and of the message in it: those of the request that they are views of, with something in front. */
import { modelOfRequestId } from '@darkroom/core';

const prefixes = { response: 'resp_', message: 'msg_' } as const;

type Named = keyof typeof prefixes;

export function idOf(what: Named, requestId: string): string {
  return `${prefixes[what]}${requestId}`;
}

/** The request's id; undefined for what was never such an id. */
export function requestIdIn(what: Named, id: unknown): string | undefined {
  if (typeof id !== 'string' || !id.startsWith(prefixes[what])) return undefined;
  const requestId = id.slice(prefixes[what].length);
  return modelOfRequestId(requestId) === undefined ? undefined : requestId;
}
