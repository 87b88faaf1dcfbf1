import { modelOfRequestId, type RequestStatus } from '@darkroom/core';
import { anyOwner } from './owner.ts';
import { decodeRequest, pairsToMap } from './request-fields.ts';
import { runScript } from './scripts.ts';
import type { StoreConnection } from './store-connection.ts';

/** `gone` is an id whose time is over, `unknown` one that never was (or was so long ago that its mark is gone too). */
export type ReadRequestResult =
  | { status: 'found'; request: RequestStatus }
  | { status: 'gone' }
  | { status: 'unknown' };

/** Everything a poll shows, in one round trip. A request of another owner is `unknown`. */
export async function readRequest(
  store: StoreConnection,
  id: string,
  owner: string = anyOwner,
): Promise<ReadRequestResult> {
  const model = modelOfRequestId(id);
  if (model === undefined) return { status: 'unknown' };
  const reply = (await runScript(store.redis, 'read-request', store.keysOf(model).base, id, owner)) as
    | ['found', string[], number, 0 | 1, string]
    | ['gone' | 'unknown'];
  if (reply[0] !== 'found') return { status: reply[0] };
  const place = { rank: reply[2], isPossible: reply[3] === 1, costAhead: Number(reply[4]) };
  return { status: 'found', request: decodeRequest(pairsToMap(reply[1]), place) };
}
