import { modelOfRequestId, type RequestSnapshot } from '@darkroom/core';
import { cancelRequest, readRequest } from '@darkroom/store';
import type { ApiCall } from '../http/api-env.ts';
import { requestGone, requestNotFound } from '../http/api-error.ts';
import type { WithStore } from '../server/store-guard.ts';

/**
 * Returns the request id in the path and records it for the log. Throws 404 for a malformed id, without a round trip.
 */
export function requestIdOf(c: ApiCall): string {
  const id = c.req.param('id') ?? '';
  if (modelOfRequestId(id) === undefined) throw requestNotFound(id);
  c.set('requestId', id);
  return id;
}

/** Narrows a store result to that of an existing request. Throws 404 for an unknown one, or 410 for an expired one. */
export function present<Result extends { status: string }>(
  id: string,
  result: Result,
): Exclude<Result, { status: 'unknown' | 'gone' }> {
  if (result.status === 'unknown') throw requestNotFound(id);
  if (result.status === 'gone') throw requestGone(id);
  return result as Exclude<Result, { status: 'unknown' | 'gone' }>;
}

/** Reads a request in one round trip. Throws 404, also for a request of another owner, or 410. */
export async function findRequest(withStore: WithStore, id: string, owner: string): Promise<RequestSnapshot> {
  return present(id, await withStore((store) => readRequest(store, id, owner))).request;
}

/** Cancels a request of the caller in one round trip. Throws like `findRequest`. */
export async function cancelFound(c: ApiCall, { withStore }: { withStore: WithStore }, id: string) {
  return present(id, await withStore((store) => cancelRequest(store, id, { owner: c.get('owner') })));
}
