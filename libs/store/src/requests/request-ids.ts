import { randomBytes } from 'node:crypto';
import { createRequestId, isOurRequestId } from '@darkroom/core';
import { idSecretKey } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** For ourselves: everybody's requests. No API key can be called so. */
export const anyOwner = '*';

/** `gone`: its time is over. `unknown`: it never was, or is somebody else's. */
export type Missing = { status: 'gone' } | { status: 'unknown' };

const secrets = new WeakMap<StoreConnection, Promise<string>>();

/** An id for a new request of this owner. The first call of a process is one round trip, the others none. */
export async function newRequestId(
  store: StoreConnection,
  { model, owner, nowMs }: { model: string; owner: string; nowMs: number },
): Promise<string> {
  return createRequestId({ model, owner, nowMs, secret: await secretOf(store) });
}

/** Why nothing of an owner's is kept under an id: the id itself tells. No round trip, but for the first of a process. */
export async function whyMissing(store: StoreConnection, id: string, owner: string): Promise<Missing> {
  const secret = await secretOf(store);
  const isOurs = isOurRequestId(id, { owner: owner === anyOwner ? undefined : owner, secret });
  return { status: isOurs ? 'gone' : 'unknown' };
}

function secretOf(store: StoreConnection): Promise<string> {
  const known = secrets.get(store) ?? readSecret(store);
  secrets.set(store, known);
  // A Redis that is away is asked again the next time.
  known.catch(() => secrets.delete(store));
  return known;
}

/** Made on first need, the same for all replicas. */
async function readSecret({ redis, prefix }: StoreConnection): Promise<string> {
  const key = idSecretKey(prefix);
  const made = randomBytes(32).toString('base64');
  await redis.setnx(key, made);
  return (await redis.get(key)) ?? made;
}
