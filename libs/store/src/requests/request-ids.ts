import { createRequestId, isOurRequestId } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import { readSharedSecret } from '../connection/shared-secret.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** For ourselves: everybody's requests. No API key can be called so. */
export const anyOwner = '*';

/** `gone`: its time is over. `unknown`: it never was, or is somebody else's. */
export type Missing = { status: 'gone' } | { status: 'unknown' };

/** An id for a new request of this owner. The first call of a process waits for Redis, the others do not. */
export async function newRequestId(
  store: StoreConnection,
  { model, owner, nowMs }: { model: string; owner: string; nowMs: number },
): Promise<string> {
  return createRequestId({ model, owner, nowMs, secret: await readIdSecret(store) });
}

/** Why nothing of an owner's is kept under an id: the id itself tells. No round trip, but for the first of a process. */
export async function whyMissing(store: StoreConnection, id: string, owner: string): Promise<Missing> {
  const secret = await readIdSecret(store);
  const isOurs = isOurRequestId(id, { owner: owner === anyOwner ? undefined : owner, secret });
  return { status: isOurs ? 'gone' : 'unknown' };
}

/** What ids of this system are authenticated with. */
export function readIdSecret(store: StoreConnection): Promise<string> {
  return readSharedSecret(store, systemKeys(store.prefix).idSecret);
}
