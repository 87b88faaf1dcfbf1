import { modelOfRequestId, type RequestStatus } from '@darkroom/core';
import { cancelRequest, readRequest } from '@darkroom/store';
import type { ApiCall } from '../http/api-env.ts';
import { requestGone, requestNotFound } from '../http/api-error.ts';
import type { AskStore } from '../server/store-guard.ts';

/** The id in the path, noted for the log. Throws 404 for what was never one of our ids, without asking Redis. */
export function requestIdOf(c: ApiCall): string {
  const id = c.req.param('id') ?? '';
  if (modelOfRequestId(id) === undefined) throw requestNotFound(id);
  c.set('requestId', id);
  return id;
}

/** What was done to a request that is there. Throws 404 for one that never was, or 410 for one whose time is over. */
export function present<Result extends { status: string }>(
  id: string,
  result: Result,
): Exclude<Result, { status: 'unknown' | 'gone' }> {
  if (result.status === 'unknown') throw requestNotFound(id);
  if (result.status === 'gone') throw requestGone(id);
  return result as Exclude<Result, { status: 'unknown' | 'gone' }>;
}

/** One round trip; throws 404, also for a request of another owner, or 410. */
export async function findRequest(askStore: AskStore, id: string, owner: string): Promise<RequestStatus> {
  return present(id, await askStore((store) => readRequest(store, id, owner))).request;
}

/** One round trip; throws as `findRequest`. */
export async function cancelFound(c: ApiCall, { askStore }: { askStore: AskStore }, id: string) {
  return present(id, await askStore((store) => cancelRequest(store, id, { owner: c.get('owner') })));
}
