import type { TerminalState } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { anyOwner, type Missing, whyMissing } from './request-ids.ts';

export type CancelRequestResult =
  | { status: 'canceled' | 'canceling' }
  | { status: 'ended'; state: TerminalState }
  | Missing;

/**
 * Cancels a queued request at once, or signals the worker of a running request, which cancels it at its next step.
 * Returns `unknown` for a request of another owner. Safe to call twice. One round trip.
 */
export async function cancelRequest(
  store: StoreConnection,
  id: string,
  { owner = anyOwner }: { owner?: string } = {},
): Promise<CancelRequestResult> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  const reply = await runScript(store, 'requests/cancel-request', keys, [id, owner]);
  const [status, state] = reply as ['canceled' | 'canceling' | 'missing'] | ['ended', TerminalState];
  if (status === 'ended') return { status, state };
  return status === 'missing' ? whyMissing(store, id, owner) : { status };
}
