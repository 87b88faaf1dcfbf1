import { randomBytes } from 'node:crypto';
import type { StoreConnection } from './store-connection.ts';

interface Known {
  secret: Promise<string>;
  readAtMs: number;
}

const secrets = new WeakMap<StoreConnection, Map<string, Known>>();
/** After Redis has lost its data, all processes agree again within this time on a secret that one of them still has. */
const secretMaxAgeMs = 30_000;

/**
 * Returns a random secret that all processes share, stored under `key` and created by the first caller. The first call
 * of a process waits for Redis, later calls do not.
 */
export function readSharedSecret(store: StoreConnection, key: string): Promise<string> {
  const nowMs = performance.now();
  const ofStore = secrets.get(store) ?? new Map<string, Known>();
  secrets.set(store, ofStore);
  const known = ofStore.get(key);
  if (known === undefined) {
    const secret = readSecret(store, key);
    ofStore.set(key, { secret, readAtMs: nowMs });
    // If Redis is unavailable, the next call tries again.
    secret.catch(() => ofStore.delete(key));
    return secret;
  }
  if (nowMs - known.readAtMs >= secretMaxAgeMs) {
    known.readAtMs = nowMs;
    const read = readSecret(store, key, known.secret);
    // Refresh in the background: the secret hardly ever changes. If Redis is unavailable, keep it.
    read.then(
      () => (known.secret = read),
      () => {},
    );
  }
  return known.secret;
}

/** Reads the secret; restores the known one if Redis has lost it. */
async function readSecret({ redis }: StoreConnection, key: string, known?: Promise<string>): Promise<string> {
  const made = (await known) ?? randomBytes(32).toString('base64');
  await redis.set(key, made, 'NX');
  return (await redis.get(key)) ?? made;
}
