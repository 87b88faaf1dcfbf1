import type { RequestState, TerminalState } from '@darkroom/core';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

export type DropRequestResult = { status: 'dropped' } | { status: 'not-dead'; state: RequestState } | Missing;

/**
 * Removes a request that has ended now: outputs, events, what it asked for, its place in the list of the dead. `only`: how it
 * must have ended. Safe to call twice.
 */
export async function dropRequest(
  store: StoreConnection,
  id: string,
  { only = ['failed'] }: { only?: readonly TerminalState[] } = {},
): Promise<DropRequestResult> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  const [state, outputs] = await store.redis.hmget(keys.request(id), 'state', 'outputs');
  if (typeof state === 'string' && !only.some((end) => end === state))
    return { status: 'not-dead', state: state as RequestState };
  // What has failed is listed for longer than it is kept; the list is short.
  const listed = await store.redis.xrange(keys.dead, '-', '+');
  const entries = listed.filter(([, [, dead]]) => dead === id).map(([entryId]) => entryId);
  if (typeof state !== 'string' && entries.length === 0) return whyMissing(store, id, anyOwner);
  const outputKeys = Array.from({ length: Number(outputs ?? 0) }, (_value, index) => keys.output(id, index));
  // A request that has ended does not change any more, so nothing comes between; what is told of last goes last.
  await store.redis.del(keys.request(id), keys.input(id), keys.events(id), ...outputKeys);
  if (entries.length > 0) await store.redis.xdel(keys.dead, ...entries);
  return { status: 'dropped' };
}
