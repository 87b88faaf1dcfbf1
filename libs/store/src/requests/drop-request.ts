import type { RequestState, TerminalState } from '@darkroom/core';
import { removeBytes } from '../bytes/keep-bytes.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

export type DropRequestResult = { status: 'dropped' } | { status: 'not-dead'; state: RequestState } | Missing;

/**
 * Removes a request that has ended now: outputs, events, what it asked for, its place in the list of the dead,
 * and what its owner is counted for it. `only`: how it
 * must have ended. Safe to call twice.
 */
export async function dropRequest(
  store: StoreConnection,
  id: string,
  { only = ['failed'] }: { only?: readonly TerminalState[] } = {},
): Promise<DropRequestResult> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  const state = await store.redis.hget(keys.request(id), 'state');
  if (state !== null && !only.some((end) => end === state)) return { status: 'not-dead', state: state as RequestState };
  // What has failed is listed for longer than it is kept; the list is short. Nothing else is in it.
  const listed = state === null || state === 'failed' ? await store.redis.xrange(keys.dead, '-', '+') : [];
  const entries = listed.filter(([, [, dead]]) => dead === id).map(([entryId]) => entryId);
  if (state === null && entries.length === 0) return whyMissing(store, id, anyOwner);
  // A request that has ended does not change any more, so nothing comes between; what is told of last goes last.
  await removeBytes(store, id);
  await runScript(store, 'requests/drop-request', keys, [id]);
  if (entries.length > 0) await store.redis.xdel(keys.dead, ...entries);
  return { status: 'dropped' };
}
