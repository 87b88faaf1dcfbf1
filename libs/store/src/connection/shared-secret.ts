import { randomBytes } from 'node:crypto';
import type { StoreConnection } from './store-connection.ts';

interface Known {
  secret: Promise<string>;
  readAtMs: number;
}

const secrets = new WeakMap<StoreConnection, Map<string, Known>>();
/** After a loss of Redis' data all processes agree again on what one of them still knew. */
const secretMaxAgeMs = 30_000;

/**
 * A random secret that all processes share, under a key of its own: made by whoever needs it first. The first call of a process
 * waits for Redis, the others do not.
 */
export function readSharedSecret(store: StoreConnection, key: string): Promise<string> {
  const nowMs = performance.now();
  const ofStore = secrets.get(store) ?? new Map<string, Known>();
  secrets.set(store, ofStore);
  const known = ofStore.get(key);
  if (known === undefined) {
    const secret = readSecret(store, key);
    ofStore.set(key, { secret, readAtMs: nowMs });
    // A Redis that is away is asked again the next time.
    secret.catch(() => ofStore.delete(key));
    return secret;
  }
  if (nowMs - known.readAtMs >= secretMaxAgeMs) {
    known.readAtMs = nowMs;
    const read = readSecret(store, key, known.secret);
    // Nobody waits for what has hardly ever changed; from a Redis that is away it stays as it is.
    read.then(
      () => (known.secret = read),
      () => {},
    );
  }
  return known.secret;
}

/** A known one is put back where it was lost. */
async function readSecret({ redis }: StoreConnection, key: string, known?: Promise<string>): Promise<string> {
  const made = (await known) ?? randomBytes(32).toString('base64');
  await redis.set(key, made, 'NX');
  return (await redis.get(key)) ?? made;
}
