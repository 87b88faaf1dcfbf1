import { modelOfRequestId, type TerminalState } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner } from './read-request.ts';

/** `missing`: nothing of that owner's is kept under this id. */
export type CancelRequestResult =
  | { status: 'canceled' }
  | { status: 'canceling' }
  | { status: 'ended'; state: TerminalState }
  | { status: 'missing' };

/** Cancels a waiting request at once; a running one is asked to leave at its next step. Safe to call twice. One round trip. */
export async function cancelRequest(
  store: StoreConnection,
  id: string,
  owner: string = anyOwner,
): Promise<CancelRequestResult> {
  const model = modelOfRequestId(id);
  if (model === undefined) return { status: 'missing' };
  const reply = await runScript(store.redis, 'requests/cancel-request', store.keysOf(model).base, [id, owner]);
  const [status, state] = reply as ['ended', TerminalState] | ['canceled' | 'canceling' | 'missing', undefined];
  return status === 'ended' ? { status, state } : { status };
}
