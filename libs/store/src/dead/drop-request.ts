import type { RequestState, TerminalState } from '@darkroom/core';
import { removeBytes } from '../bytes/store-bytes.ts';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from '../requests/request-ids.ts';

export type DropRequestResult = { status: 'dropped' } | { status: 'not-dead'; state: RequestState } | Missing;

/**
 * Deletes an ended request now: outputs, events, envelope, its entry in the list of failed requests, and its share of
 * the owner's byte budget. `only`: terminal states to accept. Safe to call twice.
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
  // The list of failed requests outlives them, and is short. Other states are not in it.
  const listed = state === null || state === 'failed' ? await store.redis.xrange(keys.dead, '-', '+') : [];
  const entries = listed.filter(([, [, dead]]) => dead === id).map(([entryId]) => entryId);
  if (state === null && entries.length === 0) return whyMissing(store, id, anyOwner);
  // An ended request does not change any more, so this needs no transaction; the list entry goes last, so a retry finds
  // it.
  await removeBytes(store, id);
  await runScript(store, 'dead/drop-request', keys, [id]);
  if (entries.length > 0) await store.redis.xdel(keys.dead, ...entries);
  return { status: 'dropped' };
}
