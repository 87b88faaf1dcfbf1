import { randomBytes } from 'node:crypto';
import { createRequestId, isOurRequestId } from '@darkroom/core';
import { systemKeys } from '../connection/keys.ts';
import type { StoreConnection } from '../connection/store-connection.ts';

/** For ourselves: everybody's requests. No API key can be called so. */
export const anyOwner = '*';

/** `gone`: its time is over. `unknown`: it never was, or is somebody else's. */
export type Missing = { status: 'gone' } | { status: 'unknown' };

const secrets = new WeakMap<StoreConnection, { secret: Promise<string>; readAtMs: number }>();
/** After a loss of Redis' data all replicas agree again on what one of them still knew. */
const secretMaxAgeMs = 30_000;

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
  const nowMs = performance.now();
  const known = secrets.get(store);
  if (known === undefined) {
    const secret = readSecret(store);
    secrets.set(store, { secret, readAtMs: nowMs });
    // A Redis that is away is asked again the next time.
    secret.catch(() => secrets.delete(store));
    return secret;
  }
  if (nowMs - known.readAtMs >= secretMaxAgeMs) {
    known.readAtMs = nowMs;
    const read = readSecret(store, known.secret);
    // Nobody waits for what has hardly ever changed; from a Redis that is away it stays as it is.
    read.then(
      () => (known.secret = read),
      () => {},
    );
  }
  return known.secret;
}

/** Made on first need, the same for all replicas; a known one is put back where it was lost. */
async function readSecret({ redis, prefix }: StoreConnection, known?: Promise<string>): Promise<string> {
  const key = systemKeys(prefix).idSecret;
  const made = (await known) ?? randomBytes(32).toString('base64');
  await redis.setnx(key, made);
  return (await redis.get(key)) ?? made;
}
