import { createRequestId, isOurRequestId } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import { readSharedSecret } from '../connection/shared-secret.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** For internal callers: requests of any owner. No API key can have this name. */
export const anyOwner = '*';

/** `gone`: the request has expired. `unknown`: it never existed, or belongs to another owner. */
export type Missing = { status: 'gone' } | { status: 'unknown' };

/** Creates the id of a new request. The first call of a process waits for Redis, later calls do not. */
export async function newRequestId(
  store: StoreConnection,
  { model, owner, nowMs }: { model: string; owner: string; nowMs: number },
): Promise<string> {
  return createRequestId({ model, owner, nowMs, secret: await readIdSecret(store) });
}

/**
 * Returns why no request of this owner is stored under an id; the id is authenticated. No round trip, except for the
 * first of a process.
 */
export async function whyMissing(store: StoreConnection, id: string, owner: string): Promise<Missing> {
  const secret = await readIdSecret(store);
  const isOurs = isOurRequestId(id, { owner: owner === anyOwner ? undefined : owner, secret });
  return { status: isOurs ? 'gone' : 'unknown' };
}

/** Returns the secret that authenticates request ids. */
export function readIdSecret(store: StoreConnection): Promise<string> {
  return readSharedSecret(store, systemKeys(store.prefix).idSecret);
}
