import { modelOfRequestId, type RequestStatus } from '@darkroom/core';
import { cancelRequest, type CancelRequestResult, readRequest } from '@darkroom/store';
import type { Context } from 'hono';
import type { ApiEnv } from '../http/api-env.ts';
import { requestGone, requestNotFound } from '../http/api-error.ts';
import type { AskStore } from '../server/store-guard.ts';

/** The id in the path, noted for the log. Throws 404 for what was never one of our ids, without asking Redis. */
export function requestIdOf(c: Context<ApiEnv>): string {
  const id = c.req.param('id') ?? '';
  if (modelOfRequestId(id) === undefined) throw requestNotFound(id);
  c.set('requestId', id);
  return id;
}

/** One round trip; throws 404, also for a request of another owner, or 410. */
export async function findRequest(askStore: AskStore, id: string, owner: string): Promise<RequestStatus> {
  const result = await askStore((store) => readRequest(store, id, owner));
  if (result.status === 'unknown') throw requestNotFound(id);
  if (result.status === 'gone') throw requestGone(id);
  return result.request;
}

/** One round trip; throws as `findRequest`. */
export async function cancelFound(
  { askStore }: { askStore: AskStore },
  id: string,
  owner: string,
): Promise<Exclude<CancelRequestResult, { status: 'unknown' | 'gone' }>> {
  const result = await askStore((store) => cancelRequest(store, id, { owner }));
  if (result.status === 'unknown') throw requestNotFound(id);
  if (result.status === 'gone') throw requestGone(id);
  return result;
}
