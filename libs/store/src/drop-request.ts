import { modelOfRequestId, type RequestState } from '@darkroom/core';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** `gone`: nothing was left of it but the mark that it was. */
export type DropRequestResult =
  | { status: 'dropped' }
  | { status: 'not-dead'; state: RequestState }
  | { status: 'gone' }
  | { status: 'unknown' };

/** Removes a failed request now: pictures, events, what it asked for, its job. Safe to call twice. Two round trips. */
export async function dropRequest(store: StoreConnection, id: string): Promise<DropRequestResult> {
  const model = modelOfRequestId(id);
  if (model === undefined) return { status: 'unknown' };
  const { base } = store.keysOf(model);
  const reply = (await runScript(store.redis, 'drop-request', base, id, store.goneTtlMs)) as
    | ['not-dead', RequestState]
    | ['dropped' | 'gone' | 'unknown'];
  if (reply[0] === 'not-dead') return { status: 'not-dead', state: reply[1] };
  if (reply[0] === 'dropped') await store.queueOf(model).remove(id);
  return { status: reply[0] };
}
