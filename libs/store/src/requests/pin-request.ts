import type { RequestState } from '@darkroom/core';
import { runScript } from '../connection/scripts.ts';
import type { StoreConnection } from '../connection/store-connection.ts';
import { type Missing, whyMissing } from './request-ids.ts';

export type PinRequestResult =
  | { status: 'done'; expiresAtMs: number }
  /** Only ended requests can be pinned. */
  | { status: 'open'; state: RequestState }
  | Missing;

/**
 * Pins an ended request of an owner: it expires 30 days after its end. Or unpins it: it expires as if it had never been
 * pinned, but in a minute at the earliest. Its bytes count as the owner's until it expires. Safe to call twice. One
 * round trip.
 */
export async function pinRequest(
  store: StoreConnection,
  id: string,
  { owner, isPinned }: { owner: string; isPinned: boolean },
): Promise<PinRequestResult> {
  const keys = store.keysOfRequest(id);
  if (keys === undefined) return { status: 'unknown' };
  const reply = await runScript(store, 'requests/pin-request', keys, [id, owner, isPinned ? '1' : '0']);
  const [status, detail] = reply as ['done', expiry: string] | ['open', RequestState] | ['missing', undefined];
  if (status === 'missing') return whyMissing(store, id, owner);
  return status === 'done' ? { status, expiresAtMs: Number(detail) } : { status, state: detail };
}
