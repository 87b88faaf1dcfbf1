import { modelOfRequestId, type TerminalState } from '@darkroom/core';
import { anyOwner } from './owner.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

export type CancelRequestResult =
  | { status: 'canceled' }
  | { status: 'canceling' }
  | { status: 'ended'; state: TerminalState }
  | { status: 'gone' }
  | { status: 'unknown' };

export interface CancelRequestOptions {
  /** A request of another owner is `unknown`. */
  owner?: string;
  nowMs?: number;
}

/** Cancels a waiting request at once; a running one is asked to leave at its next step. Safe to call twice. */
export async function cancelRequest(
  store: StoreConnection,
  id: string,
  { owner = anyOwner, nowMs = Date.now() }: CancelRequestOptions = {},
): Promise<CancelRequestResult> {
  const model = modelOfRequestId(id);
  if (model === undefined) return { status: 'unknown' };
  const reply = (await runScript(store.redis, 'cancel-request', store.keysOf(model).base, id, nowMs, owner)) as
    | ['ended', TerminalState]
    | ['canceled' | 'canceling' | 'gone' | 'unknown'];
  if (reply[0] === 'ended') return { status: 'ended', state: reply[1] };
  // A former may hold the job's lock at this moment; then the lease refuses it and the former drops it.
  if (reply[0] === 'canceled') await store.queueOf(model).remove(id);
  return { status: reply[0] };
}
