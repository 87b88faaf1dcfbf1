import { modelOfRequestId, type TerminalState } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

export type CancelRequestResult =
  | { status: 'canceled' }
  | { status: 'canceling' }
  | { status: 'ended'; state: TerminalState }
  | Missing;

export interface CancelRequestOptions {
  /** A request of another owner is `unknown`. */
  owner?: string;
}

/** Cancels a waiting request at once; a running one is asked to leave at its next step. Safe to call twice. One round trip. */
export async function cancelRequest(
  store: StoreConnection,
  id: string,
  { owner = anyOwner }: CancelRequestOptions = {},
): Promise<CancelRequestResult> {
  const model = modelOfRequestId(id);
  if (model === undefined) return { status: 'unknown' };
  const reply = await runScript(store.redis, 'requests/cancel-request', store.keysOf(model).base, [id, owner]);
  const [status, state] = reply as ['canceled' | 'canceling' | 'missing'] | ['ended', TerminalState];
  if (status === 'ended') return { status, state };
  return status === 'missing' ? whyMissing(store, id, owner) : { status };
}
